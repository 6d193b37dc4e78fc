"""A batch as the bytes of one row: its events behind one another, and a chained checksum.

Each event stands in single-object encoding behind its length. The checksum of a row is begun with
that of the row before, the first one with the names of log and partition: a row that was changed,
moved, taken out or put in is found by whoever reads past it.
"""

import zlib
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from horolog.schemas.codec import Malformed
from horolog.schemas.errors import DATA_DIR_CORRUPT, Corrupt
from horolog.schemas.framing import decode_any, encode_framed
from horolog.schemas.records import EVENTS, Event

_LENGTH_BYTES: Final = 4
_R = TypeVar("_R", bound=msgspec.Struct)


def pack(events: Sequence[Event]) -> bytes:
    """Data of a batch."""
    parts: list[bytes] = []
    for event in events:
        framed = encode_framed(event)
        parts += (len(framed).to_bytes(_LENGTH_BYTES, "big"), framed)
    return b"".join(parts)


def unpack(partition: int, data: bytes) -> tuple[Event, ...]:
    """Events of a batch. Raises Corrupt."""
    events: list[Event] = []
    place, end = 0, len(data)
    while place < end:
        begin = place + _LENGTH_BYTES
        place = begin + int.from_bytes(data[place:begin], "big")
        # The slice of a batch that was cut is short, so its last record cannot be decoded.
        events.append(decoded(partition, data[begin:place], EVENTS))
    return tuple(events)


def decoded(partition: int, data: bytes, expect: tuple[type[_R], ...]) -> _R:
    """A record of one of these types. Raises Corrupt."""
    try:
        return decode_any(data, expect)
    except Malformed as error:
        raise Corrupt(DATA_DIR_CORRUPT, f"ledger partition {partition}: {error.detail}") from error


def chain_begin(log_id: str, partition: int) -> int:
    """What the checksum of a partition's first row is begun with."""
    return zlib.crc32(f"{log_id}/{partition}".encode())


def chained(data: bytes, before: int) -> int:
    """Checksum of a row: CRC-32 of its data, begun with the one of the row before."""
    return zlib.crc32(data, before)


def snapshot_sum(partition: int, key: str, data: bytes) -> int:
    """Checksum of a snapshot record in its place."""
    return zlib.crc32(data, zlib.crc32(f"{partition}/{key}".encode()))
