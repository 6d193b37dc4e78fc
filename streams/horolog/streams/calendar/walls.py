"""When an expression matches on a clock on the wall that never changes: no zones here.

A wall time is an `int`, seconds since 1970-01-01T00:00:00 as the clock shows it. cronsim
evaluates; what it lacks (`15W`) comes from croniter; an expression that needs both is the union
of its parts. cronsim is given wall times only: its own handling of zones has a fault (Lord Howe).
"""

import copy
import functools
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Final, Protocol

from cronsim import CronSim, CronSimError

from horolog.streams.calendar.limits import (
    S_PER_DAY,
    S_PER_HOUR,
    S_PER_MINUTE,
    WALLS_MAX,
)

_EPOCH: Final = datetime(1970, 1, 1)
_SECOND: Final = timedelta(seconds=1)
_FORWARD: Final = 1
_BACKWARD: Final = -1


class Steps(Protocol):
    """Wall times, one after the other."""

    def after(self, wall: int) -> int | None:
        """The first one strictly after `wall`; None if there never is one."""
        ...

    def before(self, wall: int) -> int | None:
        """The last one strictly before `wall`; None if there never was one."""
        ...


class Walls(Steps, Protocol):
    """The wall times that a schedule names."""

    def count(self, low: int, high: int) -> int:
        """How many there are in [low, high)."""
        ...


def at_wall(wall: int) -> datetime:
    """A wall time as a datetime without a zone."""
    return _EPOCH + timedelta(seconds=wall)


def wall_of(at: datetime) -> int:
    """The wall time of a datetime without a zone; whole seconds."""
    return (at - _EPOCH) // _SECOND


class One:
    """A single wall time, of a schedule that names one instant."""

    def __init__(self, wall: int) -> None:
        self._wall = wall

    def after(self, wall: int) -> int | None:
        """See Walls."""
        return self._wall if self._wall > wall else None

    def before(self, wall: int) -> int | None:
        """See Walls."""
        return self._wall if self._wall < wall else None

    def count(self, low: int, high: int) -> int:
        """See Walls."""
        return 1 if low <= self._wall < high else 0


class DayWalls(Steps, Protocol):
    """A part of an expression: the wall times on the days that it matches."""

    def matches_day(self, day: date) -> bool:
        """Whether the day, month and weekday fields match."""
        ...


class Times:
    """The times of day an expression matches, each in seconds since midnight."""

    def __init__(self, sim: CronSim) -> None:
        self._seconds = sorted(sim.seconds)
        self._minutes = sorted(sim.minutes)
        self._hours = sorted(sim.hours)
        self.per_day = len(self._seconds) * len(self._minutes) * len(self._hours)

    def count_below(self, second_of_day: int) -> int:
        """How many come before `second_of_day`."""
        hour, rest = divmod(second_of_day, S_PER_HOUR)
        minute, second = divmod(rest, S_PER_MINUTE)
        per_minute = len(self._seconds)
        per_hour = per_minute * len(self._minutes)
        count = sum(1 for h in self._hours if h < hour) * per_hour
        if hour in self._hours:
            count += sum(1 for m in self._minutes if m < minute) * per_minute
            if minute in self._minutes:
                count += sum(1 for s in self._seconds if s < second)
        return count


class SimWalls:
    """What cronsim evaluates."""

    def __init__(self, sim: CronSim) -> None:
        self._sim = sim

    def after(self, wall: int) -> int | None:
        """See Walls."""
        return self._step(wall, _FORWARD)

    def before(self, wall: int) -> int | None:
        """See Walls."""
        return self._step(wall, _BACKWARD)

    def _step(self, wall: int, direction: int) -> int | None:
        # A copy, not a parse: it costs 2.5 µs instead of 14. And not the original: another thread
        # may be stepping from it.
        sim = copy.copy(self._sim)
        sim.dt = at_wall(wall)
        sim.tick_direction = direction
        found = next(sim, None)
        return None if found is None else wall_of(found)

    def matches_day(self, day: date) -> bool:
        """See DayWalls."""
        return day.month in self._sim.months and self._sim.match_day(day)


class CronWalls:
    """The union of the parts of one expression, which share their times of day."""

    def __init__(self, parts: tuple[DayWalls, ...], times: Times) -> None:
        self._parts = parts
        self._times = times

    def after(self, wall: int) -> int | None:
        """See Walls."""
        found = (part.after(wall) for part in self._parts)
        return min((hit for hit in found if hit is not None), default=None)

    def before(self, wall: int) -> int | None:
        """See Walls."""
        found = (part.before(wall) for part in self._parts)
        return max((hit for hit in found if hit is not None), default=None)

    def count(self, low: int, high: int) -> int:
        """See Walls. Cost: by the day, not by the match."""
        if low >= high:
            return 0
        first_day, first_second = divmod(low, S_PER_DAY)
        last_day, last_second = divmod(high, S_PER_DAY)
        count = 0
        for day in range(first_day, last_day + 1):
            if self._matches_day(_EPOCH.date() + timedelta(days=day)):
                count += self._times.per_day
                if day == first_day:
                    count -= self._times.count_below(first_second)
                if day == last_day:
                    count -= self._times.per_day - self._times.count_below(last_second)
        return count

    def _matches_day(self, day: date) -> bool:
        return any(part.matches_day(day) for part in self._parts)


@functools.lru_cache(maxsize=WALLS_MAX)
def cron_walls(text: str) -> Walls:
    """Evaluator of a concrete expression: six fields, second first, as `cron.concrete` gives it."""
    second, minute, hour, day, month, weekday = text.split(" ")
    any_day = _sim(f"{second} {minute} {hour} * * *")
    times = Times(any_day)
    days = day.split(",")
    nearest = [int(term[:-1]) for term in days if term.endswith("W") and term != "LW"]
    if not nearest:
        return CronWalls(tuple(_sims(text)), times)
    # The day rule is that of the whole expression: with a leading star both fields must match,
    # else either is enough, which here is one more member of the union.
    both = day.startswith("*") or weekday.startswith("*")
    plain = [term for term in days if term == "LW" or not term.endswith("W")]
    parts: list[DayWalls] = []
    if plain or not both:
        plain_days = ",".join(plain) or "*"
        parts.extend(_sims(f"{second} {minute} {hour} {plain_days} {month} {weekday}"))
    # croniter takes 0.1 s to import and few expressions need it.
    from horolog.streams.calendar.nearest import NearestWalls

    required = weekday if both else "*"
    filter_ = _sim(f"0 0 0 * {month} {required}")
    parts.extend(NearestWalls(wanted, filter_, SimWalls(any_day)) for wanted in nearest)
    return CronWalls(tuple(parts), times)


def _sims(text: str) -> Iterator[SimWalls]:
    try:
        yield SimWalls(_sim(text))
    except CronSimError:
        # The text has been read before, so this is a date that no month has, as 30 February.
        return


def _sim(text: str) -> CronSim:
    return CronSim(text, _EPOCH)
