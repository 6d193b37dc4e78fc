"""Zig-zag variable-length integers (Avro 1.12, "Binary Encoding"), by table.

The generated codec looks the common sizes up in these tables and calls the functions for the rest.
Only the shortest form of a number is read: every writer writes it, and so a value has one encoding.
"""

from typing import Final

_PAIRS: Final = [bytes((value & 127 | 128, value >> 7 | 128)) for value in range(16_384)]
_ENDS: Final = [
    bytes((value,)) if value < 128 else bytes((value & 127 | 128, value >> 7))
    for value in range(16_384)
]

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1

_CACHED_MAX: Final = 16_384


class Bad(ValueError):
    """Bytes or a value that cannot be; the codec adds the field and the offset."""


# ---- encoding

SMALL: Final = [_ENDS[value << 1] for value in range(8192)] + [
    _ENDS[value << 1 ^ -1] for value in range(-8192, 0)
]
"""Encoding of -8192 ... 8191, by the number; negative ones count from the end of the list."""

FIRST: Final = _PAIRS[::2]
"""First two bytes of a number above 8191, by its lowest 13 bits."""


class _Rest(dict[int, bytes]):
    """Remaining bytes of a number above 8191, by the bits above its lowest 13; made when missing.

    Sequence numbers, tokens and times that are written together differ in their lowest bits: one
    entry serves 8,192 events, or 8 ms of instants, so few look-ups miss.
    """

    def __missing__(self, bits: int) -> bytes:
        if len(self) >= _CACHED_MAX:
            self.clear()
        if bits > LONG_MAX >> 13:
            raise Bad("has a number that does not fit in 64 bits")
        made = b""
        left = bits
        while left >= 1 << 14:
            made += _PAIRS[left & 16_383]
            left >>= 14
        made += _ENDS[left]
        self[bits] = made
        return made


REST: Final = _Rest()


def long_bytes(value: int) -> bytes:
    """Encoding of any `long`. Raises `Bad` if it has more than 64 bits."""
    if not LONG_MIN <= value <= LONG_MAX:
        raise Bad(f"{value} does not fit in 64 bits")
    left = value << 1 ^ value >> 63
    made = b""
    while left >= 1 << 14:
        made += _PAIRS[left & 16_383]
        left >>= 14
    return made + _ENDS[left]


def int_bytes(value: int) -> bytes:
    """Encoding of any `int`. Raises `Bad` if it has more than 32 bits."""
    if not INT_MIN <= value <= INT_MAX:
        raise Bad(f"{value} does not fit in 32 bits")
    return long_bytes(value)


# ---- decoding

SIGNED: Final = tuple(value >> 1 ^ -(value & 1) for value in range(256))
"""Number by its single byte."""

NEXT: Final = tuple(
    (value >> 1) + 1 if value < 128 and not value & 1 else 0 for value in range(256)
)
"""Bytes that a text takes whose length has this single byte; 0: not a length of one byte."""

PAIR: Final = [[-1] * 256 for _ in range(256)]
"""Bits of a first and a second byte that both go on; -1: they do not."""

LOW_PAIR: Final = [-(1 << 62)] * 65_536
"""Lowest 13 bits of a positive number by its first two bytes, little-endian, if both go on; else
so low that no sum with it is positive.
"""

for _bits, _pair in enumerate(_PAIRS):
    PAIR[_pair[0]][_pair[1]] = _bits
    if not _bits & 1:
        LOW_PAIR[_pair[0] | _pair[1] << 8] = _bits >> 1


class _Six(dict[bytes, int]):
    """What the last six of eight bytes add to a positive number; made when missing.

    -2**62 if they do not end a number of eight bytes. Instants of our age take eight; those read
    together share the last six.
    """

    def __missing__(self, six: bytes) -> int:
        last = six[5]
        if min(six[:5]) < 128 or not 0 < last < 128:
            return -(1 << 62)
        if len(self) >= _CACHED_MAX:
            self.clear()
        value = sum((byte & 127) << 13 + 7 * place for place, byte in enumerate(six))
        self[six] = value
        return value


SIX: Final = _Six()


def long_at(data: bytes, at: int) -> tuple[int, int]:
    """Number at a place, and the place after it. Raises `Bad`, or `IndexError` at the end.

    The branches are the loop, unrolled for up to six bytes: sequence numbers, durations, tokens.
    """
    one = data[at]
    if one < 128:
        return SIGNED[one], at + 1
    two = data[at + 1]
    if 0 < two < 128:
        bits = one + (two << 7) - 128
        return bits >> 1 ^ -(bits & 1), at + 2
    low = PAIR[one][two]
    if low < 0:
        raise Bad("a number not in its shortest form")
    one = data[at + 2]
    if 0 < one < 128:
        bits = low + (one << 14)
        return bits >> 1 ^ -(bits & 1), at + 3
    two = data[at + 3]
    if 0 < two < 128 <= one:
        bits = low + ((two << 7) + one - 128 << 14)
        return bits >> 1 ^ -(bits & 1), at + 4
    middle = PAIR[one][two]
    if middle < 0:
        return _long_at(data, at)
    one = data[at + 4]
    if 0 < one < 128:
        bits = low + (middle + (one << 14) << 14)
        return bits >> 1 ^ -(bits & 1), at + 5
    two = data[at + 5]
    if 0 < two < 128 <= one:
        bits = low + (middle + ((two << 7) + one - 128 << 14) << 14)
        return bits >> 1 ^ -(bits & 1), at + 6
    return _long_at(data, at)


def _long_at(data: bytes, at: int) -> tuple[int, int]:
    """As `long_at`, of any number of two or more bytes: two at a time."""
    bits = 0
    for shift in range(0, 70, 14):
        one = data[at]
        if one < 128:
            bits += one << shift
            at += 1
            break
        two = data[at + 1]
        at += 2
        pair = PAIR[one][two]
        if pair < 0:
            bits += (two << 7) + one - 128 << shift
            break
        bits += pair << shift
    else:
        raise Bad("a number of more than ten bytes")
    if data[at - 1] == 0:
        raise Bad("a number not in its shortest form")
    if bits >> 64:
        raise Bad("a number of more than 64 bits")
    return bits >> 1 ^ -(bits & 1), at


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
