"""Tables as projections write them, and changes to them, whichever store keeps them.

A row has a key and groups of columns. The columns of a group are decided by one event and written
together; the group carries that event's `at_us` as its stamp, and of two writes of a group the one
with the higher stamp stays. So writes need no reading, may be repeated and reordered, and a replay
changes nothing: in Cassandra a group is one frozen cell written `USING TIMESTAMP`, in SQLite the
upsert compares stamps.

The first group of a table leads: a row is there once its first group is, and ends when that group's
`expires_us` has passed or a `Delete` with a higher stamp came. The rows of a table that lives with
another end with the row whose key theirs begins with.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec

Value = str | int | bytes | None
Part = str | int
"""Of a key."""
Key = tuple[Part, ...]
Row = Mapping[str, Value]
"""By name of column, stamps included."""

EXPIRES: Final = "expires_us"
GONE: Final = "gone_us"
GONE_KEPT_US: Final = 86_400_000_000
"""So long a deleted row hides writes that come late."""


class Group(msgspec.Struct, frozen=True):
    """Columns that one event decides together."""

    stamp: str
    """Name of the column that holds the `at_us` of the event."""
    columns: tuple[str, ...]


class Table(msgspec.Struct, frozen=True):
    """Shape of a table. `columns` and `starts` lay a row out flat: key, `gone_us` if rows are
    deleted, then each group with its stamp first; the first group ends with `expires_us`.
    """

    name: str
    key: tuple[str, ...]
    groups: tuple[Group, ...]
    expires: bool = False
    """Whether rows have an end that is known when it is decided."""
    deletes: bool = False
    """Whether rows are deleted; such a table has one group."""
    lives_with: "Table | None" = None
    indexes: tuple[tuple[str, ...], ...] = ()
    """Further orders in which rows are read."""
    columns: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    blank: tuple[None, ...] = ()
    """What follows the key of a row of which nothing is set."""

    def __post_init__(self) -> None:
        """Lay the row out."""
        assert not self.deletes or len(self.groups) == 1
        assert self.lives_with is None or self.key[: len(self.lives_with.key)] == (
            self.lives_with.key
        )
        columns = [*self.key, *([GONE] if self.deletes else [])]
        starts: list[int] = []
        for number, group in enumerate(self.groups):
            starts.append(len(columns))
            columns += [group.stamp, *group.columns]
            if number == 0 and self.expires:
                columns.append(EXPIRES)
        msgspec.structs.force_setattr(self, "columns", tuple(columns))
        msgspec.structs.force_setattr(self, "starts", tuple(starts))
        msgspec.structs.force_setattr(self, "blank", (None,) * (len(columns) - len(self.key)))

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where each group begins, with its stamp, and ends in a flat row."""
        return zip(self.starts, (*self.starts[1:], len(self.columns)), strict=True)


class Upsert(msgspec.Struct, frozen=True, gc=False):
    """Set one group of the row with this key."""

    table: Table
    key: Key
    group: int
    """Place among the table's groups."""
    at_us: int
    """The event's: the stamp."""
    values: tuple[Value, ...]
    """Of the group's columns, in their order."""
    expires_us: int | None = None
    """End of the row, for its first group; None: not known yet. A store that counts a time to live
    takes what of it remains; one that has passed already ends the row all the same.
    """


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Remove the row with this key, unless it was written later."""

    table: Table
    key: Key
    at_us: int


Change = Upsert | Delete


class FlatRow(list[Value]):
    """What is to be written of one row, laid out as its table says; None where nothing is."""


class Changes:
    """The changes of one transaction, one write a row: what was planned, started and finished
    among them is written once.
    """

    def __init__(self) -> None:
        """Nothing to write."""
        self._rows: dict[str, tuple[Table, dict[Key, FlatRow]]] = {}

    def add(self, change: Change) -> None:
        """Take one more change, in any order."""
        table = change.table
        found = self._rows.get(table.name)
        if found is None:
            found = self._rows[table.name] = (table, {})
        rows = found[1]
        row = rows.get(change.key)
        if row is None:
            row = rows[change.key] = FlatRow(change.key + table.blank)
        if isinstance(change, Delete):
            place = len(table.key)
            row[place] = newer(row[place], change.at_us)
            return
        start = table.starts[change.group]
        stamp = row[start]
        if isinstance(stamp, int) and stamp >= change.at_us:
            return
        row[start] = change.at_us
        row[start + 1 : start + 1 + len(change.values)] = change.values
        if change.group == 0 and table.expires:
            row[start + 1 + len(change.values)] = change.expires_us

    def tables(self) -> Iterator[tuple[Table, Sequence[FlatRow]]]:
        """Rows to write, by table."""
        for table, rows in self._rows.values():
            yield table, list(rows.values())

    def __len__(self) -> int:
        """Number of rows."""
        return sum(len(rows) for _, rows in self._rows.values())


def newer(one: Value, other: int) -> int:
    """The higher of two stamps, the first of which may be missing."""
    return max(one, other) if isinstance(one, int) else other


def merge(table: Table, into: FlatRow, row: FlatRow) -> None:
    """Write a row over another of the same key: the higher stamp of each group stays."""
    if table.deletes:
        place = len(table.key)
        gone_us = row[place]
        if isinstance(gone_us, int):
            into[place] = newer(into[place], gone_us)
    for start, end in table.spans():
        stamp, present = row[start], into[start]
        if isinstance(stamp, int) and (not isinstance(present, int) or stamp > present):
            into[start:end] = row[start:end]


def is_there(table: Table, row: FlatRow, now_us: int) -> bool:
    """Whether a row is there at an instant of the log's time."""
    lead = table.starts[0]
    stamp = row[lead]
    if not isinstance(stamp, int):
        return False
    if table.deletes:
        gone_us = row[len(table.key)]
        if isinstance(gone_us, int) and gone_us >= stamp:
            return False
    if table.expires:
        expires_us = row[lead + 1 + len(table.groups[0].columns)]
        if isinstance(expires_us, int) and expires_us <= now_us:
            return False
    return True


def has_ended(table: Table, row: FlatRow, now_us: int) -> bool:
    """Whether a row was there and ended, or was deleted, by an instant of the log's time."""
    if table.deletes:
        gone_us = row[len(table.key)]
        return isinstance(gone_us, int) and gone_us <= now_us and not is_there(table, row, now_us)
    return isinstance(row[table.starts[0]], int) and not is_there(table, row, now_us)


def key_of(table: Table, row: FlatRow) -> Key:
    """Key of a flat row."""
    return cast("Key", tuple(row[: len(table.key)]))


def as_row(table: Table, row: FlatRow) -> Row:
    """A row by name of column."""
    return dict(zip(table.columns, row, strict=True))
