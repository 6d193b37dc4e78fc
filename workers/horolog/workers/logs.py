"""Carries the output of runs to its store, off the agent's thread."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from horolog.schemas.records import LogChunk

CHUNKS_AT_ONCE: Final = 256


class LogWriter:
    """Keeps pieces in order and appends what has gathered, some at a time.

    The pieces in memory are bounded by what the runs of this process may print: half the limit of
    each is passed on as it comes (`capture`).
    """

    def __init__(self, append: Callable[[Sequence[LogChunk]], None]) -> None:
        """`append`: writes pieces to the store; may block."""
        self._append = append
        self._waiting: deque[LogChunk] = deque()
        self._awake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="horolog-logs", daemon=True)
        self.on_written: Callable[[Sequence[LogChunk]], None] = lambda _: None
        """Told what is in the store, so that followers need not poll."""

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits and end."""
        self._stopping = True
        self._awake.set()
        self._thread.join()

    def write(self, chunk: LogChunk) -> None:
        """Take a piece; does not block."""
        self._waiting.append(chunk)
        self._awake.set()

    def _run(self) -> None:
        while True:
            stopping = self._stopping
            self._awake.clear()
            while self._waiting:
                chunks = [
                    self._waiting.popleft() for _ in range(min(len(self._waiting), CHUNKS_AT_ONCE))
                ]
                self._append(chunks)
                self.on_written(chunks)
            if stopping:
                return
            self._awake.wait()
