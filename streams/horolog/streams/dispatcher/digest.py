"""Sums over open runs, by which a scheduler and a dispatcher find that they differ.

Both hold a sum for each of 64 buckets, changed with every state told and compared once a minute in
the stream itself, so at the same `seq` for both. The sum does not depend on order.
"""

import zlib
from typing import Final

from horolog.schemas.records import DispatchStatus, RunId, RunState

BUCKETS: Final = 64
_MASK: Final = (1 << 62) - 1
_STATUS: Final = {
    DispatchStatus.PENDING: 1,
    DispatchStatus.WAITING: 2,
    DispatchStatus.STARTED: 3,
}
_SPREAD: Final = 0x9E3779B97F4A7C15
"""2^64 / golden ratio: spreads small differences over all bits (Fibonacci hashing)."""


def bucket_of(run_id: RunId) -> int:
    """Bucket of a run: CRC-32 of its ID, lowest six bits."""
    return zlib.crc32(run_id.encode()) % BUCKETS


def weight_of(state: RunState) -> int:
    """What a run's state adds to its bucket; 0 for a closed one."""
    status = _STATUS.get(state.status)
    if status is None:
        return 0
    mixed = zlib.crc32(state.run_id.encode()) << 24 ^ state.plan << 8 ^ state.attempt << 2 ^ status
    return mixed * _SPREAD & _MASK


class Digest:
    """Sums of the buckets of one ledger partition's open runs."""

    def __init__(self) -> None:
        """No run is open."""
        self._sums = [0] * BUCKETS

    def add(self, state: RunState) -> None:
        """Count a run's state in."""
        bucket = bucket_of(state.run_id)
        self._sums[bucket] = self._sums[bucket] + weight_of(state) & _MASK

    def remove(self, state: RunState) -> None:
        """Count a run's state out again."""
        bucket = bucket_of(state.run_id)
        self._sums[bucket] = self._sums[bucket] - weight_of(state) & _MASK

    def buckets(self) -> tuple[int, ...]:
        """The sums, from bucket 0."""
        return tuple(self._sums)

    def differing(self, buckets: tuple[int, ...]) -> tuple[int, ...]:
        """Buckets in which another one's sums are not these."""
        return tuple(
            number
            for number, (mine, other) in enumerate(zip(self._sums, buckets, strict=False))
            if mine != other
        )
