"""The tables on one SQLite file, `history.db`; and how this part opens SQLite files.

Disposable: WAL, `synchronous=NORMAL`, and a file that is damaged, of another layout, or folded from
another log is thrown away and built again from the ledger. Rows and positions are one transaction.
A row carries the stamp of each of its groups; the upsert keeps the higher one, as Cassandra does
with cells, so the file holds the same whatever was repeated or came in another order.

One connection writes; each read takes one of its own from a pool and sees one instant.
"""

# Names in statements come from `schema`; values are always bound.
# ruff: noqa: S608

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from horolog.projections.schema import TABLES
from horolog.projections.store import Checkpoint, Checkpoints, Origin, positions_of, time_of
from horolog.projections.stores import sql
from horolog.projections.stores.sqlite_queries import SqliteQueries
from horolog.projections.tables import GONE_KEPT_US, Changes, FlatRow, Key, Row, Table
from horolog.schemas.errors import (
    DATA_DIR_CORRUPT,
    DISK_FULL,
    SHUTTING_DOWN,
    UNAVAILABLE,
    Corrupt,
    Unavailable,
)

FORMAT: Final = 2
"""Of the file; bumped when the same tables are laid out differently."""
ROWS_AT_ONCE: Final = 64


@contextlib.contextmanager
def errors(path: Path) -> Generator[None]:
    """SQLite's errors by what the caller does."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith("SQLITE_FULL"):
            raise Unavailable(DISK_FULL, f"{path}: no room to write") from error
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise Corrupt(DATA_DIR_CORRUPT, f"{path}: {error}") from error
        if isinstance(error, sqlite3.OperationalError):
            raise Unavailable(UNAVAILABLE, f"{path}: {error}") from error
        raise


def connect(path: Path, *, auto_vacuum: bool = False) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time. `auto_vacuum`: a new file can give back
    the room of what is removed from it.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA busy_timeout = 5000")
    if auto_vacuum:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Generator[None]:
    """All or nothing."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class Readers:
    """Connections for reading, lent to one read at a time."""

    def __init__(self, path: Path) -> None:
        """None is open yet."""
        self._path = path
        self._free: list[sqlite3.Connection] = []
        self._changed = threading.Condition()
        self._lent = 0
        self._is_shut = False
        self._is_closed = False

    @contextlib.contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """A connection in a transaction: all reads within it see one instant."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shut)
            if self._is_closed:
                raise Unavailable(SHUTTING_DOWN, f"{self._path} is closed")
            self._lent += 1
            connection = self._free.pop() if self._free else None
        try:
            with errors(self._path):
                if connection is None:
                    connection = connect(self._path)
                with transaction(connection, "DEFERRED"):
                    yield connection
        finally:
            self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection | None) -> None:
        with self._changed:
            self._lent -= 1
            if connection is not None:
                self._free.append(connection)
            if self._is_closed:
                self._close_free()
            self._changed.notify_all()

    @contextlib.contextmanager
    def shut(self) -> Generator[None]:
        """Let reads wait, and close all connections: the file is to be replaced."""
        with self._changed:
            self._is_shut = True
            self._changed.wait_for(lambda: not self._lent)
            self._close_free()
        try:
            yield
        finally:
            with self._changed:
                self._is_shut = False
                self._changed.notify_all()

    def close(self) -> None:
        """Lend no more; those that are lent are closed when they come back."""
        with self._changed:
            self._is_closed = True
            self._close_free()

    def _close_free(self) -> None:
        while self._free:
            self._free.pop().close()


class SqliteSnapshot:
    """See `Snapshot`: one read transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Within a transaction."""
        self._connection = connection
        self.checkpoints: Checkpoints = _checkpoints(connection)

    def rows(self, table: Table) -> Iterator[FlatRow]:
        """See `Snapshot`."""
        rows = self._connection.execute(
            sql.scanning(table.name), {"now_us": time_of(self.checkpoints)}
        )
        while found := rows.fetchmany(ROWS_AT_ONCE):
            yield from map(FlatRow, found)


class SqliteReading(SqliteQueries):
    """See `Queries`: the tables that another process writes."""

    def __init__(self, path: Path) -> None:
        """Of a file that is there."""
        self._readers = Readers(path)
        super().__init__(self._readers.read)

    def positions(self) -> Mapping[int, int]:
        """See `Queries`."""
        with self._readers.read() as connection:
            return positions_of(_checkpoints(connection))

    def shut(self) -> contextlib.AbstractContextManager[None]:
        """Let reads wait, with nothing open: the file is to be replaced."""
        return self._readers.shut()

    def close(self) -> None:
        """Close the file."""
        self._readers.close()


class SqliteHistory(SqliteQueries):
    """See `Store` and `Queries`."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it."""
        self.path = path
        self._readers = Readers(path)
        super().__init__(self._readers.read)
        try:
            with errors(path):
                self._writer = self._open()
        except Corrupt:
            remove(path)
            with errors(path):
                self._writer = self._open()

    def _open(self) -> sqlite3.Connection:
        writer = connect(self.path)
        # A batch of a herd fits; folded back every 16 MiB, seldom enough not to matter.
        writer.execute("PRAGMA cache_size = -32768")
        writer.execute("PRAGMA wal_autocheckpoint = 4096")
        (found,) = writer.execute("PRAGMA user_version").fetchone()
        if found != FORMAT:
            writer.close()
            remove(self.path)
            writer = connect(self.path)
            _create(writer)
        self._checkpoints = _checkpoints(writer)
        self._positions = positions_of(self._checkpoints)
        return writer

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
        self._readers.close()

    # --- `Store`

    def begin(self, origin: Origin) -> None:
        """See `Store`."""
        with errors(self.path):
            told = _told(origin)
            meta = dict(self._writer.execute("SELECT key, value FROM meta"))
            if all(meta.get(key) == value for key, value in told.items()):
                return
            with transaction(self._writer):
                for table in ("checkpoints", *(table.name for table in TABLES)):
                    self._writer.execute(f"DELETE FROM {table}")
                self._writer.executemany(
                    "INSERT OR REPLACE INTO meta VALUES (?, ?)", list(told.items())
                )
        self._checkpoints, self._positions = {}, {}

    def generation(self, log_id: str) -> int | None:
        """Generation of a log that the tables are folded from; None: they are of another log, or
        of none.
        """
        with errors(self.path):
            meta = dict(self._writer.execute("SELECT key, value FROM meta"))
        return int(meta["generation"]) if meta.get("log_id") == log_id else None

    def checkpoints(self) -> Checkpoints:
        """See `Store`."""
        return self._checkpoints

    def positions(self) -> Mapping[int, int]:
        """See `Queries`."""
        return self._positions

    def write(self, changes: Changes, checkpoints: Checkpoints) -> None:
        """See `Store`."""
        with errors(self.path), transaction(self._writer):
            for table, rows in changes.tables():
                shapes: dict[sql.Shape, list[FlatRow]] = {}
                for row in rows:
                    shapes.setdefault(sql.shape_of(table, row), []).append(row)
                for shape, alike in shapes.items():
                    places = sql.places(shape)
                    picked = [[row[place] for place in places] for row in alike]
                    _execute_many(self._writer, picked, partial(sql.upserting, shape))
            self._writer.executemany(
                "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)",
                [
                    (projection, partition, checkpoint.seq, checkpoint.at_us)
                    for (projection, partition), checkpoint in checkpoints.items()
                ],
            )
        self._checkpoints = {**self._checkpoints, **checkpoints}
        self._positions = positions_of(self._checkpoints)

    def get(self, table: Table, key: Key) -> Row | None:
        """See `Store`."""
        with errors(self.path):
            row = self._writer.execute(sql.getting(table.name), key).fetchone()
        return None if row is None else dict(zip(table.columns, row, strict=True))

    def expire(self, now_us: int, limit: int) -> int:
        """See `Store`."""
        most = 0
        with errors(self.path):
            for table in TABLES:
                if not table.expires and not table.deletes:
                    continue
                until_us = now_us if table.expires else now_us - GONE_KEPT_US
                ended = self._writer.execute(sql.ended(table.name), (until_us, limit)).fetchall()
                if ended:
                    most = max(most, len(ended))
                    self._remove(table, ended)
        return most

    def _remove(self, table: Table, keys: Sequence[Sequence[Any]]) -> None:
        names = [
            *(child.name for child in TABLES if child.lives_with is table),
            table.name,
        ]
        with transaction(self._writer):
            for name in names:
                _execute_many(self._writer, keys, partial(sql.removing, name, table.key))

    @contextlib.contextmanager
    def snapshot(self) -> Generator[SqliteSnapshot]:
        """See `Store`."""
        with self._readers.read() as connection:
            yield SqliteSnapshot(connection)

    def beside(self) -> "BesideHistory":
        """See `Store`. One at a time: what an earlier one left is removed."""
        path = self.path.with_name(f"{self.path.name}.new")
        remove(path)
        return BesideHistory(path, self)

    def replace_by(self, path: Path) -> None:
        """Go on with another file in the place of this one. Raises Unavailable if another process
        has this one open: its WAL must not meet the new file.
        """
        with errors(self.path), self._readers.shut():
            self._leave_wal()
            try:
                path.replace(self.path)
            except OSError:
                self._writer.execute("PRAGMA journal_mode = WAL")
                raise
            self._writer.close()
            self._writer = self._open()

    def _leave_wal(self) -> None:
        self._writer.execute("PRAGMA busy_timeout = 0")
        try:
            self._writer.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            raise Unavailable(
                UNAVAILABLE, f"{self.path} is open in another process: close it there"
            ) from error
        finally:
            self._writer.execute("PRAGMA busy_timeout = 5000")


class BesideHistory(SqliteHistory):
    """See `Beside`."""

    def __init__(self, path: Path, live: SqliteHistory) -> None:
        """A new file, which will replace that of `live`."""
        super().__init__(path)
        self._live = live
        with errors(path):
            # Nothing is lost with it: until it is promoted, it is built again.
            self._writer.execute("PRAGMA synchronous = OFF")

    def promote(self) -> None:
        """See `Beside`."""
        with errors(self.path):
            self._writer.execute("PRAGMA synchronous = FULL")
            self._writer.execute("PRAGMA journal_mode = DELETE")
        self.close()
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self._live.replace_by(self.path)

    def abandon(self) -> None:
        """See `Beside`."""
        self.close()
        remove(self.path)


def remove(path: Path) -> None:
    """Remove a file that nobody has open, with its WAL."""
    for suffix in ("-wal", "-shm", "-journal", ""):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _execute_many(
    connection: sqlite3.Connection,
    rows: Sequence[Sequence[Any]],
    statement: Callable[[int], str],
) -> None:
    """Execute a statement made for a number of rows, many of them at once.

    Cost: the interpreter is given up at each statement, and beside a thread that computes it comes
    back 5 ms later; a row a statement took 6 ms a row then, 64 rows a statement 60 us (measured).
    """
    begin = 0
    count = ROWS_AT_ONCE
    while begin < len(rows):
        # Powers of two: few statements, so that each stays prepared.
        while count > len(rows) - begin:
            count //= 2
        part = rows[begin : begin + count]
        connection.execute(statement(count), [value for row in part for value in row])
        begin += count


def _create(writer: sqlite3.Connection) -> None:
    writer.executescript(
        f"BEGIN IMMEDIATE; {sql.creating()} PRAGMA user_version = {FORMAT}; COMMIT;"
    )


def _told(origin: Origin) -> dict[str, str]:
    return {
        "log_id": origin.log_id,
        "generation": str(origin.generation),
        "retention_us": str(origin.retention_us),
        "versions": " ".join(f"{name}={version}" for name, version in origin.versions),
    }


def _checkpoints(connection: sqlite3.Connection) -> dict[tuple[str, int], Checkpoint]:
    return {
        (projection, partition): Checkpoint(seq, at_us)
        for projection, partition, seq, at_us in connection.execute(
            "SELECT projection, partition, seq, at_us FROM checkpoints"
        )
    }
