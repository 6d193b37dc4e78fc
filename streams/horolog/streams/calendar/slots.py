"""The slots of a job: next, previous, range and count.

A schedule becomes a source of slots in whole seconds; bounds and microseconds are dealt with
here. Nothing here checks a schedule: what `check` has not accepted is the caller's bug.
"""

from collections.abc import Iterator
from typing import Final, Protocol

import msgspec

from horolog.schemas.records import Gap, JobId, OverlapHour, Schedule
from horolog.streams.calendar import cron
from horolog.streams.calendar.instants import parse_at
from horolog.streams.calendar.limits import EARLIEST_S, LATEST_S, REACH_S, US_PER_S
from horolog.streams.calendar.lines import ELAPSED, Line, Policy, cron_line
from horolog.streams.calendar.walls import One
from horolog.streams.calendar.zones import Zones

DEFAULT_MIDNIGHT_MARGIN_US: Final = 60 * US_PER_S
_MIDNIGHT: Final = "0 0 0 * * *"
_MIDNIGHT_POLICY: Final = Policy(shift=True, overlap=OverlapHour.FIRST)


class Source(Protocol):
    """Slots in seconds UTC, without the bounds of the schedule."""

    def next(self, after_s: int) -> int | None:
        """The first one strictly after an instant."""
        ...

    def previous(self, before_s: int) -> int | None:
        """The last one strictly before an instant."""
        ...

    def between(self, after_s: int, to_s: int) -> Iterator[int]:
        """Those in (after_s, to_s], in order."""
        ...

    def count(self, after_s: int, to_s: int) -> int:
        """How many there are in (after_s, to_s]."""
        ...


class _Series:
    """Slots anchor + k * every for k >= 1, up to a last k if there is one."""

    def __init__(self, anchor_s: int, every_s: int, last: int | None = None) -> None:
        self._anchor_s = anchor_s
        self._every_s = every_s
        self._last = last

    def _number_at(self, at_s: int) -> int:
        """How many slots there are up to and with an instant."""
        number = max((at_s - self._anchor_s) // self._every_s, 0)
        return number if self._last is None else min(number, self._last)

    def next(self, after_s: int) -> int | None:
        """See Source."""
        k = self._number_at(after_s) + 1
        past_last = self._last is not None and k > self._last
        return None if past_last else self._anchor_s + k * self._every_s

    def previous(self, before_s: int) -> int | None:
        """See Source."""
        k = self._number_at(before_s - 1)
        return self._anchor_s + k * self._every_s if k >= 1 else None

    def between(self, after_s: int, to_s: int) -> Iterator[int]:
        """See Source."""
        for k in range(self._number_at(after_s) + 1, self._number_at(to_s) + 1):
            yield self._anchor_s + k * self._every_s

    def count(self, after_s: int, to_s: int) -> int:
        """See Source."""
        return max(self._number_at(to_s) - self._number_at(after_s), 0)


def _source(schedule: Schedule, job_id: JobId, zones: Zones) -> Source | None:
    if schedule.cron is not None:
        reading = cron.read_valid(schedule.cron, schedule.second)
        text, elapsed = cron.concrete(reading, job_id)
        timeline = zones.timeline(schedule.timezone)
        return cron_line(text, timeline, ELAPSED if elapsed else _policy(schedule))
    if schedule.every_us is not None:
        anchor_us = schedule.anchor_us
        assert anchor_us is not None, "an interval has an anchor once it is stored"
        return _Series(anchor_us // US_PER_S, schedule.every_us // US_PER_S)
    if schedule.at is not None:
        return _Series(resolve_at(schedule, zones) // US_PER_S - 1, 1, last=1)
    return None


def _policy(schedule: Schedule) -> Policy:
    return Policy(shift=schedule.gap is Gap.SHIFT, overlap=schedule.overlap_hour)


def _window(schedule: Schedule, after_us: int, to_us: int) -> tuple[int, int]:
    """The part of (after_us, to_us] within the schedule's bounds, in seconds."""
    after_s = max(after_us // US_PER_S, EARLIEST_S - 1)
    to_s = min(to_us // US_PER_S, LATEST_S - 1)
    if schedule.start_us is not None:
        after_s = max(after_s, _ceil_s(schedule.start_us) - 1)
    if schedule.end_us is not None:
        to_s = min(to_s, _ceil_s(schedule.end_us) - 1)
    return after_s, to_s


def _ceil_s(at_us: int) -> int:
    return -(-at_us // US_PER_S)


def next_slot(schedule: Schedule, job_id: JobId, after_us: int, zones: Zones) -> int | None:
    """The first slot strictly after an instant, in µs UTC; None if there is none.

    Raises UnknownZone: the caller loads the zone of every job it plans.
    """
    source = _source(schedule, job_id, zones)
    if source is None:
        return None
    after_s, to_s = _window(schedule, after_us, LATEST_S * US_PER_S)
    slot = source.next(after_s)
    return None if slot is None or slot > to_s else slot * US_PER_S


def previous_slot(schedule: Schedule, job_id: JobId, before_us: int, zones: Zones) -> int | None:
    """The last slot strictly before an instant, in µs UTC; None if there is none."""
    source = _source(schedule, job_id, zones)
    if source is None:
        return None
    after_s, to_s = _window(schedule, EARLIEST_S * US_PER_S, before_us - 1)
    slot = source.previous(to_s + 1)
    return None if slot is None or slot <= after_s else slot * US_PER_S


def slots_between(
    schedule: Schedule, job_id: JobId, after_us: int, to_us: int, zones: Zones
) -> Iterator[int]:
    """The slots in (after_us, to_us], in order, in µs UTC."""
    source = _source(schedule, job_id, zones)
    if source is None:
        return
    after_s, to_s = _window(schedule, after_us, to_us)
    for slot in source.between(after_s, to_s):
        yield slot * US_PER_S


def count_slots(schedule: Schedule, job_id: JobId, after_us: int, to_us: int, zones: Zones) -> int:
    """How many slots there are in (after_us, to_us].

    Cost: an interval is a division; an expression goes by the day, about 1 µs each.
    """
    source = _source(schedule, job_id, zones)
    if source is None:
        return 0
    after_s, to_s = _window(schedule, after_us, to_us)
    return source.count(after_s, to_s) if after_s < to_s else 0


def resolve_at(schedule: Schedule, zones: Zones) -> int:
    """The instant of a one-time schedule, in µs UTC.

    A local time that the clock jumps over is the instant right after the jump, whatever `gap`
    says: a job that was accepted runs once, even if its zone's rules change under it. One that
    comes twice is the pass that `overlap_hour` names; `both` means the first, since the job runs
    once.
    """
    assert schedule.at is not None, "the schedule has no `at`"
    wall, offset_s = parse_at(schedule.at)
    if offset_s is not None:
        return (wall - offset_s) * US_PER_S
    overlap = schedule.overlap_hour
    policy = Policy(True, OverlapHour.FIRST if overlap is OverlapHour.BOTH else overlap)
    line = Line(lambda: One(wall), zones.timeline(schedule.timezone), policy)
    instant = line.next(wall - REACH_S)
    assert instant is not None, "each local time within the range has an instant"
    return instant * US_PER_S


def anchored(schedule: Schedule, now_us: int) -> Schedule:
    """The schedule with the anchor an interval needs, as it is stored at its creation.

    With a start the first slot is the start itself, else it is one interval from now.
    """
    if schedule.every_us is None or schedule.anchor_us is not None:
        return schedule
    if schedule.start_us is not None:
        anchor_us = schedule.start_us - schedule.every_us
    else:
        anchor_us = now_us - now_us % US_PER_S
    return msgspec.structs.replace(schedule, anchor_us=anchor_us)


def next_midnight_after(
    zones: Zones, zone: str, now_us: int, margin_us: int = DEFAULT_MIDNIGHT_MARGIN_US
) -> int:
    """The next instant, at least `margin_us` away, at which a day begins in a zone, in µs UTC.

    New rules of the zone take effect then. Where midnight is jumped over, the day begins right
    after the jump; where it comes twice, at the first. Raises UnknownZone.
    """
    line = cron_line(_MIDNIGHT, zones.timeline(zone), _MIDNIGHT_POLICY)
    midnight_s = line.next((now_us + margin_us - 1) // US_PER_S)
    assert midnight_s is not None, "a day begins within the range of the calendar"
    return midnight_s * US_PER_S
