"""The server's end of the process that writes its history (`history_writer`).

It is asked to follow the log, at most each 50 ms; whoever waits for a position has it asked at
once. If it dies it is begun again: the tables say where to go on.
"""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, assert_never

from horolog.cli import history_wire as wire
from horolog.projections.rebuild import Progress
from horolog.projections.stores.sqlite import SqliteReading
from horolog.schemas.errors import UNAVAILABLE, Corrupt, Unavailable, error_of
from horolog.streams.log import Batch

LINGER_S: Final = 0.05
AGAIN_S: Final = 1.0


def command_of(directory: Path, retention_us: int) -> list[str]:
    """What begins the process."""
    module = "horolog.cli.history_writer"
    return [sys.executable, "-P", "-m", module, str(directory), str(retention_us)]


class HistoryProcess:
    """Has the committed batches of a data directory folded into its history."""

    def __init__(
        self,
        directory: Path,
        reading: SqliteReading,
        *,
        positions: Mapping[int, int],
        retention_us: int,
    ) -> None:
        """`reading`: the tables as this process reads them; `positions`: how far they are."""
        self._command = command_of(directory, retention_us)
        self._reading = reading
        self._positions: Mapping[int, int] = dict(positions)
        lock = threading.Lock()
        self._todo = threading.Condition(lock)
        self._moved = threading.Condition(lock)
        self._has_news = True
        self._is_urgent = False
        self._is_stopping = False
        self._has_ended = False
        self._rebuilding: _Rebuilding | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = threading.Thread(target=self._ask, name="horolog-history-ask", daemon=True)
        self._hearing = threading.Thread(target=self._hear, name="horolog-history", daemon=True)
        self.unavailable: Unavailable | None = None
        """Why nothing is written at present; None: all is well."""
        self.failure: BaseException | None = None
        """What ended it for good."""
        self.on_failure: Callable[[], None] = lambda: None
        self.on_moved: Callable[[Mapping[int, int]], None] = lambda _: None
        """Told the positions after each write; must not block."""

    # --- called from any thread

    def start(self) -> None:
        """Begin to follow the log."""
        self._begin()
        self._hearing.start()
        self._asking.start()

    def stop(self) -> None:
        """Have everything committed folded and written, and end the process."""
        with self._todo:
            self._is_stopping = True
            self._todo.notify_all()
        for thread in (self._asking, self._hearing):
            if thread.is_alive():
                thread.join()

    def offer(self, _batches: Sequence[Batch]) -> None:
        """Batches were committed. Does not block."""
        # Cost: hundreds of times a second in the host's thread; a lock only when it says something.
        if not self._has_news:
            with self._todo:
                self._has_news = True
                self._todo.notify()

    def positions(self) -> Mapping[int, int]:
        """`seq` up to which each partition is in the tables."""
        return self._positions

    def position(self, partition: int) -> int:
        """`seq` up to which a partition is in the tables."""
        return self._positions.get(partition, 0)

    def wait_for(self, partition: int, seq: int, timeout_s: float) -> bool:
        """Wait until a partition has got to `seq`; False if it has not in time, or never will."""
        with self._moved:
            self._is_urgent = self._has_news = True
            self._todo.notify()
            return self._moved.wait_for(
                lambda: self.position(partition) >= seq or self._has_ended, timeout_s
            ) and (self.position(partition) >= seq)

    def rebuild(self, progress: Callable[[Progress], None] = lambda _: None) -> None:
        """Build the tables anew from the log, beside those in use, and swap them in; reads go on.
        Takes as long as the log is; call it from a thread that may wait. Raises Unavailable or
        Corrupt; then the old ones stay.
        """
        with self._moved:
            if self._rebuilding is not None:
                raise Unavailable(UNAVAILABLE, "the tables are being rebuilt already")
            rebuilding = self._rebuilding = _Rebuilding(progress)
        try:
            if not self._send(wire.Rebuild()):
                raise Unavailable(UNAVAILABLE, "the history's process has died; ask again")
            with self._moved:
                self._moved.wait_for(lambda: rebuilding.ended is not None or self._has_ended)
        finally:
            self._rebuilding = None
        ended = rebuilding.ended
        if ended is None:
            raise Unavailable(UNAVAILABLE, "the server stops; the old tables stay")
        if ended.slug:
            kind = Corrupt if ended.is_corrupt else Unavailable
            raise kind(error_of(ended.slug), ended.detail)

    # --- the process

    def _begin(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def _send(self, message: wire.Asked) -> bool:
        """False: the process is gone; `_hear` begins another one."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            wire.send(process.stdin, message)
        except (OSError, ValueError):
            return False
        return True

    # --- the thread that asks

    def _ask(self) -> None:
        while True:
            with self._todo:
                self._todo.wait_for(lambda: self._has_news or self._is_stopping)
                self._todo.wait_for(lambda: self._is_urgent or self._is_stopping, LINGER_S)
                if self._is_stopping:
                    break
                self._has_news = self._is_urgent = False
            self._send(wire.Follow())
        self._send(wire.Drain())

    # --- the thread that hears

    def _hear(self) -> None:
        try:
            while True:
                self._hear_one()
                if self._is_stopping or self.failure is not None or not self._rest():
                    return
                self._begin()
                self.offer(())
        finally:
            with self._moved:
                self._has_ended = True
                self._moved.notify_all()
            if self.failure is not None:
                self.on_failure()

    def _hear_one(self) -> None:
        """Until the process is gone, and what it held open is free."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        assert process.stdin is not None
        with contextlib.ExitStack() as shut:
            for message in wire.told(process.stdout):
                self._take(message, shut)
        code = process.wait()
        process.stdout.close()
        with contextlib.suppress(OSError):
            process.stdin.close()
        self._rebuilt(wire.Rebuilt(UNAVAILABLE.slug, "its process has died; the old tables stay"))
        if not self._is_stopping and self.failure is None and self.unavailable is None:
            detail = f"the process that writes the history ended with {code}; it is begun again"
            self.unavailable = Unavailable(UNAVAILABLE, detail)

    def _take(self, message: wire.Told, shut: contextlib.ExitStack) -> None:
        match message:
            case wire.Moved():
                self.unavailable = None
                with self._moved:
                    self._positions = message.positions
                    self._moved.notify_all()
                self.on_moved(message.positions)
            case wire.Resting():
                self.unavailable = Unavailable(error_of(message.slug), message.detail)
            case wire.Failed():
                self.failure = RuntimeError(message.detail)
            case wire.Progressed():
                rebuilding = self._rebuilding
                if rebuilding is not None:
                    rebuilding.progress(
                        Progress(
                            partition=message.partition, seq=message.seq, events=message.events
                        )
                    )
            case wire.Promoting():
                shut.enter_context(self._reading.shut())
                self._send(wire.Shut())
            case wire.Promoted():
                shut.close()
            case wire.Rebuilt():
                self._rebuilt(message)
            case _:
                assert_never(message)

    def _rebuilt(self, message: wire.Rebuilt) -> None:
        rebuilding = self._rebuilding
        if rebuilding is not None and rebuilding.ended is None:
            with self._moved:
                rebuilding.ended = message
                self._moved.notify_all()

    def _rest(self) -> bool:
        """Wait before the next one is begun. False: to stop."""
        until_s = time.monotonic() + AGAIN_S
        with self._todo:
            self._todo.wait_for(lambda: self._is_stopping, max(until_s - time.monotonic(), 0))
            return not self._is_stopping


class _Rebuilding:
    """A rebuild that somebody waits for."""

    def __init__(self, progress: Callable[[Progress], None]) -> None:
        self.progress = progress
        self.ended: wire.Rebuilt | None = None
