"""What runs printed, in pieces as they came, byte for byte.

Not derivable from the ledger, so it is kept apart from the tables that are. Output belongs to an
attempt, named by its fencing token: a released attempt leaves its number to the next one, and a
manual run's ID may be used again a day later.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import msgspec

from horolog.schemas.records import LogChunk, RunId


class LogState(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is of one attempt's output."""

    round: int
    attempt: int
    token: int
    size: int
    """Bytes printed, those left out included."""
    stored: int
    """Bytes kept."""
    dropped: int
    """Bytes left out, in the middle."""
    ended: bool
    written_us: int
    """When the last piece was stored; 0: not known."""


class LogPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Some of an attempt's output."""

    offset: int
    """Bytes printed before it."""
    data: bytes
    dropped: int
    """Bytes left out right before it."""
    last: bool
    """Whether the output ends with it."""

    @property
    def end(self) -> int:
        """Where the next piece begins."""
        return self.offset + len(self.data)


Told = Callable[[Collection[RunId]], None]
"""Called with the runs that have new output, by the thread that stored it; must not block."""


class LogStore(Protocol):
    """Keeps and gives the output of attempts. May be used from any thread."""

    def append(self, chunks: Sequence[LogChunk]) -> None:
        """Keep pieces; the same piece again changes nothing. Raises Unavailable; then none is
        stored, and the same may be stored again.
        """
        ...

    def attempts(self, run_id: RunId) -> Sequence[LogState]:
        """Attempts of a run that have output, oldest first."""
        ...

    def read(self, run_id: RunId, token: int, offset: int, limit: int) -> Sequence[LogPiece]:
        """Pieces of an attempt from an offset on, at most `limit` bytes, in order and without
        overlap. Nothing: there is no more yet. Stops before a piece that is missing, unless the
        output has ended: then it was left out.
        """
        ...

    def tail(self, run_id: RunId, token: int, limit: int) -> Sequence[LogPiece]:
        """The last `limit` bytes of an attempt, or what there is."""
        ...

    def forget(self, before_us: int, limit: int) -> int:
        """Remove the output of at most `limit` attempts that was stored before an instant; how many
        were removed.
        """
        ...

    def follow(self, told: Told) -> Callable[[], None]:
        """Be told of new output, so that nobody need poll; the answer ends it."""
        ...
