"""Durations and instants as users write them, and the microseconds they mean.

A duration is `90s`, `10m`, `1h30m`, `500ms`, `7d`; an instant ISO 8601 with an offset. A bare
number is refused: nobody can see whether 600 is seconds or milliseconds.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

US_PER_MS: Final = 1_000
US_PER_S: Final = 1_000_000
_UNITS_US: Final = {
    "d": 86_400 * US_PER_S,
    "h": 3_600 * US_PER_S,
    "m": 60 * US_PER_S,
    "s": US_PER_S,
    "ms": US_PER_MS,
}
_PART: Final = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?(d|h|ms|m|s)")
_DURATION_US_MAX: Final = 100 * 366 * 86_400 * US_PER_S
DURATION_RIGHT: Final = 'write a number with a unit, as "90s", "10m" or "1h30m"'

_INSTANT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?"
    r"([Zz]|[+ -]\d\d:?\d\d)?",
    re.ASCII,
)
INSTANT_RIGHT: Final = (
    'write an instant with its offset, as "2026-12-01T09:00:00Z" or "2026-12-01T10:00:00+01:00"'
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str) -> int:
    """Microseconds of a duration. ValueError says what is wrong and what would be right."""
    at, total_us = 0, 0
    smallest = max(_UNITS_US.values()) + 1
    while match := _PART.match(text, at):
        whole, fraction, unit = match.groups()
        unit_us = _UNITS_US[unit]
        if unit_us >= smallest:
            break
        smallest = unit_us
        total_us += int(whole) * unit_us
        if fraction is not None:
            total_us += int(fraction) * unit_us // 10 ** len(fraction)
        at = match.end()
    if at == 0 or at != len(text):
        raise ValueError(f"is no duration; {DURATION_RIGHT}")
    if total_us > _DURATION_US_MAX:
        raise ValueError("is more than 100 years")
    return total_us


def duration_text(duration_us: int) -> str:
    """The shortest text of a duration, in units that divide it: 5400 s is `1h30m`."""
    if duration_us < 0:
        return f"-{duration_text(-duration_us)}"
    if duration_us == 0:
        return "0s"
    parts: list[str] = []
    rest_us = duration_us
    for unit in ("d", "h", "m"):
        count, rest_us = divmod(rest_us, _UNITS_US[unit])
        if count:
            parts.append(f"{count}{unit}")
    seconds, micros = divmod(rest_us, US_PER_S)
    if micros % US_PER_MS == 0:
        parts += [f"{seconds}s"] if seconds else []
        parts += [f"{micros // US_PER_MS}ms"] if micros else []
    else:
        parts.append(f"{seconds}.{micros:06d}s")
    return "".join(parts)


def parse_instant(text: str) -> int:
    """Microseconds since the epoch of an instant with an offset.

    ValueError says what is wrong and what would be right; a text without an offset is refused,
    for the server's zone is nobody's business.
    """
    match = _INSTANT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"is no instant; {INSTANT_RIGHT}")
    *numbers, fraction, offset = match.groups()
    if offset is None:
        raise ValueError(f"has no offset from UTC; {INSTANT_RIGHT}")
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    micros = int((fraction or "").ljust(6, "0"))
    try:
        wall = datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"does not exist: {error}") from error
    return (wall - _EPOCH) // timedelta(microseconds=1) - _offset_us(offset)


def has_offset(text: str) -> bool:
    """Whether a text is an instant with an offset, so that no zone is needed to read it."""
    match = _INSTANT.fullmatch(text.strip())
    return match is not None and match.group(8) is not None


def _offset_us(offset: str) -> int:
    if offset in ("Z", "z"):
        return 0
    digits = offset[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"has an offset that does not exist: {offset}")
    total_us = (hours * 60 + minutes) * 60 * US_PER_S
    # A plus that was not escaped in an address arrives as a space.
    return -total_us if offset[0] == "-" else total_us


def instant_text(at_us: int) -> str:
    """ISO 8601 in UTC, with a fraction only where there is one."""
    seconds, micros = divmod(at_us, US_PER_S)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    text = text.rjust(19, "0")
    return f"{text}.{micros:06d}Z" if micros else f"{text}Z"
