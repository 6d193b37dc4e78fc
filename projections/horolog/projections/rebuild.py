"""Folding a whole log, and proving that two stores hold the same.

The tables are a function of the log, so those built anew must equal those in use, row by row; the
first difference says where to look.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from horolog.projections.fold import Fold, Source
from horolog.projections.known import RETENTION_US
from horolog.projections.schema import TABLES
from horolog.projections.store import Snapshot, Store, positions_of
from horolog.projections.tables import FlatRow, Key, Table, Value, key_of

EVENTS_AT_ONCE: Final = 5_000
"""Folded before a write: a rebuild has no readers to wait."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a fold over a log has come."""

    partition: int
    seq: int
    events: int
    """Folded since it began, of all partitions."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where two stores hold something else."""

    table: str
    key: Key
    column: str
    """Empty: the row is in one of them only."""
    one: Value
    other: Value

    def __str__(self) -> str:
        if not self.column:
            have, lack = ("first", "second") if self.one is not None else ("second", "first")
            return f"{self.table} {self.key}: in the {have} only, not in the {lack}"
        return f"{self.table} {self.key}: {self.column} is {self.one!r} and {self.other!r}"


def follow(
    fold: Fold,
    source: Source,
    *,
    upto: Mapping[int, int] | None = None,
    write: Callable[[], None] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Fold what the log holds above the fold's positions, and write it.

    `upto`: fold nothing above these positions; partitions that are not named are left out.
    `write`: called instead of `fold.write`, for who counts on it. Raises Corrupt, Unavailable.
    """
    write = write or fold.write
    events = 0
    for partition in range(source.partitions) if upto is None else sorted(upto):
        end = None if upto is None else upto[partition]
        if end is not None and fold.position(partition) >= end:
            continue
        for batch in source.read(partition, fold.position(partition)):
            events -= fold.events_pending
            fold.fold(batch)
            events += fold.events_pending
            if fold.events_pending >= EVENTS_AT_ONCE:
                write()
                progress(Progress(partition=partition, seq=fold.position(partition), events=events))
            if end is not None and fold.position(partition) >= end:
                break
        write()
        progress(Progress(partition=partition, seq=fold.position(partition), events=events))


def rebuild(
    source: Source,
    store: Store,
    *,
    retention_us: int = RETENTION_US,
    upto: Mapping[int, int] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Fold a log into a store. One that was broken off goes on where its store ends. `upto` are
    positions at the end of batches, as every store has them.
    """
    fold = Fold(source, store, retention_us=retention_us)
    follow(fold, source, upto=upto, progress=progress)


def digest(snapshot: Snapshot) -> dict[str, str]:
    """SHA-256 of the rows of each table, in order; the same for every store that holds the same."""
    encode = msgspec.msgpack.Encoder().encode
    digests: dict[str, str] = {}
    for table in TABLES:
        hashed = hashlib.sha256()
        for row in snapshot.rows(table):
            hashed.update(encode(row))
        digests[table.name] = hashed.hexdigest()
    return digests


def differences(one: Snapshot, other: Snapshot) -> Iterator[Difference]:
    """Where two snapshots differ, in the order of tables and keys; reads as far as it is asked."""
    for table in TABLES:
        yield from _differences(table, one.rows(table), other.rows(table))


def verify(
    source: Source, live: Snapshot, store: Store, *, retention_us: int = RETENTION_US
) -> Difference | None:
    """Fold the log into an empty store up to the positions of a snapshot, and compare: the first
    difference, or None if the snapshot holds what the log says.
    """
    rebuild(source, store, retention_us=retention_us, upto=positions_of(live.checkpoints))
    with store.snapshot() as built:
        return next(differences(live, built), None)


def _differences(
    table: Table, ones: Iterator[FlatRow], others: Iterator[FlatRow]
) -> Iterator[Difference]:
    one, other = next(ones, None), next(others, None)
    while one is not None or other is not None:
        if other is None or (one is not None and key_of(table, one) < key_of(table, other)):
            assert one is not None
            yield _only(table, one, in_first=True)
            one = next(ones, None)
        elif one is None or key_of(table, other) < key_of(table, one):
            yield _only(table, other, in_first=False)
            other = next(others, None)
        else:
            yield from _columns(table, one, other)
            one, other = next(ones, None), next(others, None)


def _columns(table: Table, one: FlatRow, other: FlatRow) -> Iterator[Difference]:
    for column, this, that in zip(table.columns, one, other, strict=True):
        if this != that:
            yield Difference(
                table=table.name, key=key_of(table, one), column=column, one=this, other=that
            )


def _only(table: Table, row: FlatRow, *, in_first: bool) -> Difference:
    key = key_of(table, row)
    here = str(_values(table, row))
    return Difference(
        table=table.name,
        key=key,
        column="",
        one=here if in_first else None,
        other=None if in_first else here,
    )


def _values(table: Table, row: FlatRow) -> Sequence[Value]:
    return row[len(table.key) :]
