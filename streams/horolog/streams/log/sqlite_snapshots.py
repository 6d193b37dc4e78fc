"""Snapshot records in `ledger.db`: each with its checksum, and all of a partition with one.

The sum of a partition is the exclusive or of its rows' checksums, kept with them. A page of rows
from another time, or one that went missing, fits the file but not the sum: recovery would go on
from a job's older state without the events in between.
"""

# Statements are put together from this module's constants and marks; values are only ever bound.
# ruff: noqa: S608

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Final

from horolog.schemas.errors import DATA_DIR_CORRUPT, Corrupt
from horolog.schemas.framing import encode_framed
from horolog.schemas.records import JobSnapshot, KeysSnapshot, PartitionSnapshot, RunSnapshot
from horolog.streams.log.protocol import SnapshotRecord
from horolog.streams.log.rows import decoded, snapshot_sum

Entries = tuple[tuple[str, SnapshotRecord | None], ...]

_ROWS_AT_ONCE: Final = 64
_RECORDS: Final[tuple[type[SnapshotRecord], ...]] = (
    JobSnapshot,
    RunSnapshot,
    KeysSnapshot,
    PartitionSnapshot,
)


def write_snapshots(cursor: sqlite3.Cursor, partition: int, entries: Entries) -> None:
    """Put records under their keys, and remove those that are None, in the open transaction."""
    total = _sum(cursor, partition)
    if total is None:
        # The file of a release that kept no sum.
        rows = cursor.execute("SELECT crc FROM snapshots WHERE partition = ?", (partition,))
        total = 0
        for (crc,) in rows:
            total ^= crc
    # A key may come twice; the last record under it counts.
    latest = dict(entries)
    keys = list(latest)
    for first in range(0, len(keys), _ROWS_AT_ONCE):
        some = {key: latest[key] for key in keys[first : first + _ROWS_AT_ONCE]}
        total ^= _replace(cursor, partition, some)
    _note(cursor, partition, total)


def _replace(
    cursor: sqlite3.Cursor, partition: int, some: Mapping[str, SnapshotRecord | None]
) -> int:
    """Put some records in the place of those under their keys; what the sum changes by.

    Cost: three statements for all of them. With each one this thread gives up the interpreter, and
    in a herd waits to have it back: two for each record took a third of the host's time.
    """
    at_keys = f"WHERE partition = ? AND key IN ({', '.join('?' * len(some))})"
    place = (partition, *some)
    change = 0
    for (crc,) in cursor.execute(f"SELECT crc FROM snapshots {at_keys}", place):
        change ^= crc
    cursor.execute(f"DELETE FROM snapshots {at_keys}", place)
    values: list[int | str | bytes] = []
    for key, record in some.items():
        if record is not None:
            framed = encode_framed(record)
            crc = snapshot_sum(partition, key, framed)
            change ^= crc
            values += (partition, key, framed, crc)
    if values:
        rows = ", ".join(["(?, ?, ?, ?)"] * (len(values) // 4))
        cursor.execute(f"INSERT INTO snapshots VALUES {rows}", values)
    return change


def forget_snapshots(cursor: sqlite3.Cursor, partition: int) -> None:
    """Remove all records of a partition, in the open transaction."""
    cursor.execute("DELETE FROM snapshots WHERE partition = ?", (partition,))
    _note(cursor, partition, 0)


def read_snapshots(
    reader: sqlite3.Connection, partition: int
) -> Iterator[tuple[str, SnapshotRecord]]:
    """All records of a partition, of one instant. Raises Corrupt, at the end if a row is missing
    or is not of that instant.
    """
    reader.execute("BEGIN")
    expected = _sum(reader, partition)
    total = 0
    rows = reader.execute("SELECT key, data, crc FROM snapshots WHERE partition = ?", (partition,))
    while found := rows.fetchmany(_ROWS_AT_ONCE):
        for key, data, crc in found:
            if snapshot_sum(partition, key, data) != crc:
                raise Corrupt(
                    DATA_DIR_CORRUPT,
                    f"ledger partition {partition}: the checksum of the snapshot {key} does not "
                    "fit its data",
                )
            total ^= crc
            yield key, decoded(partition, data, _RECORDS)
    reader.execute("COMMIT")
    if expected is not None and total != expected:
        raise Corrupt(
            DATA_DIR_CORRUPT,
            f"ledger partition {partition}: the snapshots are not all of one time, or some are "
            "missing: their common checksum does not fit",
        )


def _sum(source: sqlite3.Connection | sqlite3.Cursor, partition: int) -> int | None:
    row = source.execute("SELECT value FROM meta WHERE key = ?", (_key(partition),)).fetchone()
    return None if row is None else int(row[0])


def _note(cursor: sqlite3.Cursor, partition: int, total: int) -> None:
    cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_key(partition), str(total)))


def _key(partition: int) -> str:
    return f"snapshots.{partition}"
