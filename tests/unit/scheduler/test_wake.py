"""When a job next has something to decide, and what it remembers of completions."""

from msgspec.structs import replace

from horolog.schemas.records import CatchUp, Schedule
from horolog.streams.limits import (
    AHEAD_LEAST,
    AHEAD_MAX,
    ENDED_KEPT_US,
    ENDED_MAX,
    LOOKAHEAD_US,
    SECOND_US,
)
from horolog.streams.scheduler import wake_us
from horolog.streams.scheduler.memory import remember_ended
from tests.builders.core import Core, definition


def test_dense_job_is_planned_a_few_slots_ahead_and_again_when_half_are_left() -> None:
    core = Core()
    core.create(replace(definition(), schedule=Schedule(every_us=SECOND_US)))
    job = core.job()
    slots = [run.due_us for run in job.runs.values()]
    assert slots == [core.now_us + number * SECOND_US for number in range(1, AHEAD_MAX + 1)]
    again_us = slots[-1] - AHEAD_LEAST * SECOND_US
    assert wake_us(core.state, job, core.now_us) == again_us
    core.pass_time(again_us - core.now_us)
    assert max(run.due_us for run in job.runs.values()) == again_us + AHEAD_MAX * SECOND_US


def test_dense_job_of_which_nothing_starts_is_planned_all_the_same() -> None:
    core = Core()
    core.create(replace(definition(catch_up=CatchUp.ALL), schedule=Schedule(every_us=SECOND_US)))
    core.pass_time(60 * SECOND_US)
    due = [run.due_us for run in core.job().runs.values() if run.due_us <= core.now_us]
    assert len(due) == 60
    assert core.job().planned_to_us > core.now_us


def test_job_of_every_few_seconds_is_planned_some_slots_at_a_time() -> None:
    core = Core()
    core.create(replace(definition(), schedule=Schedule(every_us=5 * SECOND_US)))
    job = core.job()
    assert len(job.runs) == 6
    slot_us = core.state.next_slot_of(job)
    assert slot_us is not None
    assert wake_us(core.state, job, core.now_us) == slot_us - LOOKAHEAD_US // 2
    core.pass_time(slot_us - LOOKAHEAD_US // 2 - core.now_us)
    assert job.planned_to_us == core.now_us + LOOKAHEAD_US


def test_wake_of_a_job_is_a_lookahead_before_its_next_slot() -> None:
    core = Core()
    core.create(replace(definition(), schedule=Schedule(every_us=40 * SECOND_US)))
    job = core.job()
    slot_us = core.state.next_slot_of(job)
    assert slot_us is not None
    assert wake_us(core.state, job, core.now_us) == slot_us - LOOKAHEAD_US
    # Should there be no room for it before, again when it comes.
    assert wake_us(core.state, job, slot_us - LOOKAHEAD_US) == slot_us


def test_wake_comes_right_after_the_starting_deadline_of_the_first_run() -> None:
    core = Core()
    deadline_us = 5 * SECOND_US
    schedule = Schedule(every_us=SECOND_US)
    core.create(replace(definition(), schedule=schedule, starting_deadline_us=deadline_us))
    job = core.job()
    first = min(job.runs.values(), key=lambda run: run.due_us)
    expected_us = first.due_us + deadline_us + 1
    assert wake_us(core.state, job, expected_us - 1) == expected_us


def test_completions_are_remembered_for_ten_minutes_and_a_thousand_at_most() -> None:
    core = Core()
    core.create(definition())
    job = core.job()
    for token in range(ENDED_MAX + 1):
        remember_ended(job, token, SECOND_US + token)
    assert list(job.ended) == list(range(1, ENDED_MAX + 1))
    last_us = SECOND_US + ENDED_MAX
    remember_ended(job, ENDED_MAX + 1, last_us + ENDED_KEPT_US - 1)
    assert list(job.ended) == [ENDED_MAX, ENDED_MAX + 1]
