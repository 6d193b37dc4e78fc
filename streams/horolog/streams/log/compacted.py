"""Compacted topics of the embedded log: the latest record under each key.

They hold what is set and not decided: limits of tenants, API keys. A table in the log's file, so
that a copy of the log has them; written through a connection of its own, each record in its own
transaction that is on the disk before `put` returns. Any thread and any process may write, for no
record depends on another.
"""

import contextlib
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Generic, TypeVar

from horolog.schemas.codec import Malformed
from horolog.schemas.errors import DATA_DIR_CORRUPT, DATA_DIR_UNUSABLE, Corrupt, Unavailable
from horolog.schemas.framing import decode_any, encode_framed
from horolog.schemas.records import Record
from horolog.streams.log.sqlite_file import FILE, connect, errors
from horolog.streams.log.tables import COMPACTED

R = TypeVar("R", bound=Record)


class CompactedTopic(Generic[R]):
    """The records of one topic, all of one type."""

    def __init__(self, directory: Path, topic: str, record: type[R]) -> None:
        """Of a directory that holds a log. Raises Unavailable."""
        self._path = directory / FILE
        self._topic = topic
        self._record = record
        self._lock = threading.Lock()
        if not self._path.exists():
            raise Unavailable(DATA_DIR_UNUSABLE, f"{directory} holds no {FILE}")
        with errors(self._path):
            self._own = connect(self._path, readonly=False)
            try:
                self._own.execute(COMPACTED)
            except BaseException:
                self._own.close()
                raise

    def put(self, key: str, record: R) -> None:
        """Keep a record, instead of the one there was. Raises Unavailable: nothing was written."""
        data = encode_framed(record)
        with self._lock, errors(self._path):
            self._own.execute(
                "INSERT OR REPLACE INTO compacted VALUES (?, ?, ?, ?)",
                (self._topic, key, data, self._sum(key, data)),
            )

    def get(self, key: str) -> R | None:
        """The record of a key. Raises Unavailable, Corrupt."""
        with self._lock, errors(self._path):
            row = self._own.execute(
                "SELECT data, crc FROM compacted WHERE topic = ? AND key = ?", (self._topic, key)
            ).fetchone()
        return None if row is None else self._decoded(key, *row)

    def all(self) -> Mapping[str, R]:
        """Every record, by key and in its order. Raises Unavailable, Corrupt."""
        with self._lock, errors(self._path):
            rows = self._own.execute(
                "SELECT key, data, crc FROM compacted WHERE topic = ? ORDER BY key", (self._topic,)
            ).fetchall()
        return {key: self._decoded(key, data, crc) for key, data, crc in rows}

    def close(self) -> None:
        """Give the file up."""
        with self._lock, contextlib.closing(self._own):
            return

    def _sum(self, key: str, data: bytes) -> int:
        return zlib.crc32(data, zlib.crc32(f"{self._topic}/{key}".encode()))

    def _decoded(self, key: str, data: bytes, crc: int) -> R:
        if self._sum(key, data) != crc:
            raise Corrupt(
                DATA_DIR_CORRUPT,
                f"{self._path}: the checksum of {self._topic}/{key} does not fit its data",
            )
        try:
            return decode_any(data, (self._record,))
        except Malformed as error:
            raise Corrupt(
                DATA_DIR_CORRUPT, f"{self._path}: {self._topic}/{key}: {error.detail}"
            ) from error
