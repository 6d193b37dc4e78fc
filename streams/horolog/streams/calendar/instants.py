"""One instant as a user writes it: ISO 8601 with a time of day, with or without an offset."""

import functools
import re
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from horolog.streams.calendar.limits import (
    EARLIEST_S,
    LATEST_S,
    PARSED_INSTANTS_MAX,
    S_PER_DAY,
    S_PER_HOUR,
    S_PER_MINUTE,
    US_PER_S,
)
from horolog.streams.calendar.walls import wall_of

# Not datetime.fromisoformat: what it takes differs between versions of Python, and a schedule
# must mean the same on all of them.
_AT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"\s*([Zz]|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
_UNITS: Final = (("d", S_PER_DAY), ("h", S_PER_HOUR), ("m", S_PER_MINUTE), ("s", 1))
_EXAMPLE: Final = "write 2026-12-24T09:00, or with an offset 2026-12-24T09:00:00+01:00"


class At(NamedTuple):
    """A wall time in seconds; offset_s is None when the schedule's zone decides."""

    wall: int
    offset_s: int | None


@functools.lru_cache(maxsize=PARSED_INSTANTS_MAX)
def parse_at(text: str) -> At:
    """Read an instant; ValueError says in words what is wrong, for the user."""
    match = _AT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"is no date with a time of day; {_EXAMPLE}")
    *fields, fraction, zone = match.groups()
    if fraction is not None and fraction.strip("0"):
        raise ValueError("has a fraction of a second; slots are whole seconds")
    year, month, day, hour, minute, second = (int(field or 0) for field in fields)
    try:
        wall = wall_of(datetime(year, month, day, hour, minute, second))
    except ValueError as error:
        raise ValueError(f"does not exist: {error}") from error
    if not EARLIEST_S + S_PER_DAY <= wall < LATEST_S - S_PER_DAY:
        raise ValueError("is out of range: years 1801 to 2499")
    return At(wall, None if zone is None else _offset_s(zone))


def _offset_s(zone: str) -> int:
    if zone in ("Z", "z"):
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    offset_s = hours * S_PER_HOUR + minutes * S_PER_MINUTE
    if offset_s >= S_PER_DAY or minutes * S_PER_MINUTE >= S_PER_HOUR:
        raise ValueError(f"has an offset that does not exist: {zone}")
    return -offset_s if zone[0] == "-" else offset_s


def utc_text(at_s: int) -> str:
    """An instant in seconds as ISO 8601 in UTC."""
    return (datetime(1970, 1, 1) + timedelta(seconds=at_s)).isoformat() + "Z"


def duration_text(duration_us: int) -> str:
    """A duration as a job file has it: 90s, 5m, 1h30m, 14d."""
    seconds, rest_us = divmod(abs(duration_us), US_PER_S)
    sign = "-" if duration_us < 0 else ""
    if rest_us:
        fraction = f"{rest_us:06d}".rstrip("0")
        return f"{sign}{seconds}.{fraction}s"
    text = ""
    for unit, unit_s in _UNITS:
        count, seconds = divmod(seconds, unit_s)
        text += f"{count}{unit}" if count else ""
    return sign + (text or "0s")
