"""What a run prints: as it comes, bounded, byte for byte.

The first half of the limit is passed on as it comes, in pieces of 64 KiB or what 100 ms brought.
Beyond it only the newest bytes are kept, up to the other half, and passed on at the end with the
exact number of bytes left out before them: the error is mostly at the end.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from horolog.schemas.records import Grant, LogChunk

LIMIT_BYTES: Final = 10 * 1024 * 1024
PIECE_BYTES: Final = 64 * 1024
FLUSH_S: Final = 0.1

Emit = Callable[[LogChunk], None]


class Capture:
    """Output of one attempt. Used from one thread."""

    def __init__(self, grant: Grant, emit: Emit, limit_bytes: int = LIMIT_BYTES) -> None:
        """`emit` gets the pieces in order; the last one is marked."""
        self._grant = grant
        self._emit = emit
        self._half = limit_bytes // 2
        self._buffer = bytearray()
        self._passed = 0
        """Bytes passed on, or given up, before the buffer."""
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._written = 0
        self._closed = False

    @property
    def is_dirty(self) -> bool:
        """Whether `flush` would pass something on."""
        return bool(self._buffer)

    def write(self, data: bytes) -> None:
        """Take what the run printed; text that comes after the end is left out."""
        if self._closed or not data:
            return
        self._written += len(data)
        room = self._half - self._passed - len(self._buffer)
        if room > 0:
            self._buffer += data[:room]
            data = data[room:]
            if len(self._buffer) >= PIECE_BYTES:
                self.flush()
        if data:
            self._keep(data)

    def flush(self) -> None:
        """Pass on what is buffered."""
        if self._buffer:
            data = bytes(self._buffer)
            self._buffer.clear()
            self._chunk(self._passed, data)
            self._passed += len(data)

    def close(self) -> None:
        """The output has ended: pass on the rest and say so. Of nothing, nothing is said."""
        if self._closed:
            return
        self._closed = True
        if not self._written:
            return
        self.flush()
        tail = b"".join(self._tail)[-self._half :] if self._tail else b""
        self._tail.clear()
        offset = self._written - len(tail)
        dropped = offset - self._passed
        pieces = [tail[at : at + PIECE_BYTES] for at in range(0, len(tail), PIECE_BYTES)] or [b""]
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            self._chunk(offset, piece, dropped=dropped if number == 0 else 0, last=last)
            offset += len(piece)

    def _keep(self, data: bytes) -> None:
        """Keep the newest bytes. Pieces fall out whole, so a little more than half is held."""
        self._tail.append(data[-self._half :])
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) >= self._half:
            self._tail_bytes -= len(self._tail.popleft())

    def _chunk(self, offset: int, data: bytes, *, dropped: int = 0, last: bool = False) -> None:
        grant = self._grant
        self._emit(
            LogChunk(
                job_id=grant.job_id,
                run_id=grant.run_id,
                attempt=grant.attempt,
                round=grant.round,
                token=grant.token,
                offset=offset,
                data=data,
                dropped=dropped,
                last=last,
            )
        )
