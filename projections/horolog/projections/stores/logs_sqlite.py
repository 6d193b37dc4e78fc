"""Output of runs on one SQLite file, `logs.db`.

A stream is the output of one attempt: a row with its size, and a row a piece. `synchronous=NORMAL`:
a killed process loses nothing, a machine without power its last moments.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from horolog.projections.logs import LogPiece, LogState, Told
from horolog.projections.stores.sqlite import Readers, connect, errors, transaction
from horolog.schemas.errors import NEWER_FORMAT, Corrupt
from horolog.schemas.records import LogChunk, RunId

FORMAT: Final = 1
STREAMS_REMEMBERED: Final = 10_000

_TABLES: Final = """
CREATE TABLE streams (
    stream INTEGER PRIMARY KEY, run_id TEXT NOT NULL, token INTEGER NOT NULL,
    round INTEGER NOT NULL, attempt INTEGER NOT NULL, size INTEGER NOT NULL,
    ended INTEGER NOT NULL, written_us INTEGER NOT NULL, UNIQUE (run_id, token)
);
CREATE INDEX streams_written ON streams (written_us) WHERE written_us > 0;
CREATE TABLE pieces (
    stream INTEGER NOT NULL, offset INTEGER NOT NULL, dropped INTEGER NOT NULL,
    data BLOB NOT NULL, PRIMARY KEY (stream, offset)
);
"""
_Stream = tuple[str, int]


def _unknown() -> int:
    return 0


class SqliteLogs:
    """See `LogStore`. Writes are one transaction a call."""

    def __init__(self, path: Path, *, now_us: Callable[[], int] = _unknown) -> None:
        """Open the file, or make it. `now_us`: when a piece is stored; without a clock nothing is
        ever old enough to be forgotten.
        """
        self._path = path
        self._now_us = now_us
        self._lock = threading.Lock()
        self._followers: list[Told] = []
        self._streams: dict[_Stream, int] = {}
        self._readers = Readers(path)
        with errors(path):
            self._writer = connect(path, auto_vacuum=True)
            (found,) = self._writer.execute("PRAGMA user_version").fetchone()
            if found > FORMAT:
                raise Corrupt(
                    NEWER_FORMAT, f"{path} has format {found}, this release reads up to {FORMAT}"
                )
            if found < FORMAT:
                self._writer.executescript(
                    f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;"
                )

    def append(self, chunks: Sequence[LogChunk]) -> None:
        """See `LogStore`."""
        now_us = self._now_us()
        with self._lock:
            try:
                with errors(self._path), transaction(self._writer):
                    for chunk in chunks:
                        self._insert(self._stream(chunk, now_us), chunk, now_us)
            except BaseException:
                # Streams that were made with it are gone with it.
                self._streams.clear()
                raise
            followers = list(self._followers)
        run_ids = {chunk.run_id for chunk in chunks}
        for told in followers:
            told(run_ids)

    def attempts(self, run_id: RunId) -> Sequence[LogState]:
        """See `LogStore`."""
        with self._readers.read() as reader:
            rows = reader.execute(
                "SELECT round, attempt, token, size, ended, written_us,"
                " (SELECT ifnull(sum(length(data)), 0) FROM pieces AS p WHERE p.stream = s.stream)"
                " FROM streams AS s WHERE run_id = ? ORDER BY token",
                (run_id,),
            ).fetchall()
        return [
            LogState(
                round=round_,
                attempt=attempt,
                token=token,
                size=size,
                stored=stored,
                dropped=max(size - stored, 0) if ended else 0,
                ended=bool(ended),
                written_us=written_us,
            )
            for round_, attempt, token, size, ended, written_us, stored in rows
        ]

    def read(self, run_id: RunId, token: int, offset: int, limit: int) -> Sequence[LogPiece]:
        """See `LogStore`."""
        with self._readers.read() as reader:
            found = _found(reader, run_id, token)
            if found is None:
                return ()
            stream, size, ended = found
            rows = reader.execute(
                "SELECT offset, dropped, data FROM pieces WHERE stream = ?1 AND offset >= ifnull("
                "(SELECT max(offset) FROM pieces WHERE stream = ?1 AND offset <= ?2), 0) "
                "ORDER BY offset",
                (stream, offset),
            )
            pieces = list(_pieces(rows, offset, limit, ended=ended))
        end = pieces[-1].end if pieces else offset
        if ended and end >= size:
            # The last piece may be empty, and may have been read before the end was known.
            last = pieces.pop() if pieces else LogPiece(offset=end, data=b"", dropped=0, last=True)
            pieces.append(
                LogPiece(offset=last.offset, data=last.data, dropped=last.dropped, last=True)
            )
        return pieces

    def tail(self, run_id: RunId, token: int, limit: int) -> Sequence[LogPiece]:
        """See `LogStore`."""
        with self._readers.read() as reader:
            found = _found(reader, run_id, token)
            if found is None:
                return ()
            begin, left = found[1], max(limit, 0)
            rows = reader.execute(
                "SELECT offset, length(data) FROM pieces WHERE stream = ? ORDER BY offset DESC",
                (found[0],),
            )
            for offset, length in rows:
                begin = offset + max(length - left, 0)
                left -= length
                if left <= 0:
                    break
        return self.read(run_id, token, begin, limit)

    def forget(self, before_us: int, limit: int) -> int:
        """See `LogStore`."""
        with self._lock, errors(self._path):
            with transaction(self._writer):
                streams = self._writer.execute(
                    "SELECT stream FROM streams WHERE written_us > 0 AND written_us < ? LIMIT ?",
                    (before_us, limit),
                ).fetchall()
                self._writer.executemany("DELETE FROM pieces WHERE stream = ?", streams)
                self._writer.executemany("DELETE FROM streams WHERE stream = ?", streams)
            self._streams.clear()
            self._writer.execute("PRAGMA incremental_vacuum").fetchall()
        return len(streams)

    def follow(self, told: Told) -> Callable[[], None]:
        """See `LogStore`."""
        with self._lock:
            self._followers.append(told)

        def end() -> None:
            with self._lock:
                self._followers.remove(told)

        return end

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._writer.close()
        self._readers.close()

    def _stream(self, chunk: LogChunk, now_us: int) -> int:
        place = (chunk.run_id, chunk.token)
        stream = self._streams.get(place)
        if stream is None:
            self._writer.execute(
                "INSERT OR IGNORE INTO streams "
                "(run_id, token, round, attempt, size, ended, written_us) "
                "VALUES (?, ?, ?, ?, 0, 0, ?)",
                (*place, chunk.round, chunk.attempt, now_us),
            )
            (stream,) = self._writer.execute(
                "SELECT stream FROM streams WHERE run_id = ? AND token = ?", place
            ).fetchone()
            assert isinstance(stream, int)
            if len(self._streams) >= STREAMS_REMEMBERED:
                self._streams.clear()
            self._streams[place] = stream
        return stream

    def _insert(self, stream: int, chunk: LogChunk, now_us: int) -> None:
        # Two pieces at one place: an empty one may mark the end there; the longer has it all.
        self._writer.execute(
            "INSERT INTO pieces (stream, offset, dropped, data) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (stream, offset) DO UPDATE SET data = excluded.data "
            "WHERE length(excluded.data) > length(data)",
            (stream, chunk.offset, chunk.dropped, chunk.data),
        )
        self._writer.execute(
            "UPDATE streams SET size = max(size, ?), ended = max(ended, ?), "
            "written_us = max(written_us, ?) WHERE stream = ?",
            (chunk.offset + len(chunk.data), chunk.last, now_us, stream),
        )


def _found(reader: Any, run_id: RunId, token: int) -> tuple[int, int, bool] | None:
    """Stream, size, and whether it has ended."""
    row = reader.execute(
        "SELECT stream, size, ended FROM streams WHERE run_id = ? AND token = ?", (run_id, token)
    ).fetchone()
    return None if row is None else (int(row[0]), int(row[1]), bool(row[2]))


def _pieces(
    rows: Iterator[tuple[int, int, bytes]], offset: int, limit: int, *, ended: bool
) -> Iterator[LogPiece]:
    """What is to be given of the rows, from `offset` on."""
    for at, dropped, stored in rows:
        if limit <= 0:
            return
        gap = max(at - offset, 0)
        if gap and not ended and gap > dropped:
            # It was not left out; it is on its way.
            return
        begin = max(at, offset)
        data = stored[begin - at : begin - at + limit]
        if not data:
            continue
        yield LogPiece(offset=begin, data=data, dropped=gap, last=False)
        offset = begin + len(data)
        limit -= len(data)
