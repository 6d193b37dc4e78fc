"""The file of the embedded log as SQLite sees it: connections to it, and what its errors mean."""

import contextlib
import os
import sqlite3
from collections.abc import Generator
from pathlib import Path
from typing import Final

from horolog.schemas.errors import (
    DATA_DIR_CORRUPT,
    DATA_DIR_UNUSABLE,
    DISK_FULL,
    UNAVAILABLE,
    Corrupt,
    Unavailable,
)

FILE: Final = "ledger.db"
_READER: Final = ("busy_timeout = 5000",)
_WRITER: Final = (
    *_READER,
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    # The WAL is folded back every 16 MiB: seldom enough not to matter in a herd.
    "wal_autocheckpoint = 4096",
)


def connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """A connection to the file, which any thread may use, one at a time."""
    mode = "mode=ro" if readonly else "mode=rwc"
    wal = path.with_name(f"{path.name}-wal")
    if readonly and not wal.exists() and not os.access(path.parent, os.W_OK):
        # On a medium that cannot be written nobody writes, and no WAL can be made.
        mode = "immutable=1"
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?{mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in _READER if readonly else _WRITER:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def errors(path: Path) -> Generator[None]:
    """Errors of SQLite and of the file system by what the caller does."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith("SQLITE_FULL"):
            raise Unavailable(
                DISK_FULL, f"{path}: no room to write; nothing was written"
            ) from error
        if not name or name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")):
            # No name: a value is not of its type. SQLITE_ERROR: a table or column is not there.
            raise Corrupt(DATA_DIR_CORRUPT, f"{path}: {error}") from error
        if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
            raise Unavailable(
                DATA_DIR_UNUSABLE, f"{path}: {error}; give this user the right to write there"
            ) from error
        if isinstance(error, sqlite3.OperationalError):
            raise Unavailable(UNAVAILABLE, f"{path}: {error}; nothing was written") from error
        raise
    except OSError as error:
        raise Unavailable(DATA_DIR_UNUSABLE, f"{path}: {error.strerror}") from error
