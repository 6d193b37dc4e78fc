"""Slots by brute force: every minute of UTC is looked at, one by one.

Written apart from the calendar and sharing nothing with it: no cron library, no table of clock
changes; zoneinfo is asked what each minute shows. Slow and plain on purpose. The audit's tests
use it too.

Rules, from Debian's cron: a minute or hour field whose text begins with a star follows real time;
else a time the clock jumps over counts once at the first minute after the jump (`shift`) or not at
all (`skip`), and a time it shows twice counts the `first`, the `second` or `both` times. Day of
month and day of week: both must match if one of their texts begins with a star, else either.
"""

import calendar
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTES_PER_DAY = 1440
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = date(1970, 1, 1)
US = 1_000_000

MONTHS = {calendar.month_abbr[i].upper(): i for i in range(1, 13)}
WEEKDAYS = {calendar.day_abbr[i - 1].upper(): i % 7 for i in range(1, 8)}


def zone_file(name: str) -> ZoneInfo:
    """A zone of the pinned tz database, whatever the machine has."""
    path = files("tzdata").joinpath("zoneinfo", *name.split("/"))
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


class Expression(NamedTuple):
    """What an expression matches."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    day: Callable[[date], bool]
    real_time: bool

    def matches(self, wall_minute: int) -> bool:
        """Whether a minute of the clock on the wall, counted from 1970, matches."""
        day, minute = divmod(wall_minute, MINUTES_PER_DAY)
        return (
            minute % 60 in self.minutes and minute // 60 in self.hours and _day_matches(self, day)
        )


@lru_cache(maxsize=100_000)
def _day_matches(expression: Expression, day: int) -> bool:
    at = EPOCH_DAY + timedelta(days=day)
    return at.month in expression.months and expression.day(at)


@lru_cache(maxsize=1_000)
def parse(cron: str, second: str = "0") -> Expression:
    """Read an expression that is known to be right."""
    minute, hour, day, month, weekday = cron.upper().split()
    return Expression(
        _numbers(second, 0, 59),
        _numbers(minute, 0, 59),
        _numbers(hour, 0, 23),
        _numbers(month, 1, 12),
        _day_rule(day, weekday),
        minute.startswith("*") or hour.startswith("*"),
    )


def _day_rule(day: str, weekday: str) -> Callable[[date], bool]:
    days, weekdays = day.split(","), weekday.split(",")
    both = day.startswith("*") or weekday.startswith("*")

    def rule(at: date) -> bool:
        of_month = any(_is_day(term, at) for term in days)
        of_week = any(_is_weekday(term, at) for term in weekdays)
        return (of_month and of_week) if both else (of_month or of_week)

    return rule


def _is_day(term: str, at: date) -> bool:
    last = calendar.monthrange(at.year, at.month)[1]
    if term == "L":
        return at.day == last
    if term == "LW":
        return at.day == max(d for d in range(1, last + 1) if at.replace(day=d).weekday() < 5)
    if term.endswith("W"):
        wanted = min(int(term[:-1]), last)
        working = [d for d in range(1, last + 1) if at.replace(day=d).weekday() < 5]
        return at.day == min(working, key=lambda d: abs(d - wanted))
    return at.day in _numbers(term, 1, 31)


def _is_weekday(term: str, at: date) -> bool:
    today = at.isoweekday() % 7
    if match := re.fullmatch(r"(\w+)#(\d)", term):
        return today in _numbers(match[1], 0, 7) and (at.day - 1) // 7 + 1 == int(match[2])
    if match := re.fullmatch(r"(\w+)L", term):
        last = (at + timedelta(days=7)).month != at.month
        return today in _numbers(match[1], 0, 7) and last
    return today in _numbers(term, 0, 7)


@lru_cache(maxsize=10_000)
def _numbers(text: str, low: int, high: int) -> frozenset[int]:
    """Numbers of a plain field; a range that runs backwards goes around the end."""
    found: set[int] = set()
    for term in text.split(","):
        base, _, step = term.partition("/")
        first, _, last = base.partition("-")
        if base == "*":
            series = list(range(low, high + 1))
        elif not last:
            series = list(range(_number(first), (high if step else _number(first)) + 1))
        elif _number(first) <= _number(last):
            series = list(range(_number(first), _number(last) + 1))
        else:
            # The day of week has two names for Sunday, and the circle has one.
            top = 6 if high == 7 else high
            start = _number(first) % 7 if high == 7 else _number(first)
            series = [*range(start, top + 1), *range(low, _number(last) + 1)]
            if start <= _number(last):
                series = list(range(start, _number(last) + 1))
        found.update(series[:: int(step or 1)])
    return frozenset(number % 7 for number in found) if high == 7 else frozenset(found)


def _number(text: str) -> int:
    return MONTHS.get(text) or WEEKDAYS[text] if text.isalpha() else int(text)


class Walk(NamedTuple):
    """What the clocks of a zone show from one minute of UTC on, minute by minute.

    walls: minutes of the wall since 1970, one for each minute of UTC from `start` on.
    """

    start: int
    walls: tuple[int, ...]

    def slots(
        self, expression: Expression, *, gap: str = "shift", overlap: str = "first"
    ) -> list[int]:
        """The slots within the walk, in microseconds, in order.

        A clock change counts only if the walk holds both sides of what it repeats or jumps over.
        """
        if expression.real_time:
            hits = [i for i, wall in enumerate(self.walls) if expression.matches(wall)]
            return sorted(self._us(i, second) for i in hits for second in expression.seconds)
        seen: dict[int, list[int]] = {}
        for i, wall in enumerate(self.walls):
            seen.setdefault(wall, []).append(i)
        slots: set[int] = set()
        for wall, hits in seen.items():
            if expression.matches(wall):
                wanted = {"first": hits[:1], "second": hits[-1:], "both": hits}[overlap]
                slots.update(self._us(i, second) for i in wanted for second in expression.seconds)
        if gap == "shift":
            for i in range(1, len(self.walls)):
                jumped = range(self.walls[i - 1] + 1, self.walls[i])
                if any(expression.matches(wall) for wall in jumped if wall not in seen):
                    slots.add(self._us(i, 0))
        return sorted(slots)

    def _us(self, i: int, second: int) -> int:
        return ((self.start + i) * 60 + second) * US


def changes(zone: ZoneInfo, start: datetime, end: datetime) -> list[int]:
    """Minutes of UTC since 1970 at which the clock of a zone is set, one a day at most."""
    found: list[int] = []
    day = timedelta(days=1)
    at, offset = start, start.astimezone(zone).utcoffset()
    while at < end:
        later_offset = (at + day).astimezone(zone).utcoffset()
        if later_offset != offset:
            minutes = range(MINUTES_PER_DAY)
            i = bisect_left(
                minutes,
                True,
                key=lambda m: (at + timedelta(minutes=m)).astimezone(zone).utcoffset() != offset,
            )
            found.append((at - EPOCH) // timedelta(minutes=1) + i)
        at, offset = at + day, later_offset
    return found


def walk(zone: ZoneInfo, start: int, end: int) -> Walk:
    """Look at each minute from `start` to `end`, exclusive, minutes of UTC since 1970."""
    return Walk(start, tuple(_walls(zone, start, end)))


def _walls(zone: ZoneInfo, start: int, end: int) -> Iterator[int]:
    for minute in range(start, end):
        offset = (EPOCH + timedelta(minutes=minute)).astimezone(zone).utcoffset()
        assert offset is not None
        assert offset.seconds % 60 == 0, f"{zone.key} was off by seconds then: walk them"
        yield minute + offset // timedelta(minutes=1)
