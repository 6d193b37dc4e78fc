# croniter ships no type information; its one answer is annotated where it is used.
# mypy: disable-error-code="import-untyped"
"""`15W`, the weekday nearest a day of the month: the one thing that croniter evaluates for us.

The nearest day from Monday to Friday that is in the same month; a day that the month does not
have counts as its last one (Quartz's rule, as croniter has it).
"""

import functools
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Final

from croniter import croniter
from cronsim import CronSim

from horolog.streams.calendar.limits import (
    DAYS_PER_YEAR,
    NEAREST_MONTHS_KEPT_MAX,
    NEAREST_YEARS_MAX,
    S_PER_DAY,
)
from horolog.streams.calendar.walls import Steps, at_wall

_MONTHS_PER_YEAR: Final = 12
_SECOND: Final = timedelta(seconds=1)
_EPOCH_DAY: Final = date(1970, 1, 1)
_MONDAY_TO_FRIDAY: Final = 5
_WEEKDAYS: Final = tuple(
    day
    for day in (_EPOCH_DAY + timedelta(days=i) for i in range(DAYS_PER_YEAR))
    if day.weekday() < _MONDAY_TO_FRIDAY
)
"""A year of them, so that each is there as the first to the fifth and as the last of a month."""


class NearestWalls:
    """The wall times of `times` on the days nearest one day of the month.

    days: which months and weekdays may be hit.
    """

    def __init__(self, wanted: int, days: CronSim, times: Steps) -> None:
        self._wanted = wanted
        self._days = days
        self._times = times
        # Cost: a weekend day is never nearest; to find that out by search takes 60 ms.
        self._possible = any(days.match_dow(day) for day in _WEEKDAYS)

    def after(self, wall: int) -> int | None:
        """See Walls."""
        for day in self._days_from(at_wall(wall).date(), +1):
            start = _midnight(day)
            hit = self._times.after(max(wall, start - 1))
            if hit is not None and hit < start + S_PER_DAY:
                return hit
        return None

    def before(self, wall: int) -> int | None:
        """See Walls."""
        for day in self._days_from(at_wall(wall).date(), -1):
            start = _midnight(day)
            hit = self._times.before(min(wall, start + S_PER_DAY))
            if hit is not None and hit >= start:
                return hit
        return None

    def matches_day(self, day: date) -> bool:
        """See DayWalls."""
        if day.month not in self._days.months or not self._days.match_dow(day):
            return False
        return day == nearest_weekday(self._wanted, day.year, day.month)

    def _days_from(self, day: date, direction: int) -> Iterator[date]:
        """Matching days in the month of `day` and the months after or before it."""
        if not self._possible:
            return
        month = day.year * _MONTHS_PER_YEAR + day.month - 1
        for _ in range(NEAREST_YEARS_MAX * _MONTHS_PER_YEAR + 1):
            year, month_index = divmod(month, _MONTHS_PER_YEAR)
            if month_index + 1 in self._days.months:
                found = nearest_weekday(self._wanted, year, month_index + 1)
                if self._days.match_dow(found):
                    yield found
            month += direction


@functools.lru_cache(maxsize=NEAREST_MONTHS_KEPT_MAX)
def nearest_weekday(wanted: int, year: int, month: int) -> date:
    """The weekday nearest the day `wanted` of a month."""
    before = datetime(year, month, 1) - _SECOND
    found: datetime = croniter(f"0 0 {wanted}W * *", before).get_next(datetime)
    return found.date()


def _midnight(day: date) -> int:
    return (day - _EPOCH_DAY).days * S_PER_DAY
