"""The data directory: one process at a time, and errors that say what to do."""

import fcntl
import os
from pathlib import Path
from typing import Final

from horolog.schemas.errors import DATA_DIR_LOCKED, DATA_DIR_UNUSABLE, Unavailable

LOCK_FILE: Final = "lock"


class DataDir:
    """A directory held under an exclusive lock until `release`, or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Make the directory if need be and take its lock.

        Raises Unavailable: another process holds it (its pid is named), or it cannot be used.
        """
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(
                DATA_DIR_UNUSABLE, f"{path}: {error.strerror}; name another with --data"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._lock)
            raise Unavailable(
                DATA_DIR_LOCKED,
                f"{path} is in use by the process {holder}; stop it, or name another directory "
                "with --data",
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another process have the directory."""
        os.close(self._lock)
