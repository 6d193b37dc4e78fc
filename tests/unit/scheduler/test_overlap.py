"""Overlap policies: what a due slot does while a run of the job is open (decision 0005)."""

import pytest

from horolog.schemas.records import (
    CancelRequested,
    Overlap,
    RunQueued,
    RunResult,
    RunSkipped,
    RunStarted,
    SkipReason,
)
from horolog.streams.limits import MINUTE_US, SECOND_US
from tests.builders.core import T0, Core, definition, only, run_at
from tests.unit.scheduler.test_cases_leases import beat

FIRST, SECOND, THIRD = (run_at(T0 + minute * MINUTE_US) for minute in range(3))


def core_with_running_first(overlap: Overlap) -> Core:
    """A minutely job whose first run goes on past its next slots."""
    core = Core(T0 - 5 * SECOND_US)
    core.create(definition("* * * * *", overlap=overlap))
    core.pass_time(5 * SECOND_US)
    core.claim(FIRST)
    return core


def keep_alive(core: Core, us: int) -> None:
    """Time passes while the worker's heartbeats arrive."""
    for _ in range(us // (10 * SECOND_US)):
        core.pass_time(10 * SECOND_US)
        core.step(beat(core, FIRST))


def test_skip_accounts_for_the_slot_and_starts_nothing() -> None:
    core = core_with_running_first(Overlap.SKIP)
    keep_alive(core, 70 * SECOND_US)
    skipped = only(core.events, RunSkipped)
    assert [(each.run_id, each.reason) for each in skipped] == [(SECOND, SkipReason.OVERLAP)]
    core.complete(FIRST)
    core.pass_time(MINUTE_US)
    core.claim(THIRD)
    assert [event.run_id for event in only(core.events, RunStarted)] == [FIRST, THIRD]


def test_queue_lets_one_wait_and_starts_it_in_the_step_that_ends_the_run() -> None:
    core = core_with_running_first(Overlap.QUEUE)
    keep_alive(core, 130 * SECOND_US)
    assert [event.run_id for event in only(core.events, RunSkipped)] == [THIRD]
    ended = core.complete(FIRST)
    assert [event.run_id for event in only(ended, RunQueued)] == [SECOND]


def test_replace_asks_the_running_to_stop_and_starts_when_it_has_ended() -> None:
    core = core_with_running_first(Overlap.REPLACE)
    keep_alive(core, 60 * SECOND_US)
    assert [event.run_id for event in only(core.events, CancelRequested)] == [FIRST]
    assert not [e for e in only(core.events, RunQueued) if e.run_id == SECOND]
    ended = core.complete(FIRST, RunResult.CANCELLED)
    assert [event.run_id for event in only(ended, RunQueued)] == [SECOND]


def test_allow_starts_beside_the_running_one() -> None:
    core = core_with_running_first(Overlap.ALLOW)
    keep_alive(core, 60 * SECOND_US)
    core.claim(SECOND)
    assert [event.run_id for event in only(core.events, RunStarted)] == [FIRST, SECOND]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE])
def test_manual_run_waits_its_turn_and_is_never_dropped(overlap: Overlap) -> None:
    core = core_with_running_first(overlap)
    manual = core.trigger("k")
    core.claim(manual, "early")
    core.complete(FIRST, RunResult.SUCCEEDED)
    core.claim(manual)
    assert [event.run_id for event in only(core.events, RunStarted)] == [FIRST, manual]


def test_waiting_retry_counts_as_running() -> None:
    core = Core(T0 - 5 * SECOND_US)
    core.create(definition("* * * * *", overlap=Overlap.SKIP, retries=1))
    core.pass_time(55 * SECOND_US)
    core.claim(FIRST)
    core.complete(FIRST, RunResult.FAILED)
    core.pass_time(11 * SECOND_US)
    assert [event.run_id for event in only(core.events, RunSkipped)] == [SECOND]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE])
def test_pool_without_workers_does_not_pin_the_job_to_an_old_slot(overlap: Overlap) -> None:
    core = Core(T0 - 5 * SECOND_US)
    core.create(definition("* * * * *", overlap=overlap))
    core.pass_time(10 * MINUTE_US)
    waiting = [run for run in core.job().runs.values() if run.is_waiting]
    assert len(waiting) == 1
    assert core.now_us - waiting[0].due_us <= 2 * MINUTE_US
