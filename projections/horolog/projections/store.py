"""What a store of the tables does, whoever implements it.

One thread writes; any may read. A write is one transaction: rows and the positions they reach. A
store that cannot do that writes the rows first: all of a write may be repeated.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from horolog.projections.tables import Changes, FlatRow, Key, Row, Table


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables are a function of, beside the events."""

    log_id: str
    generation: int
    retention_us: int
    versions: tuple[tuple[str, int], ...]
    """Name and VERSION of each projection."""


class Checkpoint(msgspec.Struct, frozen=True, gc=False):
    """How far one projection has folded one partition."""

    seq: int
    at_us: int
    """Time of that event."""


Checkpoints = Mapping[tuple[str, int], Checkpoint]
"""By projection and partition."""


def positions_of(checkpoints: Checkpoints) -> dict[int, int]:
    """`seq` up to which every projection holds a partition."""
    positions: dict[int, int] = {}
    for (_, partition), checkpoint in checkpoints.items():
        positions[partition] = min(positions.get(partition, checkpoint.seq), checkpoint.seq)
    return positions


def time_of(checkpoints: Checkpoints) -> int:
    """The log's time that the tables have reached; 0: nothing is folded."""
    return max((checkpoint.at_us for checkpoint in checkpoints.values()), default=0)


class Snapshot(Protocol):
    """All tables at one instant, whatever is written meanwhile."""

    @property
    def checkpoints(self) -> Checkpoints:
        """What is folded."""
        ...

    def rows(self, table: Table) -> Iterator[FlatRow]:
        """The rows that are there at the log's time of the snapshot, in the order of their keys;
        of a table that lives with another, those whose row there is.
        """
        ...


class Store(Protocol):
    """Keeps the tables."""

    def begin(self, origin: Origin) -> None:
        """Keep what is here if it was folded from this origin, else forget it."""
        ...

    def checkpoints(self) -> Checkpoints:
        """What is folded."""
        ...

    def write(self, changes: Changes, checkpoints: Checkpoints) -> None:
        """Write rows and how far they reach. Raises Unavailable (nothing is written: the same may
        be written again) or Corrupt (the store is to be built anew).
        """
        ...

    def get(self, table: Table, key: Key) -> Row | None:
        """One row as it was last written, even if it was deleted or has expired since."""
        ...

    def expire(self, now_us: int, limit: int) -> int:
        """Remove rows that ended by an instant of the log's time, with those that live with them,
        at most about `limit` of each table; the most that were removed of one table.
        """
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """A view of all tables."""
        ...

    def beside(self) -> "Beside":
        """An empty store that may take this one's place, to be built by any thread."""
        ...


class Beside(Store, Protocol):
    """A store that is built beside one that is in use."""

    def promote(self) -> None:
        """Take the place of the other, whose readers go on without noticing; called by the other's
        writing thread, which goes on with the other. Raises Unavailable; then nothing changed.
        """
        ...

    def abandon(self) -> None:
        """Leave no trace; after `promote`, which leaves none either, without effect."""
        ...
