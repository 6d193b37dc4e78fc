"""Carries the output of runs to its store, off the agent's thread."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from horolog.schemas.errors import Unavailable
from horolog.schemas.records import LogChunk

CHUNKS_AT_ONCE: Final = 256
WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
"""Kept while the store takes nothing; what comes beyond it is left out."""
RETRY_S: Final = 0.5


class LogWriter:
    """Keeps pieces in order and appends what has gathered, some at a time.

    A store that cannot take them, its disk full for example, is asked again until it can: runs do
    not wait for their output.
    """

    def __init__(
        self, append: Callable[[Sequence[LogChunk]], None], *, retry_s: float = RETRY_S
    ) -> None:
        """`append`: writes pieces to the store, all or none; may block."""
        self._append = append
        self._retry_s = retry_s
        self._waiting: deque[LogChunk] = deque()
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._stop_asked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="horolog-logs", daemon=True)
        self.waiting_bytes = 0
        """Of the pieces that are not in the store yet."""

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, if the store takes it, and end."""
        self._stop_asked.set()
        self._awake.set()
        self._thread.join()

    def write(self, chunk: LogChunk) -> None:
        """Take a piece; does not block."""
        with self._lock:
            if self.waiting_bytes + len(chunk.data) > WAITING_BYTES_MAX:
                return
            self.waiting_bytes += len(chunk.data)
            self._waiting.append(chunk)
        self._awake.set()

    def _run(self) -> None:
        while True:
            stopping = self._stop_asked.is_set()
            self._awake.clear()
            while chunks := self._gathered():
                try:
                    self._append(chunks)
                except Unavailable:
                    if self._stop_asked.wait(self._retry_s) and stopping:
                        return
                    stopping = self._stop_asked.is_set()
                    continue
                self._written(chunks)
            if stopping:
                return
            self._awake.wait()

    def _gathered(self) -> list[LogChunk]:
        with self._lock:
            return [
                self._waiting[place] for place in range(min(len(self._waiting), CHUNKS_AT_ONCE))
            ]

    def _written(self, chunks: Sequence[LogChunk]) -> None:
        with self._lock:
            for chunk in chunks:
                self._waiting.popleft()
                self.waiting_bytes -= len(chunk.data)
