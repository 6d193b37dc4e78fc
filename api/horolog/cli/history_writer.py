"""The process that writes the history of `horolog up`.

    python -m horolog.cli.history_writer DATA RETENTION_US

A process of its own, since its work would take half of the interpreter that decides. It reads the
log's file, writes `history.db`, and lives no longer than the server at the other end of its pipes:
when that is gone it ends at once, whatever it does, and the next one goes on from the tables.
"""

import contextlib
import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import IO, Final, assert_never

from horolog.cli import history_wire as wire
from horolog.projections.projector import Projector
from horolog.projections.rebuild import Progress
from horolog.projections.stores.sqlite import SqliteHistory
from horolog.schemas.errors import UNAVAILABLE, Corrupt, HorologError, Unavailable
from horolog.streams.log.sqlite import SqliteLog

HISTORY_FILE: Final = "history.db"
LOCK_FILE: Final = "history.lock"
LOCK_WAIT_S: Final = 10.0
LOCK_RETRY_S: Final = 0.02


@contextlib.contextmanager
def held(directory: Path) -> Generator[None]:
    """The right to write the history: a writer whose server was killed may still be ending.
    Raises Unavailable if somebody else has it for 10 s.
    """
    lock = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until_s = time.monotonic() + LOCK_WAIT_S
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= until_s:
                    raise Unavailable(
                        UNAVAILABLE,
                        f"{directory / HISTORY_FILE} is written by another process",
                    ) from error
                threading.Event().wait(LOCK_RETRY_S)
            else:
                break
        yield
    finally:
        os.close(lock)


class Writer:
    """A projector that is asked and tells through pipes."""

    def __init__(self, directory: Path, retention_us: int, tells: IO[bytes]) -> None:
        """Begins where the tables end. Raises Unavailable, Corrupt."""
        self._log = SqliteLog(directory, readonly=True)
        self._history = SqliteHistory(directory / HISTORY_FILE)
        self._projector = Projector(self._log, self._history, retention_us=retention_us)
        self._tells = tells
        self._lock = threading.Lock()
        self._are_shut = threading.Event()
        self._projector.on_moved = self._moved
        self._projector.on_resting = self._resting
        self._projector.on_failure = self._failed
        self._projector.promoting = self._promoting

    def run(self, asks: IO[bytes]) -> None:
        """Do what is asked until told to drain; ends the process if the server is gone."""
        self._projector.start()
        for message in wire.asked(asks):
            match message:
                case wire.Follow():
                    self._projector.look()
                case wire.Rebuild():
                    threading.Thread(target=self._rebuild, daemon=True).start()
                case wire.Shut():
                    self._are_shut.set()
                case wire.Drain():
                    self._projector.look()
                    self._projector.stop()
                    self._history.close()
                    return
                case _:
                    assert_never(message)
        # The server was killed. What is half written is rolled back by the next one.
        os._exit(1)

    def _tell(self, message: wire.Told) -> None:
        # The server may be gone; then `run` ends the process.
        with self._lock, contextlib.suppress(OSError):
            wire.send(self._tells, message)

    def _moved(self, positions: Mapping[int, int]) -> None:
        self._tell(wire.Moved(dict(positions)))

    def _resting(self, reason: Unavailable) -> None:
        self._tell(wire.Resting(reason.error.slug, reason.detail))

    def _failed(self) -> None:
        self._tell(wire.Failed(str(self._projector.failure)))

    @contextlib.contextmanager
    def _promoting(self) -> Generator[None]:
        self._are_shut.clear()
        self._tell(wire.Promoting())
        self._are_shut.wait()
        try:
            yield
        finally:
            self._tell(wire.Promoted())

    def _rebuild(self) -> None:
        try:
            self._projector.rebuild(self._progressed)
        except HorologError as error:
            self._tell(wire.Rebuilt(error.error.slug, error.detail, isinstance(error, Corrupt)))
        else:
            self._tell(wire.Rebuilt())

    def _progressed(self, progress: Progress) -> None:
        self._tell(wire.Progressed(progress.partition, progress.seq, progress.events))


def main() -> None:
    """See the module."""
    # Ctrl-C reaches the whole group; the server says when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    directory, retention_us = Path(sys.argv[1]), int(sys.argv[2])
    asks, tells = sys.stdin.buffer, sys.stdout.buffer
    try:
        with held(directory):
            Writer(directory, retention_us, tells).run(asks)
    except Unavailable as reason:
        wire.send(tells, wire.Resting(reason.error.slug, reason.detail))
        sys.exit(1)
    except HorologError as error:
        wire.send(tells, wire.Failed(str(error)))
        sys.exit(1)


if __name__ == "__main__":
    main()
