"""Ledgers in which there is nothing to be found."""

import pytest

from horolog.schemas.records import (
    AttemptOutcome,
    CancelRequested,
    CatchUp,
    Overlap,
    RunAdmitted,
    RunCancelled,
    RunOrigin,
    RunQueued,
    RunRefused,
    Schedule,
    SkipReason,
    TzdataChanged,
    ZoneRules,
)
from horolog.streams.host.tzdata import read_zone
from tests.builders.core import JOB, definition
from tests.builders.stories import (
    SECOND,
    TERM,
    Story,
    asked,
    cursor,
    cursor_ended,
    dead,
    deleted,
    ended,
    manual,
    minute,
    passed_over,
    paused,
    planned,
    redriven,
    requested,
    resumed,
    revoked,
    run_of,
    skipped,
    succeeded,
    updated,
)
from tests.unit.audit.readings import outcomes

EACH_TWO = definition("*/2 * * * *")
NEVER = definition(None)


def test_slots_that_run_one_after_another_are_proven() -> None:
    story = Story()
    for slot in range(1, 31):
        story.run(slot)
    report = story.audit()
    assert outcomes(report) == {"run": 30}
    assert (report.jobs_count, report.starts_count, report.partitions_count) == (1, 30, 1)
    assert report.events_count == story.ledger.seq
    assert report.proven_to_us == story.ledger.at_us - 5 * SECOND


def test_run_that_is_retried_lost_given_back_and_redriven_is_one_outcome() -> None:
    story = Story(definition("*/30 * * * *", retries=2)).at(29.6, planned(30))
    run = run_of(30)
    first = story.start(30, run)
    story.at(30.1, ended(run, first, retry=30.1 + 10 / 60 + 0.001))
    second = story.start(30.3, run, 2)
    story.at(30.4, ended(run, second, AttemptOutcome.RELEASED, 30.4, attempt=2))
    third = story.start(30.5, run, 2)
    story.ledger.lease_time_us = TERM + 1
    story.at(31.5, ended(run, third, AttemptOutcome.LOST, 31.5, attempt=2))
    fourth = story.start(31.6, run, 3)
    story.at(31.7, ended(run, fourth, attempt=3), dead(run))
    story.at(32, redriven(run))
    fifth = story.start(32.1, run, round=1)
    story.at(32.2, CancelRequested(job_id=JOB, run_id=run, token=fifth))
    story.at(
        32.3,
        ended(run, fifth, AttemptOutcome.CANCELLED, round=1),
        RunCancelled(job_id=JOB, run_id=run),
    )
    report = story.audit()
    assert outcomes(report) == {"run": 1}
    assert report.starts_count == 5


def test_run_that_was_cancelled_before_its_start_is_the_outcome_of_its_slot() -> None:
    story = Story().at(0.6, planned(1)).at(0.7, RunCancelled(job_id=JOB, run_id=run_of(1)))
    story.run(2)
    assert outcomes(story.audit()) == {"cancelled": 1, "run": 1}


def test_slots_of_a_pause_are_one_range() -> None:
    story = Story()
    story.run(1)
    story.at(1.6, planned(2)).at(1.7, revoked(2), paused(1.7))
    story.at(8.2)
    assert outcomes(story.audit()) == {"run": 1}
    story.at(9.5, passed_over(1.7, 9.5, 8, SkipReason.PAUSED), resumed(9.5), planned(10))
    report = story.audit()
    assert outcomes(report) == {"run": 1, "paused": 8}
    assert report.waiting_count == 1


def test_edit_within_the_lookahead_revokes_and_plans_by_the_new_schedule() -> None:
    story = Story()
    story.at(0.6, planned(1)).at(0.7, revoked(1), updated(EACH_TWO, 0.7))
    story.at(1.6, planned(2))
    token = story.start(2, run_of(2), version=2)
    story.at(2.2, succeeded(run_of(2), token))
    assert outcomes(story.audit()) == {"run": 1}


def test_edit_that_leaves_the_schedule_leaves_what_is_planned() -> None:
    story = Story().at(0.6, planned(1))
    story.at(0.7, updated(definition("* * * * *", retries=3), 0.7, reschedules=False))
    token = story.start(1, run_of(1), version=2)
    story.at(1.1, succeeded(run_of(1), token))
    assert outcomes(story.audit()) == {"run": 1}


def test_job_that_is_deleted_and_made_again_has_the_slots_of_both_lives() -> None:
    story = Story()
    story.run(1)
    story.at(1.6, planned(2)).at(1.7, revoked(2), deleted(1.7))
    story.at(5.2, requested()).at(5.21, story.created(version=2))
    story.at(5.6, planned(6))
    token = story.start(6, run_of(6), version=2)
    story.at(6.5, succeeded(run_of(6), token))
    assert outcomes(story.audit()) == {"run": 2}


def test_slots_missed_in_an_outage_are_coalesced_into_the_latest() -> None:
    story = Story()
    story.run(1)
    story.ledger.at_us = minute(10.5)
    story.ledger.take_over()
    story.at(
        10.51,
        passed_over(1, 9, 8, SkipReason.COALESCED, run_of(10)),
        planned(10),
        planned(11),
    )
    token = story.start(10.6, run_of(10))
    story.at(10.7, succeeded(run_of(10), token))
    report = story.audit()
    assert outcomes(report) == {"run": 2, "coalesced": 8}
    assert report.waiting_count == 1


def test_slots_missed_in_an_outage_are_made_up_by_a_cursor() -> None:
    catch_up = RunOrigin.CATCH_UP
    story = Story(definition("* * * * *", catch_up=CatchUp.ALL))
    story.at(9.5, cursor(0, 8, catch_up), planned(1, origin=catch_up), planned(9), planned(10))
    report = story.audit()
    assert outcomes(report) == {}
    assert report.waiting_count == 10
    for slot in range(1, 9):
        token = story.start(9.6 + slot / 100, run_of(slot))
        more = [planned(slot + 1, origin=catch_up)] if slot < 8 else [cursor_ended()]
        story.at(9.6 + slot / 100, succeeded(run_of(slot), token), *more)
    assert outcomes(story.audit()) == {"run": 8}


def test_catch_up_that_is_given_up_skips_the_rest() -> None:
    story = Story(definition("* * * * *", catch_up=CatchUp.ALL))
    story.at(9.5, cursor(0, 8, RunOrigin.CATCH_UP), planned(1, origin=RunOrigin.CATCH_UP))
    story.at(9.6, planned(9), planned(10))
    story.at(
        9.7,
        revoked(10),
        skipped(1, SkipReason.PAUSED),
        skipped(9, SkipReason.PAUSED),
        cursor_ended(reason=SkipReason.PAUSED),
        passed_over(1, 8, 7, SkipReason.PAUSED),
        paused(9.7),
    )
    assert outcomes(story.audit()) == {"paused": 9}


def test_backfill_of_skipped_slots_and_of_those_before_the_job_changes_no_outcome() -> None:
    story = Story(definition("* * * * *", catch_up=CatchUp.SKIP))
    story.at(4.5, passed_over(0, 3, 3, SkipReason.CATCH_UP), planned(4), planned(5))
    token = story.start(4.51, run_of(4))
    story.at(4.52, succeeded(run_of(4), token))
    backfill = RunOrigin.BACKFILL
    story.at(4.6, cursor(-2, 0, backfill, 1), cursor(0, 1, backfill, 2))
    for slot, number in ((-1, 1), (0, 1), (1, 2)):
        story.at(4.61, planned(slot, origin=backfill))
        token = story.start(4.62, run_of(slot))
        ends = [cursor_ended(number)] if slot != -1 else []
        story.at(4.63, succeeded(run_of(slot), token), *ends)
    report = story.audit()
    assert outcomes(report) == {"catch_up": 3, "run": 1}
    assert report.starts_count == 4


@pytest.mark.parametrize("policy", [Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE])
def test_job_that_may_not_overlap_lets_one_through_at_a_time(policy: Overlap) -> None:
    story = Story(definition("* * * * *", overlap=policy)).at(0.6, planned(1))
    story.at(1, RunQueued(job_id=JOB, run_id=run_of(1)))
    token = story.start(1, run_of(1))
    story.at(1.6, planned(2)).at(2, skipped(2, SkipReason.OVERLAP))
    story.at(2.6, planned(3))
    story.at(3, succeeded(run_of(1), token), RunQueued(job_id=JOB, run_id=run_of(3)))
    story.at(3.01, succeeded(run_of(3), story.start(3, run_of(3))))
    assert outcomes(story.audit()) == {"run": 2, "overlap": 1}


def test_overlap_that_was_allowed_when_it_began_goes_on() -> None:
    story = Story().at(0.6, planned(1))
    first = story.start(1, run_of(1))
    story.at(1.6, planned(2))
    story.start(2, run_of(2))
    forbids = definition("* * * * *", overlap=Overlap.SKIP, retries=1)
    story.at(2.1, updated(forbids, 2.1, reschedules=False))
    story.ledger.lease_time_us = TERM + 1
    story.at(2.2, ended(run_of(1), first, AttemptOutcome.LOST, 2.2))
    story.start(2.3, run_of(1), 2)
    assert outcomes(story.audit()) == {"run": 2}


def test_manual_runs_are_no_slots() -> None:
    story = Story(NEVER).at(0.1, asked("a"), asked("b"), asked("c"))
    story.at(0.2, RunAdmitted(job_id=JOB, run_id=manual("a")))
    story.at(0.3, succeeded(manual("a"), story.start(0.3, manual("a"))))
    story.at(0.4, RunRefused(job_id=JOB, run_id=manual("b"), code="backlog_full", detail=""))
    # A refused key is free again, a used one after its window.
    story.at(0.5, asked("b")).at(24 * 60 + 1, asked("a"))
    report = story.audit()
    assert outcomes(report) == {}
    assert (report.slots_count, report.starts_count) == (0, 1)


def test_rules_of_a_zone_that_change_move_the_slots_to_come_only() -> None:
    def rules(zone: str, effective: float) -> TzdataChanged:
        made = ZoneRules(zone="Europe/Paris", effective_us=round(effective), rules=read_zone(zone))
        return TzdataChanged(version="2026f", zones=(made,))

    # Half past four: two hours ahead of UTC, then not any more.
    job = definition(schedule=Schedule(cron="30 16 * * *", timezone="Europe/Paris"))
    story = Story(job, created=False).at(0, rules("Europe/Paris", 0), requested(job))
    story.at(0.01, story.created())
    story.at(1, rules("UTC", minute(60)))
    story.run(4 * 60 + 30)
    story.at(6 * 60)
    assert outcomes(story.audit()) == {"run": 1}
