"""Zig-zag variable-length integers (Avro 1.12, "Binary Encoding"), by table.

What the generated codec calls where its inlined paths for the common sizes do not fit. Only the
shortest form of a number is read: every writer writes it, and so a value has one encoding.
"""

from typing import Final

_CONTINUED: Final = [bytes((value & 127 | 128, value >> 7 | 128)) for value in range(16_384)]
_FINAL: Final = [
    bytes((value,)) if value < 128 else bytes((value & 127 | 128, value >> 7))
    for value in range(16_384)
]

PAIRS: Final = _CONTINUED
"""Two bytes that do not end a number, by their 14 bits."""

ENDS: Final = _FINAL
"""The one or two bytes that end a number, by its last 14 bits, unsigned."""

SMALL: Final = [_FINAL[value << 1] for value in range(8192)] + [
    _FINAL[value << 1 ^ -1] for value in range(-8192, 0)
]
"""Encoding of -8192 ... 8191, by the number; negative ones count from the end of the list."""

SIGNED: Final = tuple(value >> 1 ^ -(value & 1) for value in range(256))
"""Number by its single byte."""

NEXT: Final = tuple(
    (value >> 1) + 1 if value < 128 and not value & 1 else 0 for value in range(256)
)
"""Bytes that a text takes whose length has this single byte; 0: not a length of one byte."""

# An instant of this age takes eight bytes: three pairs that go on, and one that ends. Each is a
# look-up. A pair that is not of its kind gives a number so low that the sum is negative.
_NO: Final = -(1 << 62)
LOW_PAIR: Final = [_NO] * 65_536
MID_PAIR: Final = [_NO] * 65_536
TOP_PAIR: Final = [_NO << 42] * 65_536
for _bits, _pair in enumerate(_CONTINUED):
    _index = _pair[0] | _pair[1] << 8
    MID_PAIR[_index] = _bits
    if not _bits & 1:
        LOW_PAIR[_index] = _bits >> 1
    if _bits > 127:
        TOP_PAIR[_index & 0x7FFF] = _bits << 41

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1


class Bad(ValueError):
    """Bytes or a value that cannot be; the codec adds the field and the offset."""


def long_bytes(value: int) -> bytes:
    """Encoding of any `long`. Raises `Bad` if it has more than 64 bits."""
    if not LONG_MIN <= value <= LONG_MAX:
        raise Bad(f"{value} does not fit in 64 bits")
    bits = value << 1 ^ value >> 63
    if bits < 1 << 14:
        return _FINAL[bits]
    low = _CONTINUED[bits & 16_383]
    if bits < 1 << 28:
        return low + _FINAL[bits >> 14]
    low += _CONTINUED[bits >> 14 & 16_383]
    if bits < 1 << 42:
        return low + _FINAL[bits >> 28]
    low += _CONTINUED[bits >> 28 & 16_383]
    if bits < 1 << 56:
        return low + _FINAL[bits >> 42]
    return low + _CONTINUED[bits >> 42 & 16_383] + _FINAL[bits >> 56]


def int_bytes(value: int) -> bytes:
    """Encoding of any `int`. Raises `Bad` if it has more than 32 bits."""
    if not INT_MIN <= value <= INT_MAX:
        raise Bad(f"{value} does not fit in 32 bits")
    return long_bytes(value)


def long_at(data: bytes, at: int) -> tuple[int, int]:
    """Number at a place, and the place after it. Raises `Bad`, or `IndexError` at the end."""
    byte = data[at]
    bits = byte & 127
    shift = 0
    while byte > 127:
        at += 1
        byte = data[at]
        shift += 7
        bits |= (byte & 127) << shift
        if shift == 63 and byte > 1:
            raise Bad("a number of more than 64 bits")
    if byte == 0 and shift:
        raise Bad("a number not in its shortest form")
    return bits >> 1 ^ -(bits & 1), at + 1


def int_at(data: bytes, at: int) -> tuple[int, int]:
    """As `long_at`, of an `int`."""
    value, at = long_at(data, at)
    if not INT_MIN <= value <= INT_MAX:
        raise Bad(f"{value} does not fit in 32 bits")
    return value, at


def length_at(data: bytes, at: int) -> tuple[int, int]:
    """Start and end of a text or bytes whose length stands at a place; both within the data."""
    length, at = long_at(data, at)
    if length < 0:
        raise Bad(f"length {length} is negative")
    if length > len(data) - at:
        raise Bad(f"length {length}, but {len(data) - at} bytes are left")
    return at, at + length


def count_at(data: bytes, at: int, least_bytes: int) -> tuple[int, int, int]:
    """Items of a block, the place of the first, and where the block ends (-1: not said).

    `least_bytes`: fewest bytes an item takes; a count that the rest of the data cannot hold is
    refused before anything is made of it.
    """
    count, at = long_at(data, at)
    end = -1
    if count < 0:
        count = -count
        size, at = long_at(data, at)
        if not 0 <= size <= len(data) - at:
            raise Bad(f"block of {size} bytes, but {len(data) - at} bytes are left")
        end = at + size
    if count * least_bytes > len(data) - at:
        raise Bad(f"{count} items, but {len(data) - at} bytes are left")
    return count, at, end
