"""SQL of the tables, made from their shapes. Names come from `schema`, values are always bound."""

# Names in statements come from `schema`; values are always bound.
# ruff: noqa: S608

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from horolog.projections.schema import TABLES
from horolog.projections.tables import EXPIRES, GONE, FlatRow, Table

BY_NAME: Final = {table.name: table for table in TABLES}

META: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE checkpoints (
    projection TEXT NOT NULL, partition INTEGER NOT NULL, seq INTEGER NOT NULL,
    at_us INTEGER NOT NULL, PRIMARY KEY (projection, partition)
) WITHOUT ROWID;
"""

# Cost: an update moves a row of a clustered table about, and those are wide; measured 45 us against
# 34 us an update (bench/project.py), at 1 us more an insert.
_WIDE: Final = frozenset({"runs", "jobs"})


def creating() -> str:
    """Statements that make all tables."""
    return META + "".join(_creating(table) for table in TABLES)


def _creating(table: Table) -> str:
    columns = ", ".join(
        f"{column} NOT NULL" if column in table.key else column for column in table.columns
    )
    cluster = "" if table.name in _WIDE else " WITHOUT ROWID"
    made = f"CREATE TABLE {table.name} ({columns}, PRIMARY KEY ({_list(table.key)})){cluster};\n"
    for number, index in enumerate(table.indexes):
        made += f"CREATE INDEX {table.name}_{number} ON {table.name} ({_list(index)});\n"
    for column, is_set in ((EXPIRES, table.expires), (GONE, table.deletes)):
        if is_set:
            made += (
                f"CREATE INDEX {table.name}_{column} ON {table.name} ({column}) "
                f"WHERE {column} IS NOT NULL;\n"
            )
    return made


class Shape(NamedTuple):
    """Which parts of a row a write sets."""

    table: str
    groups: tuple[bool, ...]
    is_gone: bool


def shape_of(table: Table, row: FlatRow) -> Shape:
    """Shape of a flat row."""
    groups = tuple([row[start] is not None for start in table.starts])
    return Shape(table.name, groups, table.deletes and row[len(table.key)] is not None)


@cache
def places(shape: Shape) -> tuple[int, ...]:
    """Where a flat row holds what `upserting` takes for a row of this shape."""
    table = BY_NAME[shape.table]
    found = [*range(len(table.key)), *([len(table.key)] if shape.is_gone else [])]
    for is_set, (start, end) in zip(shape.groups, table.spans(), strict=True):
        found += range(start, end) if is_set else ()
    return tuple(found)


# Cost: naming only what is set makes an update of a run 15 us where all its columns take 23.
@cache
def upserting(shape: Shape, rows: int) -> str:
    """Write so many rows of one shape: of each group the higher stamp stays."""
    table = BY_NAME[shape.table]
    columns = [table.columns[place] for place in places(shape)]
    one = f"({', '.join('?' * len(columns))})"
    updates: list[str] = []
    if shape.is_gone:
        updates.append(f"{GONE} = max({_stamp(GONE)}, excluded.{GONE})")
    for is_set, (start, end) in zip(shape.groups, table.spans(), strict=True):
        stamp = table.columns[start]
        is_newer = f"excluded.{stamp} > {_stamp(stamp)}"
        updates += [
            f"{column} = iif({is_newer}, excluded.{column}, {column})"
            for column in table.columns[start:end]
            if is_set
        ]
    return (
        f"INSERT INTO {table.name} ({_list(columns)}) VALUES {', '.join([one] * rows)} "
        f"ON CONFLICT ({_list(table.key)}) DO UPDATE SET {', '.join(updates)}"
    )


def _stamp(column: str) -> str:
    return f"ifnull({column}, -1)"


@cache
def getting(name: str) -> str:
    """One row by its key."""
    table = BY_NAME[name]
    return f"SELECT {_list(table.columns)} FROM {name} WHERE {_match(table.key)}"


@cache
def scanning(name: str) -> str:
    """All rows that are there at an instant, in the order of their keys."""
    table = BY_NAME[name]
    there = is_there(table, "t")
    parent = table.lives_with
    if parent is not None:
        same = " AND ".join(f"p.{column} = t.{column}" for column in parent.key)
        there += (
            f" AND EXISTS (SELECT 1 FROM {parent.name} AS p WHERE {same}"
            f" AND {is_there(parent, 'p')})"
        )
    columns = ", ".join(f"t.{column}" for column in table.columns)
    order = ", ".join(f"t.{column}" for column in table.key)
    return f"SELECT {columns} FROM {name} AS t WHERE {there} ORDER BY {order}"


def is_there(table: Table, alias: str) -> str:
    """Condition on a row at the instant `:now_us`."""
    stamp = f"{alias}.{table.groups[0].stamp}"
    there = f"{stamp} IS NOT NULL"
    if table.deletes:
        there += f" AND {stamp} > {_stamp(f'{alias}.{GONE}')}"
    if table.expires:
        there += f" AND ({alias}.{EXPIRES} IS NULL OR {alias}.{EXPIRES} > :now_us)"
    return there


@cache
def ended(name: str) -> str:
    """Keys of rows that may be removed: `now_us`, `limit`."""
    table = BY_NAME[name]
    assert table.expires or table.deletes, name
    column = EXPIRES if table.expires else GONE
    unless = "" if table.expires else f" AND {_stamp(table.groups[0].stamp)} <= {GONE}"
    return f"SELECT {_list(table.key)} FROM {name} WHERE {column} <= ?{unless} LIMIT ?"


@cache
def removing(name: str, key: tuple[str, ...], rows: int) -> str:
    """Remove the rows with so many keys, or beginnings of keys, in one statement."""
    one = f"({', '.join('?' * len(key))})"
    # Through a name: SQLite searches by the key, where it would scan for `IN (VALUES ...)`.
    return (
        f"WITH gone AS (VALUES {', '.join([one] * rows)}) "
        f"DELETE FROM {name} WHERE ({_list(key)}) IN (SELECT * FROM gone)"
    )


def _list(columns: Sequence[str]) -> str:
    return ", ".join(columns)


def _match(columns: Sequence[str]) -> str:
    return " AND ".join(f"{column} = ?" for column in columns)
