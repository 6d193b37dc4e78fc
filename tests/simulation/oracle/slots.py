"""Rule `slot`: each slot of a job, while it exists, has exactly one outcome, and nothing else has.

The slots come from a walk over every minute (`tests/property/calendar/oracle.py`), the outcomes
from the ledger. Whatever the calendar, the scheduler or the audit think of slots plays no part.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from horolog.schemas.ids import slot_of, slot_text
from horolog.schemas.records import (
    CursorEnded,
    CursorStarted,
    Event,
    JobCreated,
    JobDeleted,
    JobId,
    JobPaused,
    JobResumed,
    JobUpdated,
    RunCancelled,
    RunId,
    RunOrigin,
    RunPlanned,
    RunRevoked,
    RunSkipped,
    RunStarted,
    Schedule,
    SlotsSkipped,
)
from tests.property.calendar.oracle import Walk, parse, walk, zone_file
from tests.simulation.oracle.observation import Observation, Violation

GRACE_US: Final = 5_000_000
SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
AROUND_MIN: Final = 300
"""Minutes walked before and after, so that both sides of a clock change are in the walk."""


class Segment(msgspec.Struct):
    """Slots in (after, to] are those of this schedule."""

    schedule: Schedule
    after_us: int
    to_us: int


class _Account:
    """One job's outcomes, as the ledger tells them."""

    def __init__(self, job_id: JobId) -> None:
        self.job_id = job_id
        self.segments: list[Segment] = []
        self.outcomes: dict[int, list[str]] = {}
        self.ranges: list[SlotsSkipped] = []
        self.open: dict[RunId, RunPlanned] = {}
        self.started: set[RunId] = set()
        self.cursors: dict[int, tuple[int, int]] = {}
        self.paused_us: int | None = None

    def take(self, event: Event, end_us: int) -> None:
        """Note an event of the job."""
        match event:
            case JobCreated():
                self._change(event.definition.schedule, event.accounted_to_us, end_us)
                self.paused_us = None
            case JobUpdated():
                if event.reschedules:
                    self._change(event.definition.schedule, event.accounted_to_us, end_us)
            case JobPaused():
                if self.paused_us is None:
                    self.paused_us = event.accounted_to_us
            case JobResumed():
                self.paused_us = None
            case JobDeleted():
                self._change(None, event.accounted_to_us, end_us)
                self.paused_us = None
            case RunPlanned():
                if event.origin is not RunOrigin.BACKFILL:
                    self.open[event.run_id] = event
            case RunRevoked():
                self.open.pop(event.run_id, None)
            case RunStarted():
                self._end(event.run_id, "run")
            case RunSkipped():
                self._end(event.run_id, f"skipped ({event.reason.value})")
            case RunCancelled():
                self._end(event.run_id, "cancelled")
            case SlotsSkipped():
                self.ranges.append(event)
            case CursorStarted():
                if event.origin is RunOrigin.CATCH_UP:
                    self.cursors[event.cursor_id] = event.after_us, event.to_us
            case CursorEnded():
                self.cursors.pop(event.cursor_id, None)
            case _:
                pass

    def _change(self, schedule: Schedule | None, since_us: int, end_us: int) -> None:
        if self.segments:
            self.segments[-1].to_us = min(self.segments[-1].to_us, since_us)
        if schedule is not None:
            self.segments.append(Segment(schedule, since_us, end_us))

    def _end(self, run_id: RunId, outcome: str) -> None:
        planned = self.open.pop(run_id, None)
        if planned is not None:
            self.outcomes.setdefault(planned.slot_us, []).append(outcome)

    def expected(self) -> Iterator[int]:
        """The slots that had to have an outcome, or may have one."""
        for segment in self.segments:
            yield from brute_slots(segment)

    def judge(self, end_us: int) -> Iterator[Violation]:
        """What is missing, twice, or out of nothing."""
        expected = set(self.expected())
        waiting = {planned.slot_us for planned in self.open.values()}
        for slot_us in sorted(expected):
            found = list(self.outcomes.get(slot_us, ()))
            found += [
                f"in a range ({each.reason.value})"
                for each in self.ranges
                if each.after_us < slot_us <= each.to_us
            ]
            if len(found) > 1:
                yield self._wrong(slot_us, f"has {len(found)} outcomes: {', '.join(found)}")
            elif not found and slot_us not in waiting and self._is_overdue(slot_us, end_us):
                yield self._wrong(slot_us, "has no outcome")
        for slot_us in sorted((self.outcomes.keys() | waiting) - expected):
            yield self._wrong(slot_us, "is no slot of the schedule in force, and was planned")

    def _is_overdue(self, slot_us: int, end_us: int) -> bool:
        if slot_us > end_us - GRACE_US:
            return False
        if self.paused_us is not None and slot_us > self.paused_us:
            return False
        return not any(after < slot_us <= to for after, to in self.cursors.values())

    def _wrong(self, slot_us: int, what: str) -> Violation:
        return Violation("slot", f"{self.job_id} slot {slot_text(slot_us)} {what}")


def check(seen: Observation) -> Iterator[Violation]:
    """See the module."""
    accounts: dict[JobId, _Account] = {}
    for told in seen.events:
        job_id: JobId | None = getattr(told.event, "job_id", None)
        if job_id is not None:
            account = accounts.get(job_id)
            if account is None:
                account = accounts[job_id] = _Account(job_id)
            # Slots are planned half a minute ahead, so some after the end have an outcome too.
            account.take(told.event, seen.end_us + MINUTE_US)
    for account in accounts.values():
        yield from account.judge(seen.end_us)


def brute_slots(segment: Segment) -> Iterator[int]:
    """Slots of a segment, in microseconds UTC, found by looking at each minute or second."""
    schedule = segment.schedule
    low_us, high_us = segment.after_us, segment.to_us
    for slot_us in _all(schedule, low_us, high_us):
        if not low_us < slot_us <= high_us:
            continue
        if schedule.start_us is not None and slot_us < schedule.start_us:
            continue
        if schedule.end_us is not None and slot_us >= schedule.end_us:
            continue
        yield slot_us


def _all(schedule: Schedule, low_us: int, high_us: int) -> Iterator[int]:
    if schedule.every_us is not None:
        assert schedule.anchor_us is not None, "an interval has an anchor once it is stored"
        slot_us = schedule.anchor_us - schedule.anchor_us % SECOND_US + schedule.every_us
        while slot_us <= high_us:
            yield slot_us
            slot_us += schedule.every_us
    elif schedule.at is not None:
        yield _instant(schedule.at, schedule.timezone, low_us)
    elif schedule.cron is not None:
        minutes = _walk_around(schedule.timezone, low_us // (60 * MINUTE_US))
        yield from _cron(schedule.cron, schedule.gap.value, schedule.overlap_hour.value, minutes)


@lru_cache(maxsize=64)
def _walk_around(zone: str, hour: int) -> Walk:
    """Five hours before and seven after, minute by minute."""
    return walk(zone_file(zone), hour * 60 - AROUND_MIN, hour * 60 + AROUND_MIN + 120)


@lru_cache(maxsize=4_096)
def _cron(cron: str, gap: str, overlap: str, minutes: Walk) -> list[int]:
    return minutes.slots(parse(cron), gap=gap, overlap=overlap)


def _instant(wall: str, zone: str, low_us: int) -> int:
    """The first minute at which the wall shows it; the scenarios give it in UTC."""
    assert zone == "UTC", zone
    assert low_us > 0
    text = wall.replace("-", "").replace(":", "") + "Z"
    found = slot_of(RunId(f"a.b@{text}"))
    assert found is not None, wall
    return found
