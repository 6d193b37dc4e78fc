"""The check every reader of a ledger makes: is this batch the next one, and is it whole?

`seq` has no gap, `at_us` increases strictly, `writer_epoch` never goes down, each event names its
batch's first `seq`, and the batch ends with an `InputsRead` whose count fits. What an older epoch
wrote above the `last_good_seq` of the next `EpochStarted` does not count; on a log with one writer
at a time there is none, so it is a fault here and a duty of the reader of a shared log.
"""

from horolog.schemas.errors import DATA_DIR_CORRUPT, Corrupt
from horolog.schemas.records import Event, InputsRead


class SequenceCheck:
    """Holds where one partition's sequence stands."""

    def __init__(self, partition: int, seq: int = 0) -> None:
        """Begin after event `seq`; the first batch read may begin at or before it."""
        self._partition = partition
        self._seq = seq
        self._at_us = 0
        self._epoch = 0

    def next(self, events: tuple[Event, ...]) -> None:
        """Accept the next batch, or raise Corrupt with what was expected and what was found."""
        if not events:
            raise self._fault("a batch without events")
        first = events[0].seq
        for place, event in enumerate(events):
            if event.seq != self._seq + 1:
                raise self._fault(f"seq {event.seq} where {self._seq + 1} was expected")
            if event.batch != first:
                raise self._fault(f"seq {event.seq} says batch {event.batch}, not {first}")
            if event.at_us <= self._at_us:
                raise self._fault(f"seq {event.seq} is not later than the event before it")
            if event.writer_epoch < self._epoch:
                raise self._fault(
                    f"seq {event.seq} is of epoch {event.writer_epoch}, after {self._epoch}"
                )
            if isinstance(event, InputsRead) and place != len(events) - 1:
                raise self._fault(f"seq {event.seq} ends its batch before the last event")
            self._seq, self._at_us, self._epoch = event.seq, event.at_us, event.writer_epoch
        last = events[-1]
        if not isinstance(last, InputsRead):
            raise self._fault(f"the batch {first} has no end")
        if last.records != len(events):
            raise self._fault(f"the batch {first} has {len(events)} of {last.records} events")

    def _fault(self, what: str) -> Corrupt:
        return Corrupt(DATA_DIR_CORRUPT, f"ledger partition {self._partition}: {what}")
