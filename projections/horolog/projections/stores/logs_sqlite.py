"""Output of runs on one SQLite file, `logs.db`: one row a piece, as bytes."""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from horolog.projections.logs import LogPiece, LogState
from horolog.schemas.records import LogChunk, RunId

FILE: Final = "logs.db"
PIECES_AT_ONCE: Final = 64

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS chunks (
    run_id TEXT, token INTEGER, offset INTEGER, round INTEGER, attempt INTEGER, data BLOB,
    dropped INTEGER, last INTEGER, PRIMARY KEY (run_id, token, offset, last)
) WITHOUT ROWID;
"""


class SqliteLogs:
    """See `LogStore`. Writes are one transaction a call; any thread may call."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it."""
        self._path = path
        self._lock = threading.Lock()
        self._writer = _connect(path)
        self._writer.executescript(_TABLES)
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []

    def append(self, chunks: Sequence[LogChunk]) -> None:
        """See `LogStore`."""
        rows = [
            (
                chunk.run_id,
                chunk.token,
                chunk.offset,
                chunk.round,
                chunk.attempt,
                chunk.data,
                chunk.dropped,
                chunk.last,
            )
            for chunk in chunks
        ]
        with self._lock:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                self._writer.executemany(
                    "INSERT OR IGNORE INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows
                )
                self._writer.execute("COMMIT")
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise

    def attempts(self, run_id: RunId) -> Sequence[LogState]:
        """See `LogStore`."""
        rows = self._all(
            "SELECT round, attempt, token, max(offset + length(data)), sum(length(data)), "
            "sum(dropped), max(last) FROM chunks WHERE run_id = ? GROUP BY token ORDER BY token",
            (run_id,),
        )
        return [
            LogState(
                round=row[0],
                attempt=row[1],
                token=row[2],
                size=row[3],
                stored=row[4],
                dropped=row[5],
                ended=bool(row[6]),
            )
            for row in rows
        ]

    def read(self, run_id: RunId, token: int, offset: int, limit: int) -> Sequence[LogPiece]:
        """See `LogStore`."""
        rows = self._all(
            "SELECT offset, data, dropped, last FROM chunks WHERE run_id = ? AND token = ? "
            "AND offset + length(data) >= ? ORDER BY offset, last LIMIT ?",
            (run_id, token, offset, PIECES_AT_ONCE),
        )
        pieces: list[LogPiece] = []
        size = 0
        for at, data, dropped, last in rows:
            skip = max(offset - at, 0)
            if (skip >= len(data) and not last) or size >= limit:
                continue
            piece = data[skip:]
            pieces.append(
                LogPiece(
                    offset=at + skip,
                    data=piece,
                    dropped=dropped if skip == 0 else 0,
                    last=bool(last),
                )
            )
            size += len(piece)
        return pieces

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
        for reader in self._readers:
            reader.close()

    def _all(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        reader: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = _connect(self._path)
            self._readers.append(reader)
        return reader.execute(statement, values).fetchall()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection
