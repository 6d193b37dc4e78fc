"""The calendar against a walk over every minute, against croniter, and against itself."""

# croniter ships no type information; what it returns is annotated.
# mypy: disable-error-code="import-untyped"

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest
from croniter import CroniterBadDateError, croniter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from horolog.schemas.records import Gap, JobId, OverlapHour, Schedule
from horolog.streams.calendar import (
    check,
    clock_changes,
    count_slots,
    next_slot,
    normalise,
    previous_slot,
    slots_between,
)
from tests.property.calendar import oracle, strategies
from tests.property.calendar.places import EXAMPLES, HEAVY, ZONES, zones

JOB = JobId("acme.nightly")
US = 1_000_000
MINUTE_US = 60 * US
DAY_US = 86_400 * US
FROM = datetime(1970, 1, 2, tzinfo=UTC)
TO = datetime(2040, 12, 30, tzinfo=UTC)
FROM_DAY, TO_DAY = FROM.toordinal() - 719_163, TO.toordinal() - 719_163
POLICIES = [(gap, overlap) for gap in Gap for overlap in OverlapHour]
MARGIN_MINUTES = 180

FIXED = ("7-59/20 0-23 * * *", "0,30 0-4 * * *", "15 0,2 * * *", "59 23,0-3 * * 1-6")
REAL_TIME = ("*/20 * * * *", "15 */2 * * *", "*/30 1,2 * * *")


class Change(NamedTuple):
    """A clock change: its minute of UTC, and how many minutes the clock is moved."""

    minute: int
    moved: int


@cache
def changes_of(zone: str) -> tuple[Change, ...]:
    info = oracle.zone_file(zone)
    walls = ((m, oracle.walk(info, m - 1, m + 1).walls) for m in oracle.changes(info, FROM, TO))
    return tuple(Change(minute, walls[1] - walls[0] - 1) for minute, walls in walls)


def slots(schedule: Schedule, start: int, end: int) -> list[int]:
    """Slots in [start, end), given in minutes."""
    low, high = start * MINUTE_US - 1, end * MINUTE_US - 1
    return list(slots_between(schedule, JOB, low, high, zones()))


def assert_equal(schedule: Schedule, cron: str, walk: oracle.Walk, start: int, end: int) -> None:
    expected = walk.slots(
        oracle.parse(cron), gap=schedule.gap.value, overlap=schedule.overlap_hour.value
    )
    inside = [at for at in expected if start * MINUTE_US <= at < end * MINUTE_US]
    assert slots(schedule, start, end) == inside, schedule


@pytest.mark.parametrize("zone", ZONES)
def test_slots_around_each_clock_change_from_1970_to_2040_equal_the_minute_walk(zone: str) -> None:
    info = oracle.zone_file(zone)
    for i, change in enumerate(changes_of(zone)):
        around = MARGIN_MINUTES + abs(change.moved)
        start, end = change.minute - around, change.minute + around
        walk = oracle.walk(info, start - around, end + around)
        fixed = FIXED if HEAVY else (FIXED[i // 2 % len(FIXED)],)
        for cron in fixed:
            for gap, overlap in POLICIES:
                schedule = Schedule(cron=cron, timezone=zone, gap=gap, overlap_hour=overlap)
                assert_equal(schedule, cron, walk, start, end)
        for cron in REAL_TIME if HEAVY else (REAL_TIME[i % len(REAL_TIME)],):
            assert_equal(Schedule(cron=cron, timezone=zone), cron, walk, start, end)


@settings(max_examples=EXAMPLES)
@given(
    zone=st.sampled_from(ZONES),
    day=st.integers(FROM_DAY, TO_DAY),
    cron=strategies.FREQUENT_CRON,
    policy=st.sampled_from(POLICIES),
)
def test_slots_of_any_days_equal_the_minute_walk(
    zone: str, day: int, cron: str, policy: tuple[Gap, OverlapHour]
) -> None:
    start, end = day * oracle.MINUTES_PER_DAY, (day + 2) * oracle.MINUTES_PER_DAY
    walk = oracle.walk(oracle.zone_file(zone), start - MARGIN_MINUTES, end + MARGIN_MINUTES)
    schedule = Schedule(cron=cron, timezone=zone, gap=policy[0], overlap_hour=policy[1])
    assert_equal(schedule, cron, walk, start, end)


@settings(max_examples=EXAMPLES)
@given(
    zone=st.sampled_from([zone for zone in ZONES if changes_of(zone)]),
    pick=st.integers(0, 10_000),
    cron=strategies.FREQUENT_CRON,
    second=st.sampled_from(["0", "*/20", "10,50", "59"]),
    policy=st.sampled_from(POLICIES),
)
def test_slots_of_any_expression_around_a_clock_change_equal_the_minute_walk(
    zone: str, pick: int, cron: str, second: str, policy: tuple[Gap, OverlapHour]
) -> None:
    changes = changes_of(zone)
    change = changes[pick % len(changes)]
    around = MARGIN_MINUTES + abs(change.moved)
    start, end = change.minute - around, change.minute + around
    walk = oracle.walk(oracle.zone_file(zone), start - around, end + around)
    schedule = Schedule(
        cron=cron, second=second, timezone=zone, gap=policy[0], overlap_hour=policy[1]
    )
    expected = walk.slots(oracle.parse(cron, second), gap=policy[0].value, overlap=policy[1].value)
    inside = [at for at in expected if start * MINUTE_US <= at < end * MINUTE_US]
    assert slots(schedule, start, end) == inside


@pytest.mark.skipif(not HEAVY, reason="HOROLOG_TEST_CALENDAR=heavy: minutes for each zone")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("zone", ZONES)
def test_slots_of_all_years_equal_the_minute_walk(zone: str) -> None:
    info = oracle.zone_file(zone)
    counted = 0
    for year in range(1970, 2041):
        start = (datetime(year, 1, 3, tzinfo=UTC) - oracle.EPOCH) // timedelta(minutes=1)
        end = (datetime(year + 1, 1, 3, tzinfo=UTC) - oracle.EPOCH) // timedelta(minutes=1)
        walk = oracle.walk(info, start - 2_880, end + 2_880)
        for cron in (*FIXED, *REAL_TIME):
            schedule = Schedule(cron=cron, timezone=zone)
            assert_equal(schedule, cron, walk, start, end)
            counted += len(slots(schedule, start, end))
    assert counted > 1_000_000


@settings(max_examples=EXAMPLES)
@given(cron=strategies.DAY_CRON, day=st.integers(FROM_DAY, TO_DAY))
def test_days_of_any_expression_equal_the_day_walk(cron: str, day: int) -> None:
    expression = oracle.parse(cron)
    days = 500
    expected = [
        at * DAY_US
        for at in range(day, day + days)
        if expression.matches(at * oracle.MINUTES_PER_DAY)
    ]
    schedule = Schedule(cron=cron)
    low, high = day * DAY_US, (day + days) * DAY_US
    assert list(slots_between(schedule, JOB, low - 1, high - 1, zones())) == expected
    assert count_slots(schedule, JOB, low - 1, high - 1, zones()) == len(expected)
    backwards: list[int] = []
    at = previous_slot(schedule, JOB, high, zones())
    while at is not None and at >= low:
        backwards.append(at)
        at = previous_slot(schedule, JOB, at, zones())
    assert backwards == expected[::-1]


@settings(max_examples=EXAMPLES)
@given(cron=strategies.COMMON_CRON, second=st.integers(0, (TO - FROM) // timedelta(seconds=1)))
def test_wall_times_of_any_expression_equal_croniters(cron: str, second: int) -> None:
    start = (FROM + timedelta(seconds=second)).replace(tzinfo=None)
    schedule = Schedule(cron=cron)
    assume(not check(schedule, JOB, 0, zones()))
    other = croniter(cron, start, implement_cron_bug=True)
    at: int | None = round(start.replace(tzinfo=UTC).timestamp()) * US
    try:
        for _ in range(5):
            at = next_slot(schedule, JOB, at or 0, zones())
            theirs: datetime = other.get_next(datetime)
            assert at == round(theirs.replace(tzinfo=UTC).timestamp()) * US
        for _ in range(7):
            at = previous_slot(schedule, JOB, at or 0, zones())
            theirs = other.get_prev(datetime)
            assert at == round(theirs.replace(tzinfo=UTC).timestamp()) * US
    except CroniterBadDateError:
        # It gives up where the wait is longer than it looks ahead.
        assume(False)


@settings(max_examples=EXAMPLES)
@given(
    zone=st.sampled_from(ZONES),
    cron=strategies.ANY_CRON,
    policy=st.sampled_from(POLICIES),
    at=st.integers(FROM_DAY * DAY_US, TO_DAY * DAY_US),
)
def test_next_and_previous_of_any_expression_agree(
    zone: str, cron: str, policy: tuple[Gap, OverlapHour], at: int
) -> None:
    schedule = Schedule(cron=cron, timezone=zone, gap=policy[0], overlap_hour=policy[1])
    after = next_slot(schedule, JOB, at, zones())
    if after is None:
        assert previous_slot(schedule, JOB, at + 1, zones()) is None
        return
    before = previous_slot(schedule, JOB, after, zones())
    assert after > at
    assert after % US == 0
    assert before is None or before <= at
    assert previous_slot(schedule, JOB, after + 1, zones()) == after
    if before is not None:
        assert next_slot(schedule, JOB, before, zones()) == after
        assert next_slot(schedule, JOB, before - 1, zones()) == before


@settings(max_examples=EXAMPLES // 2)
@given(
    zone=st.sampled_from(ZONES),
    cron=strategies.FREQUENT_CRON,
    policy=st.sampled_from(POLICIES),
    at=st.integers(FROM_DAY * DAY_US, TO_DAY * DAY_US),
    days=st.integers(0, 400),
)
def test_range_of_any_expression_is_repeated_next_and_its_length_the_count(
    zone: str, cron: str, policy: tuple[Gap, OverlapHour], at: int, days: int
) -> None:
    schedule = Schedule(cron=cron, timezone=zone, gap=policy[0], overlap_hour=policy[1])
    to = at + days * DAY_US
    assume(count_slots(schedule, JOB, at, to, zones()) < 3_000)
    found = list(slots_between(schedule, JOB, at, to, zones()))
    assert count_slots(schedule, JOB, at, to, zones()) == len(found)
    assert all(a < b for a, b in pairwise([at, *found]))
    assert all(slot <= to for slot in found)
    for slot, expected in pairwise([at, *found][:20]):
        assert next_slot(schedule, JOB, slot, zones()) == expected
    last = found[-1] if found else at
    beyond = next_slot(schedule, JOB, last, zones())
    assert beyond is None or beyond > to


@settings(max_examples=EXAMPLES)
@given(
    every=st.integers(1, 10**6),
    anchor=st.integers(-(10**9), 3 * 10**9),
    at=st.integers(-(10**9), 3 * 10**9),
    length=st.integers(0, 10**7),
    start=st.none() | st.integers(-(10**9), 3 * 10**9),
    end=st.none() | st.integers(-(10**9), 3 * 10**9),
)
def test_slots_of_any_interval_are_the_anchor_plus_whole_multiples_within_bounds(
    every: int, anchor: int, at: int, length: int, start: int | None, end: int | None
) -> None:
    schedule = Schedule(
        every_us=every * US,
        anchor_us=anchor * US,
        start_us=None if start is None else start * US,
        end_us=None if end is None else end * US,
    )

    def is_slot(second: int) -> bool:
        inside = (start is None or second >= start) and (end is None or second < end)
        return inside and second > anchor and (second - anchor) % every == 0

    length = min(length, every * 50)
    first = at + 1 + (anchor - at - 1) % every
    expected = [s * US for s in range(first, at + length + 1, every) if is_slot(s)]
    low, high = at * US, (at + length) * US
    assert list(slots_between(schedule, JOB, low, high, zones())) == expected
    assert count_slots(schedule, JOB, low, high, zones()) == len(expected)
    after = next_slot(schedule, JOB, low, zones())
    assert after == expected[0] if expected else after is None or after > high
    before = previous_slot(schedule, JOB, high + 1, zones())
    assert before == expected[-1] if expected else before is None or before <= low


@settings(max_examples=EXAMPLES)
@given(cron=strategies.ANY_CRON, at=st.integers(FROM_DAY * DAY_US, TO_DAY * DAY_US))
def test_normal_text_of_any_expression_is_normal_and_means_the_same(cron: str, at: int) -> None:
    blanks = "\t " + cron.replace(" ", " \t") + " "
    text = normalise(blanks)
    assert normalise(text) == text
    assert next_slot(Schedule(cron=text), JOB, at, zones()) == next_slot(
        Schedule(cron=blanks), JOB, at, zones()
    )


@pytest.mark.parametrize("zone", ZONES)
def test_clock_changes_of_all_years_equal_the_day_walk(zone: str) -> None:
    found = clock_changes(
        zone,
        round(FROM.timestamp()) * US,
        round(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * US,
        zones(),
    )
    expected = oracle.changes(oracle.zone_file(zone), FROM, datetime(2100, 1, 1, tzinfo=UTC))
    assert [change.at_us for change in found] == [minute * MINUTE_US for minute in expected]
