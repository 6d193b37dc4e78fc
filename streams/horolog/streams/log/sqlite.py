"""The embedded log: one SQLite file, WAL, `synchronous=FULL`, a row a batch.

A row holds the events of a batch one after another, each in single-object encoding behind its
length, and a checksum over them that is chained over the row before: a file that was torn, cut,
edited or copied without its WAL ends at a whole batch or is refused, and never has a gap. The
snapshots are written in the same transaction as the batch they came with.

The writer's connection is the host thread's; readers open their own, so any thread may read, and
another process too (`readonly`), each seeing what is committed.
"""

import contextlib
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, cast

from horolog.schemas.codec import Malformed
from horolog.schemas.errors import (
    DATA_DIR_CORRUPT,
    DATA_DIR_UNUSABLE,
    DISK_FULL,
    INVALID_SETTING,
    NEWER_FORMAT,
    UNAVAILABLE,
    Corrupt,
    InvalidInput,
    Unavailable,
)
from horolog.schemas.framing import decode_any, encode_framed
from horolog.schemas.records import Event
from horolog.streams.log.check import SequenceCheck
from horolog.streams.log.protocol import Batch, SnapshotRecord

FILE: Final = "ledger.db"
FORMAT: Final = 1
PARTITIONS_DEFAULT: Final = 2
PARTITIONS_MAX: Final = 64
ROWS_AT_ONCE: Final = 64
_LENGTH_BYTES: Final = 4

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE batches (
    partition INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (partition, last_seq)
) WITHOUT ROWID;
CREATE TABLE snapshots (
    partition INTEGER NOT NULL,
    key TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (partition, key)
) WITHOUT ROWID;
"""


class SqliteLog:
    """A log in the file `ledger.db` of a directory whose lock the caller holds (`DataDir`)."""

    def __init__(
        self, directory: Path, *, partitions: int | None = None, readonly: bool = False
    ) -> None:
        """Open the log, or make it with so many partitions (2 unless told).

        Raises Unavailable (cannot be opened), Corrupt (damaged, or of a newer release),
        InvalidInput (it has another number of partitions than asked for).
        """
        self._path = directory / FILE
        self._readonly = readonly
        if readonly and not self._path.exists():
            raise Unavailable(DATA_DIR_UNUSABLE, f"{directory} holds no {FILE}")
        with _errors(self._path):
            self._writer = self._connect(readonly=readonly)
            meta = self._meta() or self._create(partitions or PARTITIONS_DEFAULT)
        self._check_meta(meta)
        self.partitions = int(meta["partitions"])
        self.log_id = meta["log_id"]
        self.generation = int(meta["generation"])
        if partitions is not None and partitions != self.partitions:
            raise InvalidInput(
                INVALID_SETTING,
                f"scheduler.partitions is {partitions}, but the log in {directory} was made with "
                f"{self.partitions}; the number is fixed when a log is made",
                field="/scheduler/partitions",
            )
        with _errors(self._path):
            self._ends = [self._end(partition) for partition in range(self.partitions)]

    def append(self, batches: Sequence[Batch]) -> None:
        """See `Log`. All batches are one transaction."""
        ends = {batch.partition: self._ends[batch.partition] for batch in batches}
        with _errors(self._path):
            cursor = self._writer.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                for batch in batches:
                    ends[batch.partition] = self._insert(cursor, batch, ends[batch.partition])
                cursor.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    cursor.execute("ROLLBACK")
                raise
        for partition, end in ends.items():
            self._ends[partition] = end

    def last_seq(self, partition: int) -> int:
        """See `Log`. Of a log opened to be read: as it was when it was opened."""
        return self._ends[partition][0]

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """See `Log`."""
        with _errors(self._path), contextlib.closing(self._connect(readonly=True)) as reader:
            rows = reader.execute(
                "SELECT first_seq, last_seq, data, crc FROM batches "
                "WHERE partition = ? AND last_seq > ? ORDER BY last_seq",
                (partition, after_seq),
            )
            check: SequenceCheck | None = None
            before = self._crc_before(reader, partition, after_seq)
            while found := rows.fetchmany(ROWS_AT_ONCE):
                for first_seq, last_seq, data, crc in found:
                    before = _chained(partition, last_seq, data, crc, before)
                    events = _events(partition, data)
                    if check is None:
                        # What follows nothing must be the very beginning.
                        begin = first_seq - 1 if after_seq else 0
                        check = SequenceCheck(partition, begin)
                        _check_joint(partition, first_seq, after_seq)
                    check.next(events)
                    kept = tuple(event for event in events if event.seq > after_seq)
                    yield Batch(partition=partition, events=kept)

    def snapshots(self, partition: int) -> Iterator[tuple[str, SnapshotRecord]]:
        """See `Log`."""
        with _errors(self._path), contextlib.closing(self._connect(readonly=True)) as reader:
            rows = reader.execute(
                "SELECT key, data FROM snapshots WHERE partition = ?", (partition,)
            )
            while found := rows.fetchmany(ROWS_AT_ONCE):
                for key, data in found:
                    yield key, cast("SnapshotRecord", _decoded(partition, data))

    def new_generation(self) -> int:
        """Say that this log is a copy that will be written on its own, or was cut back: tokens of
        its attempts are above all that the original ever gave. Returns the generation.
        """
        with _errors(self._path):
            self.generation += 1
            self._writer.execute(
                "UPDATE meta SET value = ? WHERE key = 'generation'", (str(self.generation),)
            )
        return self.generation

    def backup(self, directory: Path) -> None:
        """Copy the log, as of now, into another directory; may be called while it is written."""
        directory.mkdir(parents=True, exist_ok=True)
        with (
            _errors(self._path),
            contextlib.closing(self._connect(readonly=True)) as source,
            contextlib.closing(sqlite3.connect(directory / FILE)) as target,
        ):
            source.backup(target)

    def close(self) -> None:
        """See `Log`."""
        self._writer.close()

    # --- parts

    def _connect(self, *, readonly: bool) -> sqlite3.Connection:
        mode = "ro" if readonly else "rwc"
        connection = sqlite3.connect(
            f"file:{self._path.resolve()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA busy_timeout = 5000")
        if not readonly:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            # The WAL is folded back every 16 MiB: seldom enough not to matter in a herd.
            connection.execute("PRAGMA wal_autocheckpoint = 4096")
        return connection

    def _meta(self) -> dict[str, str]:
        (verdict,) = self._writer.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise Corrupt(DATA_DIR_CORRUPT, f"{self._path}: {verdict}")
        if not self._writer.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            return {}
        return dict(self._writer.execute("SELECT key, value FROM meta").fetchall())

    def _create(self, partitions: int) -> dict[str, str]:
        if self._readonly:
            raise Corrupt(DATA_DIR_CORRUPT, f"{self._path} holds no log")
        if not 1 <= partitions <= PARTITIONS_MAX:
            raise InvalidInput(
                INVALID_SETTING,
                f"scheduler.partitions is {partitions}, from 1 to {PARTITIONS_MAX} are right",
                field="/scheduler/partitions",
            )
        meta = {
            "format": str(FORMAT),
            "partitions": str(partitions),
            "log_id": secrets.token_hex(8),
            "generation": "1",
        }
        rows = ", ".join(f"('{key}', '{value}')" for key, value in meta.items())
        self._writer.executescript(
            f"BEGIN IMMEDIATE; {_TABLES} INSERT INTO meta VALUES {rows}; COMMIT;"  # noqa: S608
        )
        return meta

    def _check_meta(self, meta: dict[str, str]) -> None:
        found = int(meta.get("format", "0"))
        if found > FORMAT:
            raise Corrupt(
                NEWER_FORMAT,
                f"{self._path} has format {found}, this release reads up to {FORMAT}",
            )
        if not {"format", "partitions", "log_id", "generation"} <= meta.keys():
            raise Corrupt(DATA_DIR_CORRUPT, f"{self._path} does not say which log it is")

    def _end(self, partition: int) -> tuple[int, int]:
        """`seq` and checksum of the last row of a partition."""
        row = self._writer.execute(
            "SELECT last_seq, crc FROM batches WHERE partition = ? ORDER BY last_seq DESC LIMIT 1",
            (partition,),
        ).fetchone()
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def _crc_before(self, reader: sqlite3.Connection, partition: int, after_seq: int) -> int | None:
        row = reader.execute(
            "SELECT last_seq, crc FROM batches WHERE partition = ? AND last_seq <= ? "
            "ORDER BY last_seq DESC LIMIT 1",
            (partition, after_seq),
        ).fetchone()
        return 0 if row is None else int(row[1])

    def _insert(
        self, cursor: sqlite3.Cursor, batch: Batch, end: tuple[int, int]
    ) -> tuple[int, int]:
        if batch.first_seq != end[0] + 1:
            raise Corrupt(
                DATA_DIR_CORRUPT,
                f"ledger partition {batch.partition} ends at {end[0]}, a batch begins at "
                f"{batch.first_seq}",
            )
        data = _data(batch.events)
        crc = _crc(data, end[1])
        cursor.execute(
            "INSERT INTO batches (partition, last_seq, first_seq, data, crc) VALUES (?,?,?,?,?)",
            (batch.partition, batch.last_seq, batch.first_seq, data, crc),
        )
        for key, record in batch.snapshots:
            if record is None:
                cursor.execute(
                    "DELETE FROM snapshots WHERE partition = ? AND key = ?", (batch.partition, key)
                )
            else:
                cursor.execute(
                    "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
                    (batch.partition, key, encode_framed(record)),
                )
        return batch.last_seq, crc


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    """SQLite's errors by what the caller does."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith("SQLITE_FULL"):
            raise Unavailable(
                DISK_FULL, f"{path}: no room to write; nothing was written"
            ) from error
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise Corrupt(DATA_DIR_CORRUPT, f"{path}: {error}") from error
        if isinstance(error, sqlite3.OperationalError):
            raise Unavailable(UNAVAILABLE, f"{path}: {error}") from error
        raise


def _data(events: Sequence[Event]) -> bytes:
    parts: list[bytes] = []
    for event in events:
        framed = encode_framed(event)
        parts += (len(framed).to_bytes(_LENGTH_BYTES, "big"), framed)
    return b"".join(parts)


def _crc(data: bytes, before: int) -> int:
    """CRC-32 of a row's data, begun with the one of the row before."""
    return zlib.crc32(data, before)


def _chained(partition: int, last_seq: int, data: bytes, crc: int, before: int | None) -> int:
    if before is not None and _crc(data, before) != crc:
        raise Corrupt(
            DATA_DIR_CORRUPT,
            f"ledger partition {partition}: the checksum of the batch that ends at {last_seq} "
            "does not fit its data or the batch before it",
        )
    return crc


def _check_joint(partition: int, first_seq: int, after_seq: int) -> None:
    if first_seq > after_seq + 1:
        raise Corrupt(
            DATA_DIR_CORRUPT,
            f"ledger partition {partition}: seq {first_seq} where {after_seq + 1} was expected",
        )


def _events(partition: int, data: bytes) -> tuple[Event, ...]:
    events: list[Event] = []
    place = 0
    end = len(data)
    while place < end:
        size = int.from_bytes(data[place : place + _LENGTH_BYTES], "big")
        place += _LENGTH_BYTES
        events.append(cast("Event", _decoded(partition, data[place : place + size])))
        place += size
    return tuple(events)


def _decoded(partition: int, data: bytes) -> object:
    try:
        return decode_any(data)
    except Malformed as error:
        raise Corrupt(DATA_DIR_CORRUPT, f"ledger partition {partition}: {error.detail}") from error
