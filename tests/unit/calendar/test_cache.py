"""Many jobs share few expressions: the calendar computes a slot once for all of them."""

from datetime import datetime

import pytest
from cronsim import CronSim

from horolog.schemas.records import JobId, Schedule
from horolog.streams.calendar import Zones, next_slot, walls
from tests.builders.times import us


def test_jobs_of_one_expression_cost_one_evaluation_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(text: str, start: datetime) -> CronSim:
        calls.append(text)
        return CronSim(text, start)

    monkeypatch.setattr(walls, "CronSim", counted)
    after_us = us("2031-05-06T12:00:00Z")
    for expression in range(50):
        schedule = Schedule(cron=f"{expression} 3 7 5 *")
        for number in range(200):
            next_slot(schedule, JobId(f"acme.job{number}"), after_us, Zones())
    assert 0 < len(calls) <= 2 * 50
