"""The `cron-time` cases of shared/cases: failures of other schedulers, each one of its kind."""

import json
from pathlib import Path

import pytest

from horolog.schemas.records import JobId, Schedule
from horolog.streams.calendar import Zones, check, next_slot, previous_slot, resolve_at
from horolog.streams.host.tzdata import read_zone
from tests.builders.times import us

JOB = JobId("acme.job")
CASES: list[tuple[str, str, str, str, str, list[str]]] = json.loads(
    (Path(__file__).parent / "cases.json").read_text()
)
"""Case, direction, expression, zone, where to begin, answers."""


def zones_of(*names: str) -> Zones:
    """These zones, by the rules of the package."""
    zones = Zones()
    for name in names:
        if name != "UTC":
            zones = zones.load(name, [(0, read_zone(name))])
    return zones


@pytest.mark.parametrize(
    "case, direction, cron, zone, start, answers",
    CASES,
    ids=[f"{case[0]} {case[1]} {case[2]} {case[3]}" for case in CASES],
)
def test_slots_of_a_case_are_the_right_ones(
    case: str, direction: str, cron: str, zone: str, start: str, answers: list[str]
) -> None:
    del case
    schedule = Schedule(cron=cron, timezone=zone)
    step = next_slot if direction == "next" else previous_slot
    found: list[int | None] = []
    at_us: int | None = us(start)
    for _ in answers:
        assert at_us is not None
        at_us = step(schedule, JOB, at_us, zones_of(zone))
        found.append(at_us)
    assert found == [us(answer) for answer in answers]


def faults(cron: str, zone: str = "UTC") -> list[str]:
    """What is wrong with an expression."""
    schedule = Schedule(cron=cron, timezone=zone)
    now_us = us("2029-03-26T09:22:30Z")
    return [
        f"{problem.detail} {problem.hint}"
        for problem in check(schedule, JOB, now_us, zones_of(zone))
    ]


@pytest.mark.parametrize(
    "cron", ["0 0 30 2 *", "0 0 31 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *", "0 0 30 2 */7"]
)
def test_t05_date_that_never_occurs_is_refused(cron: str) -> None:
    assert "never fires" in faults(cron)[0]


def test_t05_date_that_occurs_sometimes_is_found() -> None:
    slot = next_slot(Schedule(cron="0 0 31 4,5 *"), JOB, us("2029-03-26T09:22:30Z"), Zones())
    assert slot == us("2029-05-31T00:00:00Z")


@pytest.mark.parametrize(
    "cron, after, answer",
    [
        ("1 * * * *", "2020-01-01T10:00:59.500Z", "2020-01-01T10:01:00Z"),
        ("0 10 * * *", "2018-01-02T10:00:00Z", "2018-01-03T10:00:00Z"),
        ("0 10 * * *", "2018-01-02T10:00:00.001Z", "2018-01-03T10:00:00Z"),
        ("0 10 * * *", "2018-01-02T09:59:59.999999Z", "2018-01-02T10:00:00Z"),
    ],
)
def test_t32_start_within_a_second_neither_skips_nor_repeats(
    cron: str, after: str, answer: str
) -> None:
    assert next_slot(Schedule(cron=cron), JOB, us(after), Zones()) == us(answer)


@pytest.mark.parametrize("at", ["2018-01-02T10:00:00.500Z", "2018-01-02T10:00:00Z"])
def test_t32_latest_slot_includes_the_instant_itself(at: str) -> None:
    slot = previous_slot(Schedule(cron="0 10 * * *"), JOB, us(at) + 1, Zones())
    assert slot == us("2018-01-02T10:00:00Z")


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("name", ["CRON_TZ", "TZ"])
def test_t40_zone_within_the_expression_is_refused_with_the_field_for_it(
    name: str, zone: str
) -> None:
    (told,) = faults(f"{name}=Asia/Tokyo 0 9 * * *", zone)
    assert "timezone" in told


@pytest.mark.parametrize(
    "word, answer",
    [
        ("@hourly", "2024-01-03T01:00:00Z"),
        ("@daily", "2024-01-04T00:00:00Z"),
        ("@midnight", "2024-01-04T00:00:00Z"),
        ("@weekly", "2024-01-07T00:00:00Z"),
        ("@monthly", "2024-02-01T00:00:00Z"),
        ("@yearly", "2025-01-01T00:00:00Z"),
        ("@annually", "2025-01-01T00:00:00Z"),
    ],
)
def test_t42_words_mean_what_vixie_cron_means(word: str, answer: str) -> None:
    after_us = us("2024-01-03T00:00:00Z")
    assert next_slot(Schedule(cron=word), JOB, after_us, Zones()) == us(answer)


@pytest.mark.parametrize("word", ["@reboot", "@every 5m", "@fortnightly"])
def test_t42_words_without_a_meaning_here_are_refused_with_what_to_do(word: str) -> None:
    assert faults(word)


@pytest.mark.parametrize(
    "at, instant",
    [
        ("2024-03-31T02:30", "2024-03-31T01:00:00Z"),
        ("2024-10-27T02:30", "2024-10-27T00:30:00Z"),
    ],
)
def test_t44_one_time_job_at_an_odd_local_time_means_one_instant(at: str, instant: str) -> None:
    schedule = Schedule(at=at, timezone="Europe/Berlin")
    zones = zones_of("Europe/Berlin")
    assert resolve_at(schedule, zones) == us(instant)
    first = next_slot(schedule, JOB, us("2024-01-01T00:00:00Z"), zones)
    assert first == us(instant)
    assert next_slot(schedule, JOB, us(instant), zones) is None


def test_t44_one_time_job_in_the_past_is_refused() -> None:
    schedule = Schedule(at="2024-01-01T00:00:00Z")
    assert check(schedule, JOB, us("2024-01-01T00:10:00Z"), Zones())
