"""The tables of docs/time.md, computed again."""

import datetime as dt
import re
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from horolog.schemas.records import Gap, JobId, OverlapHour, Schedule
from horolog.streams.calendar import Zones, next_slot
from horolog.streams.host.tzdata import read_zone

JOB = JobId("acme.job")
PAGE = (Path(__file__).parents[3] / "docs" / "time.md").read_text(encoding="utf-8")
GAP = {"shift": Gap.SHIFT, "skip": Gap.SKIP}
DOUBLE = {
    "first": OverlapHour.FIRST,
    "second": OverlapHour.SECOND,
    "both": OverlapHour.BOTH,
}


def rows(*columns: str) -> list[list[str]]:
    """The rows of the table with these last columns."""
    head = rf"\| zone \| day \| expression \| {' | '.join(columns)} \|".replace(" | ", r" \| ")
    found = re.search(head + r"\n\|[-| ]+\|\n((?:\|.*\|\n)+)", PAGE)
    assert found is not None, columns
    return [[cell.strip() for cell in row.strip("|\n").split("|")] for row in found[1].splitlines()]


GAPS = rows(*GAP)
DOUBLES = rows(*DOUBLE)
STARS = rows("slots that day", "ordinary day")


def slots(schedule: Schedule, day: dt.date) -> list[dt.datetime]:
    """The slots of a local day, in UTC."""
    zone = ZoneInfo(schedule.timezone)
    begin = dt.datetime.combine(day, dt.time(), zone)
    end = dt.datetime.combine(day + dt.timedelta(days=1), dt.time(), zone)
    zones = Zones().load(schedule.timezone, [(0, read_zone(schedule.timezone))])
    found: list[dt.datetime] = []
    at_us = int(begin.timestamp()) * 1_000_000 - 1
    while True:
        found_us = next_slot(schedule, JOB, at_us, zones)
        assert found_us is not None
        at_us = found_us
        slot = dt.datetime.fromtimestamp(at_us / 1_000_000, dt.UTC)
        if slot >= end:
            return found
        found.append(slot)


def shown(found: list[dt.datetime]) -> str:
    """Slots as the page shows them."""
    return ", ".join(f"{slot:%d %H:%M}Z" for slot in found) or "-"


@pytest.mark.parametrize("row", GAPS, ids=" ".join)
def test_slots_of_the_page_when_the_clock_goes_forward_are_those_of_the_calendar(
    row: list[str],
) -> None:
    zone, day, cron, *answers = row
    for (name, gap), answer in zip(GAP.items(), answers, strict=True):
        schedule = Schedule(cron=cron.strip("`"), timezone=zone, gap=gap)
        assert shown(slots(schedule, dt.date.fromisoformat(day))) == answer, name


@pytest.mark.parametrize("row", DOUBLES, ids=" ".join)
def test_slots_of_the_page_when_the_clock_goes_back_are_those_of_the_calendar(
    row: list[str],
) -> None:
    zone, day, cron, *answers = row
    for (name, hour), answer in zip(DOUBLE.items(), answers, strict=True):
        schedule = Schedule(cron=cron.strip("`"), timezone=zone, overlap_hour=hour)
        assert shown(slots(schedule, dt.date.fromisoformat(day))) == answer, name


@pytest.mark.parametrize("row", STARS, ids=" ".join)
def test_counts_of_the_page_of_expressions_with_a_star_are_those_of_the_calendar(
    row: list[str],
) -> None:
    zone, day, cron, that_day, ordinary = row
    schedule = Schedule(cron=cron.strip("`"), timezone=zone)
    date = dt.date.fromisoformat(day)
    assert len(slots(schedule, date)) == int(that_day)
    assert len(slots(schedule, date - dt.timedelta(days=7))) == int(ordinary)
