"""Sums over open runs, by which a scheduler and a dispatcher find that they differ.

Both hold a sum for each of 64 buckets. The scheduler sends its own once a minute in the stream, so
both are of the same `seq`. A sum does not depend on the order of what it counts, and each run's
part of it can be taken out again.
"""

import zlib
from typing import Final

from horolog.schemas.records import DispatchStatus, RunId, RunState

BUCKETS: Final = 64

_MASK: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63
_PENDING: Final = DispatchStatus.PENDING
_WAITING: Final = DispatchStatus.WAITING
_STARTED: Final = DispatchStatus.STARTED
_CLOSED: Final = DispatchStatus.CLOSED
_PLAN_FACTOR: Final = 0xD1342543DE82EF95
_MIX_BEFORE: Final = 0x9E3779B97F4A7C15
_MIX_AFTER: Final = 0xBF58476D1CE4E5B9
"""Odd 64-bit constants; any would do. Between two multiplications stands a shift: without it the
parts would add up as their differences do, and two wrong runs could hide one another."""


def bucket_of(run_id: RunId) -> int:
    """Bucket of a run: CRC-32 of its ID, lowest six bits."""
    return zlib.crc32(run_id.encode()) % BUCKETS


def part_of(state: RunState) -> tuple[int, int]:
    """Bucket of a run, and what the run adds to its sum: a mix of ID, plan, attempt and status,
    64 bits without sign; 0 for a closed one.
    """
    crc = zlib.crc32(state.run_id.encode())
    status = state.status
    if status is _WAITING:
        code = 2
    elif status is _STARTED:
        code = 3
    elif status is _PENDING:
        code = 1
    elif status is _CLOSED:
        return crc % BUCKETS, 0
    else:
        code = 0
    mixed = ((crc << 32) + state.plan * _PLAN_FACTOR + (state.attempt << 2) + code) * _MIX_BEFORE
    mixed &= _MASK
    return crc % BUCKETS, (mixed ^ mixed >> 29) * _MIX_AFTER & _MASK


class Digest:
    """Sums of the buckets of one ledger partition's open runs."""

    __slots__ = ("sums",)

    def __init__(self) -> None:
        """No run is open."""
        self.sums = [0] * BUCKETS
        """Not wrapped: `buckets` does that, so adding costs no more than an addition."""

    def add(self, state: RunState) -> None:
        """Count a run's state in."""
        bucket, part = part_of(state)
        self.sums[bucket] += part

    def remove(self, state: RunState) -> None:
        """Count a run's state out again; it must have been counted in."""
        bucket, part = part_of(state)
        self.sums[bucket] -= part

    def buckets(self) -> tuple[int, ...]:
        """The sums from bucket 0, wrapped to 64 bits with sign, as an Avro `long` holds them."""
        return tuple(wrapped(total) for total in self.sums)


def wrapped(total: int) -> int:
    """A sum modulo 2^64, in -2^63 ... 2^63 - 1."""
    low = total & _MASK
    return low - (1 << 64) if low & _SIGN else low
