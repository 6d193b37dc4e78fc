"""The embedded log: one SQLite file, WAL, `synchronous=FULL`, a row a batch.

A file that was torn, cut, edited or copied without its WAL ends at a whole batch or is refused, and
never has a gap (`rows`). The snapshots are written in the same transaction as the batch they came
with, and so is the head of each partition: where it ends, with its checksum.

The writer's connection is the host thread's; readers open their own, so any thread may read, and
another process too (`readonly`), each seeing what is committed.
"""

import contextlib
import secrets
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from horolog.schemas.errors import (
    DATA_DIR_CORRUPT,
    DATA_DIR_UNUSABLE,
    FENCED,
    INVALID_SETTING,
    NEWER_FORMAT,
    Corrupt,
    Fenced,
    InvalidInput,
    Unavailable,
)
from horolog.streams.log.check import BrokenSequence, SequenceCheck, check_created
from horolog.streams.log.generation import next_generation, place_of
from horolog.streams.log.protocol import Batch, SnapshotRecord
from horolog.streams.log.rows import chain_begin, chained, pack, unpack
from horolog.streams.log.sqlite_file import FILE, connect, errors
from horolog.streams.log.sqlite_snapshots import forget_snapshots, read_snapshots, write_snapshots
from horolog.streams.log.tables import FORMAT, META, TABLES

PARTITIONS_DEFAULT: Final = 2
PARTITIONS_MAX: Final = 64
ROWS_AT_ONCE: Final = 64
BYTES_AT_ONCE: Final = 4 * 1024 * 1024
_SEQ_MAX: Final = (1 << 63) - 1


class _End(NamedTuple):
    """Where a partition ends."""

    seq: int
    crc: int
    epoch: int = 0
    at_us: int = 0


class SqliteLog:
    """A log in the file `ledger.db` of a directory whose lock the caller holds (`DataDir`)."""

    def __init__(
        self, directory: Path, *, partitions: int | None = None, readonly: bool = False
    ) -> None:
        """Open the log, or make it with so many partitions (2 unless told). A copy, made by
        `backup` or of the file, begins its own generation when it is first opened to be written.

        Raises Unavailable (cannot be opened), Corrupt (damaged, or of a newer release),
        InvalidInput (it has another number of partitions than asked for).
        """
        self._path = directory / FILE
        self._readonly = readonly
        if readonly and not self._path.exists():
            raise Unavailable(DATA_DIR_UNUSABLE, f"{directory} holds no {FILE}")
        with errors(self._path):
            self._own = connect(self._path, readonly=readonly)
        try:
            self._open(partitions)
        except BaseException:
            self._own.close()
            raise

    def _open(self, partitions: int | None) -> None:
        with errors(self._path):
            meta = self._meta() or self._create(partitions or PARTITIONS_DEFAULT)
        self.partitions = int(meta["partitions"])
        self.log_id = meta["log_id"]
        self.generation = int(meta["generation"])
        if partitions is not None and partitions != self.partitions:
            raise InvalidInput(
                INVALID_SETTING,
                f"scheduler.partitions is {partitions}, but the log in {self._path.parent} was "
                f"made with {self.partitions}; the number is fixed when a log is made",
                field="/scheduler/partitions",
            )
        with errors(self._path):
            # One transaction, so that the ends of all partitions are of one instant.
            self._own.execute("BEGIN")
            self._ends = [self._end(partition) for partition in range(self.partitions)]
            for partition in range(self.partitions):
                self._check_first(partition)
            self._own.execute("COMMIT")
        self.is_copy = False
        """Whether it was found to be a copy, and goes on as its own with this opening."""
        if not self._readonly:
            self._settle(meta)

    def _settle(self, meta: Mapping[str, str]) -> None:
        """Begin a generation if this is a copy; note where the log is, to know the next copy."""
        place = place_of(self._path)
        if meta["copied"] == "1" or meta.get("place", place) != place:
            self.new_generation()
            self.is_copy = True
        elif "place" not in meta:
            with self._transaction() as cursor:
                cursor.execute("INSERT INTO meta VALUES ('place', ?)", (place,))

    # --- the protocol

    def append(self, batches: Sequence[Batch]) -> None:
        """See `Log`. All batches are one transaction."""
        assert not self._readonly, f"{self._path} was opened to be read"
        ends = {batch.partition: self._ends[batch.partition] for batch in batches}
        with self._transaction() as cursor:
            for partition, end in ends.items():
                self._check_owned(cursor, partition, end)
            for batch in batches:
                ends[batch.partition] = self._insert(cursor, batch, ends[batch.partition])
            self._set_heads(cursor, ends)
        for partition, end in ends.items():
            self._ends[partition] = end

    def last_seq(self, partition: int) -> int:
        """See `Log`."""
        return self._ends[partition].seq

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """See `Log`."""
        with errors(self._path), contextlib.closing(connect(self._path, readonly=True)) as reader:
            end = self._end_at(reader, partition, after_seq)
            check = SequenceCheck(partition, end.seq, at_us=end.at_us, epoch=end.epoch)
            before = end.crc
            while rows := _some_rows(reader, partition, check.seq):
                for last_seq, data, crc in rows:
                    before = _checked(partition, last_seq, data, crc, before)
                    events = unpack(partition, data)
                    check.next(events)
                    if check.seq != last_seq:
                        raise BrokenSequence(partition, f"seq {last_seq}", f"seq {check.seq}")
                    if events[0].seq <= after_seq:
                        events = tuple(event for event in events if event.seq > after_seq)
                    yield Batch(partition=partition, events=events)

    def snapshots(self, partition: int) -> Iterator[tuple[str, SnapshotRecord]]:
        """See `Log`."""
        with errors(self._path), contextlib.closing(connect(self._path, readonly=True)) as reader:
            yield from read_snapshots(reader, partition)

    def close(self) -> None:
        """See `Log`."""
        self._own.close()

    # --- copies

    def backup(self, directory: Path) -> None:
        """Copy the log, as of now, into another directory; may be called while it is written, from
        any thread. The copy is marked as one. Raises InvalidInput if there is a log already.
        """
        place = directory / FILE
        if place.exists():
            raise InvalidInput(
                INVALID_SETTING, f"{place} exists; name a directory that holds no log"
            )
        part = place.with_suffix(".part")
        with errors(part):
            directory.mkdir(parents=True, exist_ok=True)
            part.unlink(missing_ok=True)
            with (
                contextlib.closing(connect(self._path, readonly=True)) as source,
                contextlib.closing(sqlite3.connect(part, isolation_level=None)) as target,
            ):
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")
                target.execute("PRAGMA synchronous = FULL")
                target.execute("UPDATE meta SET value = '1' WHERE key = 'copied'")
            # Only a whole copy ever has the name of a log.
            part.rename(place)

    def new_generation(self, keep: Mapping[int, int] | None = None) -> int:
        """Go on as another log: tokens are from now on above all that this log, or the one it was
        copied from, ever gave. Returns the generation.

        `keep`: partition -> the last `seq` to keep, the end of a batch; what comes after is cut
        off for good, and all snapshots with it (they may know what is cut off; recovery folds the
        ledger instead). Reads the whole log. Raises Corrupt at a fault that is not cut off,
        InvalidInput if a batch does not end there.
        """
        keep = keep or {}
        generation = self.generation + 1
        with self._transaction() as cursor:
            for partition, seq in keep.items():
                self._cut(cursor, partition, seq)
            ends: dict[int, _End] = {}
            for partition in range(self.partitions):
                kept = self._kept(partition, keep.get(partition))
                opening = next_generation(kept, generation)
                end = self._end_at(cursor, partition, None)
                ends[partition] = end if opening is None else self._insert(cursor, opening, end)
            self._set_heads(cursor, ends)
            noted = {"generation": str(generation), "copied": "0", "place": place_of(self._path)}
            cursor.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", noted.items())
        self._ends = [ends[partition] for partition in range(self.partitions)]
        self.generation = generation
        return generation

    def _cut(self, cursor: sqlite3.Cursor, partition: int, seq: int) -> None:
        below = cursor.execute(
            "SELECT last_seq FROM batches WHERE partition = ? AND last_seq <= ? "
            "ORDER BY last_seq DESC LIMIT 1",
            (partition, seq),
        ).fetchone()
        whole = 0 if below is None else int(below[0])
        if whole != seq:
            raise InvalidInput(
                INVALID_SETTING,
                f"partition {partition} cannot be cut back to seq {seq}: no batch ends there; "
                f"the last one before it ends at {whole}",
            )
        cursor.execute("DELETE FROM batches WHERE partition = ? AND last_seq > ?", (partition, seq))
        forget_snapshots(cursor, partition)

    def _kept(self, partition: int, to_seq: int | None) -> Iterator[Batch]:
        """The batches of a partition, as committed and up to `to_seq`: `read` does not see what
        this transaction changes, and a fault that is cut off is none.
        """
        if to_seq == 0:
            return
        for batch in self.read(partition, 0):
            yield batch
            if batch.last_seq == to_seq:
                return

    # --- parts

    @contextlib.contextmanager
    def _transaction(self) -> Generator[sqlite3.Cursor]:
        """All that is written within is committed, or none of it."""
        with errors(self._path):
            cursor = self._own.cursor()
            if self._own.in_transaction:
                # A rollback failed when the disk did.
                cursor.execute("ROLLBACK")
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                if self._own.in_transaction:
                    cursor.execute("ROLLBACK")
                raise
            finally:
                # An error that somebody keeps must not keep the file open.
                cursor.close()

    def _meta(self) -> dict[str, str]:
        (verdict,) = self._own.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise Corrupt(DATA_DIR_CORRUPT, f"{self._path}: {verdict}")
        tables = {row[0] for row in self._own.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return {}
        meta = dict(self._own.execute("SELECT * FROM meta").fetchall()) if "meta" in tables else {}
        numbers = {meta.get(key, "") for key in ("format", "partitions", "generation")}
        if not meta.keys() >= META or not all(number.isdecimal() for number in numbers):
            raise Corrupt(DATA_DIR_CORRUPT, f"{self._path} does not say which log it is")
        if int(meta["format"]) > FORMAT:
            raise Corrupt(
                NEWER_FORMAT,
                f"{self._path} has format {meta['format']}, this release reads up to {FORMAT}",
            )
        return meta

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
            "log_id": secrets.token_hex(8),
            "partitions": str(partitions),
            "generation": "1",
            "copied": "0",
            "place": place_of(self._path),
        }
        with self._transaction() as cursor:
            for statement in filter(str.strip, TABLES.split(";")):
                cursor.execute(statement)
            cursor.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
            heads = [
                (partition, 0, chain_begin(meta["log_id"], partition))
                for partition in range(partitions)
            ]
            cursor.executemany("INSERT INTO heads VALUES (?, ?, ?)", heads)
        # A copy of the file alone, without its WAL, must at least say which log it is.
        self._own.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return meta

    def _end(self, partition: int) -> _End:
        """The end of a partition, which its head must name too."""
        end = self._end_at(self._own, partition, None)
        head = self._own.execute(
            "SELECT last_seq, crc FROM heads WHERE partition = ?", (partition,)
        ).fetchone()
        if head is None or head[0] != end.seq or head[1] != end.crc:
            known = "no end" if head is None else f"seq {head[0]}"
            raise BrokenSequence(
                partition,
                f"the log to end at {known}, the last one known",
                f"that it ends at {end.seq}, in {self._path}",
            )
        return end

    def _end_at(
        self, source: sqlite3.Connection | sqlite3.Cursor, partition: int, seq: int | None
    ) -> _End:
        """The last row of a partition that ends at or before `seq`; None: of all."""
        row = source.execute(
            "SELECT last_seq, crc, writer_epoch, at_us FROM batches "
            "WHERE partition = ? AND last_seq <= ? ORDER BY last_seq DESC LIMIT 1",
            (partition, _SEQ_MAX if seq is None else seq),
        ).fetchone()
        return _End(0, chain_begin(self.log_id, partition)) if row is None else _End(*row)

    def _check_first(self, partition: int) -> None:
        row = self._own.execute(
            "SELECT data FROM batches WHERE partition = ? ORDER BY last_seq LIMIT 1", (partition,)
        ).fetchone()
        if row is not None:
            check_created(self, partition, unpack(partition, row[0])[0])

    def _check_owned(self, cursor: sqlite3.Cursor, partition: int, end: _End) -> None:
        """Whoever wrote since has taken the log: the lock was got round."""
        (last_seq,) = cursor.execute(
            "SELECT last_seq FROM heads WHERE partition = ?", (partition,)
        ).fetchone()
        if last_seq != end.seq:
            raise Fenced(
                FENCED,
                f"{self._path}: partition {partition} ended at {end.seq} and another process has "
                f"written up to {last_seq}",
            )

    def _insert(self, cursor: sqlite3.Cursor, batch: Batch, end: _End) -> _End:
        partition, events = batch.partition, batch.events
        if end.seq == 0 and events:
            check_created(self, partition, events[0])
        check = SequenceCheck(partition, end.seq, at_us=end.at_us, epoch=end.epoch)
        if not check.next(events):
            raise Fenced(FENCED, f"ledger partition {partition} has a newer owner")
        data, last = pack(events), events[-1]
        end = _End(last.seq, chained(data, end.crc), last.writer_epoch, last.at_us)
        cursor.execute(
            "INSERT INTO batches (partition, last_seq, crc, writer_epoch, at_us, first_seq, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (partition, *end, events[0].seq, data),
        )
        if batch.snapshots:
            write_snapshots(cursor, partition, batch.snapshots)
        return end

    def _set_heads(self, cursor: sqlite3.Cursor, ends: Mapping[int, _End]) -> None:
        cursor.executemany(
            "UPDATE heads SET last_seq = ?, crc = ? WHERE partition = ?",
            [(end.seq, end.crc, partition) for partition, end in ends.items()],
        )


def _some_rows(
    reader: sqlite3.Connection, partition: int, after_seq: int
) -> list[tuple[int, bytes, int]]:
    """The next rows, bounded in number and bytes. Each call is a read transaction of its own: a
    slow reader must not keep the WAL from being folded back.
    """
    found: list[tuple[int, bytes, int]] = []
    size = 0
    cursor = reader.execute(
        # The cast: a value of another type must not keep the rows before it from being read.
        "SELECT last_seq, CAST(data AS BLOB), crc FROM batches "
        "WHERE partition = ? AND last_seq > ? ORDER BY last_seq LIMIT ?",
        (partition, after_seq, ROWS_AT_ONCE),
    )
    for row in cursor:
        found.append(row)
        size += len(row[1])
        if size > BYTES_AT_ONCE:
            break
    cursor.close()
    return found


def _checked(partition: int, last_seq: int, data: bytes, crc: int, before: int) -> int:
    if chained(data, before) != crc:
        raise BrokenSequence(
            partition,
            f"the checksum of the batch that ends at seq {last_seq} to fit its data and the "
            "batch before it",
            "another",
        )
    return crc
