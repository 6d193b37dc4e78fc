"""What runs printed, in pieces as they came.

Not derivable from the ledger, so it is kept apart from the tables that are.
"""

from collections.abc import Sequence
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


class LogPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Some of an attempt's output."""

    offset: int
    """Bytes printed before it."""
    data: bytes
    dropped: int
    """Bytes left out right before it."""
    last: bool


class LogStore(Protocol):
    """Keeps and gives the output of attempts. May be used from any thread."""

    def append(self, chunks: Sequence[LogChunk]) -> None:
        """Keep pieces; the same piece again changes nothing."""
        ...

    def attempts(self, run_id: RunId) -> Sequence[LogState]:
        """Attempts of a run that have output, oldest first."""
        ...

    def read(self, run_id: RunId, token: int, offset: int, limit: int) -> Sequence[LogPiece]:
        """Pieces of an attempt from an offset on, about `limit` bytes of them."""
        ...
