"""The check every reader of a ledger makes: is this batch the next one, is it whole, does it count?

`seq` has no gap from 1, `at_us` increases strictly, `writer_epoch` never goes down, each event
names its batch's first `seq`, and the batch ends with an `InputsRead` whose count fits.

What an older epoch wrote above the `last_good_seq` of the next `EpochStarted` does not count. If it
stands after that event, `next` says so at once. If it stands before, the reader has taken it
already: `next` raises `Superseded`, and the reader begins again with a check that knows the
`ends` of the epochs. On a log with one writer at a time neither can happen, so there both are
faults.
"""

from collections.abc import Mapping
from typing import Final

from horolog.schemas.errors import DATA_DIR_CORRUPT, Corrupt
from horolog.schemas.records import EpochStarted, Event, InputsRead, LogCreated
from horolog.streams.log.protocol import Log

_NO_ENDS: Final[Mapping[int, int]] = {}


class BrokenSequence(Corrupt):
    """A ledger partition does not go on as it must; the evidence, for who looks at it."""

    def __init__(self, partition: int, expected: str, found: str) -> None:
        super().__init__(
            DATA_DIR_CORRUPT, f"ledger partition {partition}: expected {expected}, found {found}"
        )
        self.partition = partition
        self.expected = expected
        self.found = found


class Superseded(BrokenSequence):
    """What was read above `last_good_seq` does not count. A reader of a shared log drops it and
    begins again, with the `ends` of this check.
    """

    def __init__(self, partition: int, last_good_seq: int, seq: int, epoch: int) -> None:
        super().__init__(
            partition,
            f"epoch {epoch} to begin after seq {seq}",
            f"that it had read up to seq {last_good_seq} only",
        )
        self.last_good_seq = last_good_seq


def check_created(log: Log, partition: int, first: Event) -> None:
    """The first record of a partition says which log it is; raises BrokenSequence if another."""
    expected = f"LogCreated of log {log.log_id}, partition {partition} of {log.partitions}"
    if not isinstance(first, LogCreated):
        raise BrokenSequence(partition, expected, type(first).__name__)
    named = (first.log_id, first.partition, first.partitions)
    if named != (log.log_id, partition, log.partitions) or first.generation > log.generation:
        raise BrokenSequence(
            partition,
            f"{expected}, generation {log.generation} at most",
            f"log {first.log_id}, partition {first.partition} of {first.partitions}, "
            f"generation {first.generation}",
        )


def check_not_behind(log: Log, known: Mapping[int, int], reader: str) -> None:
    """A reader knows events up to these `seq`, by partition, and so must the log: an older copy put
    in its place would give tokens a second time. Raises BrokenSequence.
    """
    for partition, seq in known.items():
        last_seq = log.last_seq(partition)
        if last_seq < seq:
            raise BrokenSequence(
                partition,
                f"the log to reach seq {seq}, which {reader} has read",
                f"that it went back: it ends at {last_seq}",
            )


class SequenceCheck:
    """Holds where one partition's sequence stands. A batch that is refused moves nothing."""

    __slots__ = ("_at_us", "_epoch", "_limit", "_partition", "_seq", "ends")

    def __init__(
        self,
        partition: int,
        seq: int = 0,
        *,
        at_us: int = 0,
        epoch: int = 0,
        ends: Mapping[int, int] = _NO_ENDS,
    ) -> None:
        """Expect the batch that follows event `seq`, whose time and epoch are given if known.
        `ends`: see there.
        """
        self._partition = partition
        self._seq = seq
        self._at_us = at_us
        self._epoch = epoch
        self._limit: tuple[int, int | None] = (0, None)
        self.ends: dict[int, int] = dict(ends)
        """Epoch -> the last `seq` of older epochs that counts, for each epoch seen to begin."""

    @property
    def seq(self) -> int:
        """`seq` of the last event that counts."""
        return self._seq

    def next(self, events: tuple[Event, ...]) -> bool:
        """Take the next batch: whether it counts, or is of an epoch that had ended.

        Raises BrokenSequence, or Superseded.
        """
        if not events:
            raise BrokenSequence(self._partition, "a batch", "one without events")
        first = events[0]
        if self._has_ended(first.writer_epoch, first.seq):
            return False
        self._begin_epoch(events)
        seq, at_us, epoch = self._seq, self._at_us, self._epoch
        last = events[-1]
        for event in events:
            seq += 1
            if (
                event.seq != seq
                or event.batch != first.seq
                or event.at_us <= at_us
                or event.writer_epoch < epoch
                or (type(event) is InputsRead and event is not last)
            ):
                raise self._fault(event, seq, at_us, epoch, first.seq)
            at_us, epoch = event.at_us, event.writer_epoch
        if not isinstance(last, InputsRead):
            raise BrokenSequence(
                self._partition, f"the end of batch {first.seq}", f"{type(last).__name__} at {seq}"
            )
        if last.records != len(events):
            raise BrokenSequence(
                self._partition,
                f"{last.records} events in batch {first.seq}",
                f"{len(events)}",
            )
        self._seq, self._at_us, self._epoch = seq, at_us, epoch
        return True

    def _has_ended(self, epoch: int, seq: int) -> bool:
        if epoch < self._epoch:
            return True
        if epoch != self._limit[0]:
            later = [end for newer, end in self.ends.items() if newer > epoch]
            self._limit = (epoch, min(later, default=None))
        limit_seq = self._limit[1]
        return limit_seq is not None and seq > limit_seq

    def _begin_epoch(self, events: tuple[Event, ...]) -> None:
        """Note the end that a new epoch sets to the older ones."""
        started = events[0]
        if isinstance(started, LogCreated) and len(events) > 1:
            started = events[1]
        if not isinstance(started, EpochStarted):
            return
        self.ends = {**self.ends, started.writer_epoch: started.last_good_seq}
        if started.last_good_seq < self._seq:
            raise Superseded(
                self._partition, started.last_good_seq, self._seq, started.writer_epoch
            )

    def _fault(
        self, event: Event, seq: int, at_us: int, epoch: int, first_seq: int
    ) -> BrokenSequence:
        expected, found = f"seq {seq}", f"seq {event.seq}"
        if event.seq == seq:
            if event.batch != first_seq:
                expected, found = f"batch {first_seq} at seq {seq}", f"batch {event.batch}"
            elif event.at_us <= at_us:
                expected, found = f"a time after {at_us} at seq {seq}", f"{event.at_us}"
            elif event.writer_epoch < epoch:
                expected, found = f"epoch {epoch} at seq {seq}", f"epoch {event.writer_epoch}"
            else:
                expected, found = f"more of batch {first_seq}", f"its end at seq {seq}"
        return BrokenSequence(self._partition, expected, found)
