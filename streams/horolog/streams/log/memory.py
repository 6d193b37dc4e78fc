"""A log in memory: for tests, benchmarks and the simulation, with faults on demand."""

import copy
import enum
from collections.abc import Iterator, Sequence

from horolog.schemas.errors import FENCED, UNAVAILABLE, Fenced, Unavailable
from horolog.streams.log.check import SequenceCheck, check_created
from horolog.streams.log.protocol import Batch, SnapshotRecord


class Fault(enum.Enum):
    """What an append does instead of what it should."""

    ABORTED = "aborted"
    """Nothing is written, and that is certain: the same batches may be given again."""
    UNKNOWN_LOST = "unknown_lost"
    """Nothing is written, and the owner cannot know."""
    UNKNOWN_WRITTEN = "unknown_written"
    """All is written, and the owner cannot know."""


class MemoryLog:
    """Keeps batches as they are: records are frozen, so nothing is copied."""

    def __init__(self, partitions: int = 1, *, log_id: str = "memory", generation: int = 1) -> None:
        """An empty log."""
        self.partitions = partitions
        self.log_id = log_id
        self.generation = generation
        self._batches: list[list[Batch]] = [[] for _ in range(partitions)]
        self._snapshots: list[dict[str, SnapshotRecord]] = [{} for _ in range(partitions)]
        self._checks = [SequenceCheck(partition) for partition in range(partitions)]
        self._faults: list[Fault] = []

    def fail_next(self, fault: Fault = Fault.ABORTED, times: int = 1) -> None:
        """Let so many of the next appends fail."""
        self._faults += [fault] * times

    def forget(self, batches_count: int) -> None:
        """Lose the last batches of each partition, and the snapshots that came with any batch: a
        crash of a log that had not reached the disk.
        """
        for partition, batches in enumerate(self._batches):
            del batches[max(len(batches) - batches_count, 0) :]
            # Invariant: snapshots are never ahead of the events; what is gone is folded again.
            self._snapshots[partition].clear()
            self._checks[partition] = SequenceCheck(partition)
            for batch in batches:
                self._checks[partition].next(batch.events)

    def append(self, batches: Sequence[Batch]) -> None:
        """See `Log`."""
        fault = self._faults.pop(0) if self._faults else None
        if fault is Fault.ABORTED:
            raise Unavailable(UNAVAILABLE, "the log was told to fail; nothing was written")
        checks = {batch.partition: copy.copy(self._checks[batch.partition]) for batch in batches}
        for batch in batches:
            check = checks[batch.partition]
            if check.seq == 0 and batch.events:
                check_created(self, batch.partition, batch.events[0])
            if not check.next(batch.events):
                raise Fenced(FENCED, f"ledger partition {batch.partition} has a newer owner")
        if fault is not Fault.UNKNOWN_LOST:
            for batch in batches:
                self._keep(batch)
            for partition, check in checks.items():
                self._checks[partition] = check
        if fault is not None:
            raise Fenced(FENCED, "the log was told not to say whether it wrote")

    def _keep(self, batch: Batch) -> None:
        self._batches[batch.partition].append(batch)
        snapshots = self._snapshots[batch.partition]
        for key, record in batch.snapshots:
            if record is None:
                snapshots.pop(key, None)
            else:
                snapshots[key] = record

    def last_seq(self, partition: int) -> int:
        """See `Log`."""
        return self._checks[partition].seq

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """See `Log`."""
        check: SequenceCheck | None = None
        for batch in list(self._batches[partition]):
            if batch.last_seq > after_seq:
                check = check or SequenceCheck(partition, batch.first_seq - 1)
                check.next(batch.events)
                yield Batch(
                    partition=partition,
                    events=tuple(event for event in batch.events if event.seq > after_seq),
                )

    def snapshots(self, partition: int) -> Iterator[tuple[str, SnapshotRecord]]:
        """See `Log`."""
        return iter(list(self._snapshots[partition].items()))

    def close(self) -> None:
        """See `Log`."""
