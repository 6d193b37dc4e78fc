"""Slots without an outcome, and slots with two."""

from horolog.schemas.records import (
    CatchUp,
    Overlap,
    RunCancelled,
    RunOrigin,
    RunQueued,
    SkipReason,
)
from tests.builders.core import JOB, definition
from tests.builders.stories import (
    Story,
    cursor,
    cursor_ended,
    dead,
    deleted,
    ended,
    minute,
    passed_over,
    paused,
    planned,
    redriven,
    revoked,
    run_of,
    skipped,
    updated,
)
from tests.unit.audit.readings import doubled, outcomes, unexplained

EACH_TWO = definition("*/2 * * * *")


def test_slot_that_nobody_decided_is_unexplained_5_s_later() -> None:
    story = Story()
    story.run(1)
    assert not unexplained(story.at(2 + 4 / 60).audit())
    assert unexplained(story.at(2 + 6 / 60).audit()) == [2.0]


def test_slot_that_was_passed_over_is_unexplained() -> None:
    story = Story()
    story.run(1)
    story.run(3)
    assert unexplained(story.audit()) == [2.0]
    assert story.audit().slots_count == 3


def test_range_that_begins_too_late_leaves_slots_unexplained() -> None:
    story = Story().at(9.1, passed_over(2.5, 7, 5, SkipReason.CATCH_UP), planned(9))
    assert unexplained(story.audit()) == [1.0, 2.0, 8.0]


def test_slots_before_a_change_stay_unexplained_by_the_old_schedule() -> None:
    story = Story().at(3.5, updated(EACH_TWO, 3.5)).at(3.6, planned(4)).at(3.7)
    assert unexplained(story.audit()) == [1.0, 2.0, 3.0]


def test_slots_before_a_pause_are_no_slots_of_the_pause() -> None:
    story = Story().at(2.5, paused(2.5)).at(9)
    assert unexplained(story.audit()) == [1.0, 2.0]


def test_slot_that_was_revoked_and_not_planned_again_is_unexplained() -> None:
    same = definition("* * * * *", pool="other")
    story = Story().at(0.6, planned(1)).at(0.7, revoked(1), updated(same, 0.7)).at(1.2)
    assert unexplained(story.audit()) == [1.0]


def test_rest_of_a_catch_up_that_ends_early_is_unexplained() -> None:
    catch_up = RunOrigin.CATCH_UP
    story = Story(definition("* * * * *", catch_up=CatchUp.ALL))
    story.at(5.5, cursor(0, 4, catch_up), planned(1, origin=catch_up), cursor_ended(), planned(5))
    assert unexplained(story.audit()) == [2.0, 3.0, 4.0]


def test_slots_of_a_job_that_was_forgotten_are_not() -> None:
    story = Story().at(2.5, deleted(2.5)).at(3)
    assert unexplained(story.audit()) == [1.0, 2.0]


def test_slots_of_an_outage_are_demanded_5_s_after_it() -> None:
    story = Story()
    story.run(1)
    story.at(1.2)
    for number in (5.0, 5.05):
        # Two owners that hardly live owe nothing but what the one before them did.
        story.ledger.at_us = minute(number)
        story.ledger.take_over()
    assert story.audit().ok
    assert unexplained(story.at(5.2).audit()) == [2.0, 3.0, 4.0, 5.0]


def test_slots_of_a_partition_whose_owner_is_gone_are_demanded_by_the_others_time() -> None:
    story = Story(partitions=3)
    story.run(1)
    story.others[0].at_us = minute(3.2)
    story.others[0].batch()
    assert not story.audit().violations
    assert unexplained(story.audit()) == [2.0, 3.0]


def test_partition_that_is_damaged_is_proven_as_far_as_it_goes() -> None:
    story = Story(partitions=3)
    story.run(1)
    story.others[0].at_us = minute(3.2)
    story.others[0].batch()
    story.ledger.seq += 7
    story.at(9)
    report = story.audit()
    assert [found.rule for found in report.violations] == ["log-sequence"]
    assert "what follows is not read" in report.violations[0].detail
    assert not report.unexplained
    assert report.outcomes == {"run": 1}


def test_run_that_starts_after_its_slot_was_skipped_doubles_the_slot() -> None:
    story = Story().at(0.6, planned(1)).at(1.2, skipped(1, SkipReason.LIMIT))
    story.start(1.21, run_of(1))
    assert doubled(story.audit()) == [(1.0, "run")]


def test_run_that_is_skipped_twice_doubles_the_slot() -> None:
    story = Story().at(0.6, planned(1)).at(1.2, skipped(1, SkipReason.LIMIT))
    story.at(1.3, skipped(1, SkipReason.LIMIT))
    assert doubled(story.audit()) == [(1.0, "limit")]


def test_run_that_starts_again_after_its_end_doubles_the_slot() -> None:
    story = Story()
    story.run(1)
    story.start(1.2, run_of(1))
    assert doubled(story.audit()) == [(1.0, "run")]


def test_slot_that_is_planned_and_run_again_is_doubled() -> None:
    story = Story()
    story.run(1)
    story.at(1.2, planned(1))
    story.start(1.3, run_of(1))
    report = story.audit()
    assert [found.rule for found in report.violations] == ["planned-again"]
    assert doubled(report) == [(1.0, "run")]


def test_ranges_that_lie_over_each_other_double_the_slots_of_both() -> None:
    story = Story(definition("* * * * *", catch_up=CatchUp.SKIP))
    story.at(9.2, passed_over(0, 5, 5, SkipReason.CATCH_UP))
    story.at(9.3, passed_over(3, 8, 5, SkipReason.CATCH_UP), planned(9))
    report = story.audit()
    assert doubled(report) == [(4.0, "catch_up"), (5.0, "catch_up")]
    assert report.outcomes == {"catch_up": 8}


def test_range_over_a_slot_that_ran_doubles_it() -> None:
    story = Story()
    story.run(1)
    story.at(4.5, passed_over(0, 3, 3, SkipReason.CATCH_UP), planned(4))
    assert doubled(story.audit()) == [(1.0, "catch_up")]


def test_slot_that_was_cancelled_ahead_and_planned_again_by_an_edit_is_doubled() -> None:
    story = Story().at(0.6, planned(1)).at(0.7, RunCancelled(job_id=JOB, run_id=run_of(1)))
    story.at(0.8, updated(definition("* * * * *", pool="other"), 0.8), planned(1))
    story.start(1, run_of(1), version=2)
    report = story.audit()
    assert [found.rule for found in report.violations] == ["planned-again"]
    assert doubled(report) == [(1.0, "run")]


def test_slot_that_was_cancelled_ahead_and_left_alone_by_an_edit_is_explained() -> None:
    story = Story().at(0.6, planned(1)).at(0.7, RunCancelled(job_id=JOB, run_id=run_of(1)))
    story.at(0.8, updated(definition("* * * * *", pool="other"), 0.8))
    story.at(1.6, planned(2)).at(1.7)
    report = story.audit()
    assert outcomes(report) == {"cancelled": 1}


def test_redriven_run_that_is_skipped_doubles_its_slot() -> None:
    story = Story(definition("* * * * *", overlap=Overlap.SKIP)).at(0.6, planned(1))
    story.at(1, RunQueued(job_id=JOB, run_id=run_of(1)))
    token = story.start(1, run_of(1))
    story.at(1.1, ended(run_of(1), token), dead(run_of(1)))
    story.at(1.2, redriven(run_of(1)), skipped(1, SkipReason.OVERLAP))
    assert doubled(story.audit()) == [(1.0, "overlap")]
