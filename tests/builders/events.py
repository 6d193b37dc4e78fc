"""Ledger partitions written by hand: events in, stamped batches out."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from horolog.schemas.records import (
    AttemptEnded,
    CancelRequested,
    EpochStarted,
    Event,
    InputsRead,
    LogCreated,
    ReportRejected,
    RunStarted,
    RunSucceeded,
)
from horolog.streams.log import Batch, Log, SnapshotRecord
from tests.builders.core import T0

GENERATION = 1 << 40
LOG_ID = "by hand"
TZDATA = "2026.6"
_WITH_TOKEN = (RunSucceeded, AttemptEnded, CancelRequested, ReportRejected)


class Ledger:
    """One partition. Time is in the test's hand; each event is a microsecond after the last."""

    def __init__(
        self,
        number: int = 0,
        *,
        partitions: int = 1,
        log_id: str = LOG_ID,
        generation: int = 1,
        at_us: int = T0,
    ) -> None:
        self.number = number
        self.partitions = partitions
        self.log_id = log_id
        self.generation = generation
        self.at_us = at_us
        self.epoch = 0
        self.seq = 0
        self.lease_time_us = 0
        self.batches: list[Batch] = []

    def created(self) -> LogCreated:
        """What the first batch begins with."""
        return LogCreated(
            log_id=self.log_id,
            generation=self.generation,
            partition=self.number,
            partitions=self.partitions,
            tzdata=TZDATA,
        )

    def take_over(self, *more: Event) -> Batch:
        """The batch by which an owner begins; the very first one makes the partition."""
        last_good_seq = self.seq
        first = [] if self.seq else [self.created()]
        self.epoch += 1
        return self.batch(*first, EpochStarted(last_good_seq=last_good_seq), *more)

    def batch(
        self, *events: Event, snapshots: Sequence[tuple[str, SnapshotRecord | None]] = ()
    ) -> Batch:
        """A step: the events stamped, and its end."""
        first_seq = self.seq + 1
        end = InputsRead(records=len(events) + 1, lease_time_us=self.lease_time_us)
        made = Batch(
            partition=self.number,
            events=tuple(self._stamped(event, first_seq) for event in (*events, end)),
            snapshots=tuple(snapshots),
        )
        self.batches.append(made)
        return made

    def _stamped(self, event: Event, first_seq: int) -> Event:
        self.seq += 1
        self.at_us += 1
        return replace(
            event, seq=self.seq, writer_epoch=self.epoch, at_us=self.at_us, batch=first_seq
        )

    def token(self, seq: int | None = None) -> int:
        """Fencing token of the `RunStarted` at a seq."""
        return self.generation * GENERATION + (self.seq if seq is None else seq)


class Written:
    """Some partitions as a log that can be read."""

    def __init__(self, *partitions: Sequence[Batch], log_id: str = LOG_ID) -> None:
        self._partitions = partitions
        self.partitions = len(partitions)
        self.log_id = log_id

    def last_seq(self, partition: int) -> int:
        """`seq` of the last event."""
        batches = self._partitions[partition]
        return batches[-1].last_seq if batches else 0

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """All batches after a whole one, unchecked."""
        return (batch for batch in self._partitions[partition] if batch.first_seq > after_seq)


def written(log: Log) -> Written:
    """A copy of a real log."""
    return Written(
        *(tuple(log.read(partition, 0)) for partition in range(log.partitions)), log_id=log.log_id
    )


def changed(batches: Iterable[Batch], change: Callable[[Event], Iterable[Event]]) -> list[Batch]:
    """The partition with each event replaced by what `change` makes of it, stamped anew: numbers
    and tokens fit again, so only the meaning is changed. Ends of batches are kept.
    """
    made: list[Batch] = []
    seqs: dict[int, int] = {}
    seq = at_us = 0
    for batch in batches:
        first_seq = seq + 1
        events: list[Event] = []
        for old in batch.events:
            new = [old] if isinstance(old, InputsRead) else change(old)
            for event in new:
                seq += 1
                at_us = max(event.at_us, at_us + 1)
                seqs[event.seq] = seq
                stamped = replace(event, seq=seq, at_us=at_us, batch=first_seq)
                events.append(_retold(stamped, seqs))
        events[-1] = replace(events[-1], records=len(events))
        made.append(Batch(partition=batch.partition, events=tuple(events)))
    return made


def _retold(event: Event, seqs: dict[int, int]) -> Event:
    """References to other events by their new numbers."""
    if isinstance(event, EpochStarted):
        return replace(event, last_good_seq=event.batch - 1)
    if isinstance(event, _WITH_TOKEN):
        generation, seq = divmod(event.token, GENERATION)
        return replace(event, token=generation * GENERATION + seqs.get(seq, seq))
    return event


def without(kind: type[Event], number: int = 0) -> Callable[[Event], Iterable[Event]]:
    """A change that leaves out the event of a type that comes after `number` others of it."""
    return _nth(kind, number, lambda _: ())


def twice(kind: type[Event], number: int = 0) -> Callable[[Event], Iterable[Event]]:
    """A change that says an event of a type two times."""
    return _nth(kind, number, lambda event: (event, event))


def with_fields(
    kind: type[Event], number: int = 0, **fields: object
) -> Callable[[Event], Iterable[Event]]:
    """A change of some fields of an event of a type."""
    return _nth(kind, number, lambda event: (replace(event, **fields),))


def _nth(
    kind: type[Event], number: int, change: Callable[[Event], Iterable[Event]]
) -> Callable[[Event], Iterable[Event]]:
    seen = 0

    def at_one(event: Event) -> Iterable[Event]:
        nonlocal seen
        if type(event) is not kind:
            return (event,)
        seen += 1
        return change(event) if seen == number + 1 else (event,)

    return at_one


def starts(batches: Iterable[Batch]) -> Iterator[RunStarted]:
    """All grants of a partition."""
    for batch in batches:
        yield from (event for event in batch.events if isinstance(event, RunStarted))
