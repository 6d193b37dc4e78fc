"""A log in memory: for tests, benchmarks and the simulation."""

from collections.abc import Iterator, Sequence

from horolog.schemas.errors import UNAVAILABLE, Unavailable
from horolog.streams.log.check import SequenceCheck
from horolog.streams.log.protocol import Batch, SnapshotRecord


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
        self._failures = 0

    def fail_next(self, times: int = 1) -> None:
        """Let the next appends say that nothing was written, as a full disk would."""
        self._failures = times

    def append(self, batches: Sequence[Batch]) -> None:
        """See `Log`."""
        if self._failures:
            self._failures -= 1
            raise Unavailable(UNAVAILABLE, "the log was told to fail")
        for batch in batches:
            self._checks[batch.partition].next(batch.events)
            self._batches[batch.partition].append(batch)
            snapshots = self._snapshots[batch.partition]
            for key, record in batch.snapshots:
                if record is None:
                    snapshots.pop(key, None)
                else:
                    snapshots[key] = record

    def last_seq(self, partition: int) -> int:
        """See `Log`."""
        batches = self._batches[partition]
        return batches[-1].last_seq if batches else 0

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """See `Log`."""
        for batch in list(self._batches[partition]):
            if batch.last_seq > after_seq:
                events = tuple(event for event in batch.events if event.seq > after_seq)
                yield Batch(partition=partition, events=events)

    def snapshots(self, partition: int) -> Iterator[tuple[str, SnapshotRecord]]:
        """See `Log`."""
        return iter(list(self._snapshots[partition].items()))

    def close(self) -> None:
        """See `Log`."""
