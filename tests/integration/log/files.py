"""SQLite logs on real files: filled, damaged, read as far as that goes."""

import contextlib
import sqlite3
from pathlib import Path

from horolog.schemas.errors import Corrupt, Unavailable
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.log.sqlite_file import FILE
from tests.builders.events import Ledger
from tests.conformance.log.test_log import ledger_of, runs

BATCH = 4
"""Events of a batch of `filled`, so that batches after the first begin at 4, 8, 12 ..."""


def filled(folder: Path, batches: int = 20) -> tuple[SqliteLog, Ledger]:
    """A log with some batches in its first partition, and what goes on writing it."""
    folder.mkdir(exist_ok=True)
    log = SqliteLog(folder, partitions=2)
    ledger = ledger_of(log)
    log.append([ledger.take_over()])
    for number in range(batches - 1):
        log.append([ledger.batch(*runs(BATCH - 1, number))])
    return log, ledger


def read_all(folder: Path) -> list[int]:
    """First `seq` of each batch of the first partition."""
    log = SqliteLog(folder, readonly=True)
    with contextlib.closing(log):
        return [read.first_seq for read in log.read(0, 0)]


def read_to_fault(folder: Path) -> list[int]:
    """First `seq` of the batches that can be read; the rest of the log may be at fault."""
    found: list[int] = []
    with contextlib.suppress(Corrupt, Unavailable):
        log = SqliteLog(folder, readonly=True)
        with contextlib.closing(log):
            found.extend(read.first_seq for read in log.read(0, 0))
    return found


def firsts(count: int) -> list[int]:
    """First `seq` of so many batches of `filled`."""
    return [1, *(4 + BATCH * number for number in range(count - 1))][:count]


def damage(folder: Path, statement: str) -> None:
    """Change the file behind the log's back; statements separated by `;`."""
    with contextlib.closing(sqlite3.connect(folder / FILE)) as file:
        file.executescript(statement)
