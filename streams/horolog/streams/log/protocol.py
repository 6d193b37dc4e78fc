"""What a log does, whoever implements it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from horolog.schemas.records import (
    Event,
    JobSnapshot,
    KeysSnapshot,
    PartitionSnapshot,
    RunSnapshot,
)

SnapshotRecord = JobSnapshot | RunSnapshot | KeysSnapshot | PartitionSnapshot


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The events of one step of one partition, and the snapshots written with them."""

    partition: int
    events: tuple[Event, ...]
    """Stamped; the last one is an `InputsRead`."""
    snapshots: tuple[tuple[str, SnapshotRecord | None], ...] = ()
    """Key -> record; None removes the key."""

    @property
    def first_seq(self) -> int:
        """`seq` of its first event."""
        return self.events[0].seq

    @property
    def last_seq(self) -> int:
        """`seq` of its last event."""
        return self.events[-1].seq


class Log(Protocol):
    """Ledger partitions and snapshots. One process writes; any thread may read."""

    @property
    def partitions(self) -> int:
        """Number of ledger partitions, fixed when the log was made."""
        ...

    @property
    def log_id(self) -> str:
        """Random name of the log."""
        ...

    @property
    def generation(self) -> int:
        """One above the log this one was copied from or cut back to; from 1."""
        ...

    def append(self, batches: Sequence[Batch]) -> None:
        """Write each batch whole, in order, with its snapshots.

        Raises Unavailable if nothing was written (the same batches may be given again), Fenced if
        another owner has the log or nobody can know whether it was written (take over anew: the
        ledger's tail says), Corrupt if a batch does not follow what is there.
        """
        ...

    def last_seq(self, partition: int) -> int:
        """`seq` of the last event; 0 = none. Of a log opened to be read: as it was then, of one
        instant over all partitions.
        """
        ...

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """Batches that hold events above `after_seq`, in order and checked, without snapshots; the
        first one without the events up to there. Those appended meanwhile may be among them.
        Raises Corrupt at the first fault, after all that comes before it.
        """
        ...

    def snapshots(self, partition: int) -> Iterator[tuple[str, SnapshotRecord]]:
        """The snapshot records of a partition, by key; of one instant."""
        ...

    def close(self) -> None:
        """Give the log up; another process may open it."""
        ...
