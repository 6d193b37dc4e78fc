"""The `trigger` cases of shared/cases: failures of other schedulers, each one of its kind.

Each test is named by its case. Where ours is another answer, the test says which decision it is.
"""

import pytest

from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    BackfillJob,
    CatchUp,
    CursorStarted,
    Heartbeat,
    JobStatus,
    Overlap,
    PauseJob,
    ResumeJob,
    RunId,
    RunOrigin,
    RunPlanned,
    RunSkipped,
    RunStarted,
    RunSucceeded,
    Schedule,
    SkipReason,
    SlotsSkipped,
    UpdateJob,
)
from horolog.streams.host.clock import SteadyClock
from horolog.streams.limits import MINUTE_US, SECOND_US
from horolog.streams.log.memory import MemoryLog
from tests.builders.core import JOB, Core, HandClock, definition, only, run_at
from tests.builders.times import us


def minutes_of(first: str, last: str) -> list[int]:
    """Every minute from first to last, both inclusive."""
    return list(range(us(first), us(last) + 1, MINUTE_US))


def after_outage(catch_up: CatchUp) -> tuple[Core, list[RunPlanned | SlotsSkipped]]:
    """A minutely job whose scheduler is down from just after 08:29 until 10:21:30 (R01)."""
    core = Core(us("2024-05-06T08:28:30Z"))
    core.create(definition("* * * * *", catch_up=catch_up))
    core.pass_time(65 * SECOND_US)  # 08:29:35; 08:30 is planned, as it is within the lookahead
    core.claim(run_at(us("2024-05-06T08:29:00Z")))
    core.complete(run_at(us("2024-05-06T08:29:00Z")))
    seen = len(core.events)
    core.restart(down_us=us("2024-05-06T10:21:30Z") - core.now_us)
    core.step()
    core.step()
    return core, [
        event for event in core.events[seen:] if isinstance(event, RunPlanned | SlotsSkipped)
    ]


def test_r01_missed_slots_with_policy_one_become_the_latest_run_and_the_job_lives() -> None:
    core, _ = after_outage(CatchUp.ONE)
    waiting = sorted(run.slot_us or 0 for run in core.job().runs.values())
    assert waiting == [us("2024-05-06T10:21:00Z"), us("2024-05-06T10:22:00Z")]
    skipped = only(core.events, SlotsSkipped)
    assert sum(each.slots_count for each in skipped) == 110  # 08:31..10:20
    assert {each.into for each in skipped} == {run_at(us("2024-05-06T10:21:00Z"))}
    # 08:30 was planned before the outage: it has been waiting too long and is coalesced as well.
    early = only(core.events, RunSkipped)
    assert [each.slot_us for each in early] == [us("2024-05-06T08:30:00Z")]
    assert early[0].reason is SkipReason.COALESCED


def test_r01_missed_slots_with_policy_skip_do_not_run_but_a_late_one_does() -> None:
    # Decision 0003: a slot at most 60 s late is late, not missed; it runs whatever catch-up says.
    core, _ = after_outage(CatchUp.SKIP)
    waiting = sorted(run.slot_us or 0 for run in core.job().runs.values())
    assert waiting == [us("2024-05-06T10:21:00Z"), us("2024-05-06T10:22:00Z")]
    assert sum(each.slots_count for each in only(core.events, SlotsSkipped)) == 110
    assert [each.reason for each in only(core.events, RunSkipped)] == [SkipReason.CATCH_UP]


def test_r01_missed_slots_with_policy_all_run_oldest_first_one_per_slot() -> None:
    core, _ = after_outage(CatchUp.ALL)
    planned: list[int | None] = []
    while True:
        made_up = [run for run in core.job().runs.values() if run.origin is RunOrigin.CATCH_UP]
        if not made_up:
            break
        oldest = min(made_up, key=lambda run: run.slot_us or 0)
        planned.append(oldest.slot_us)
        core.claim(oldest.run_id)
        core.complete(oldest.run_id)
    assert planned == minutes_of("2024-05-06T08:31:00Z", "2024-05-06T10:20:00Z")
    assert not core.job().cursors
    assert not only(core.events, SlotsSkipped)


@pytest.mark.parametrize("change", ["identical", "description"])
def test_r03_update_between_slot_and_jittered_start_keeps_slot_and_jitter(change: str) -> None:
    core = Core(us("2024-05-06T12:19:00Z"))
    jittered = definition("*/5 * * * *", jitter_us=60 * SECOND_US)
    core.create(jittered)
    core.pass_time(70 * SECOND_US)
    run_id = run_at(us("2024-05-06T12:20:00Z"))
    due_us = core.run(run_id).due_us
    new = (
        jittered
        if change == "identical"
        else definition("*/5 * * * *", jitter_us=60 * SECOND_US, description="new words")
    )
    core.step(UpdateJob(command_id="u", job_id=JOB, definition=new))
    core.pass_time(5 * MINUTE_US)
    planned = [event for event in only(core.events, RunPlanned) if event.run_id == run_id]
    assert [event.due_us for event in planned] == [due_us]
    assert core.run(run_id).due_us == due_us
    assert run_at(us("2024-05-06T12:25:00Z")) in core.job().runs


def test_r03_update_of_schedule_between_slot_and_start_keeps_the_slot_with_new_definition() -> None:
    core = Core(us("2024-05-06T12:19:00Z"))
    core.create(definition("*/5 * * * *", jitter_us=60 * SECOND_US))
    core.pass_time(70 * SECOND_US)
    run_id = run_at(us("2024-05-06T12:20:00Z"))
    core.step(
        UpdateJob(command_id="u", job_id=JOB, definition=definition("0 0 * * *", pool="other"))
    )
    assert core.run(run_id).pool == "other"
    core.pass_time(60 * SECOND_US)
    core.claim(run_id)
    assert only(core.events, RunStarted)[-1].version == 2


def test_r05_new_schedule_meets_a_slot_that_was_run_and_goes_on() -> None:
    core = Core(us("2026-05-03T23:59:00Z"))
    core.create(definition("0 * * * *", catch_up=CatchUp.ALL))
    for slot in ("2026-05-04T00:00:00Z", "2026-05-04T01:00:00Z"):
        core.pass_time(us(slot) + 5 * SECOND_US - core.now_us)
        core.claim(run_at(us(slot)))
        core.complete(run_at(us(slot)))
    core.pass_time(us("2026-05-04T01:10:00Z") - core.now_us)
    core.step(
        UpdateJob(
            command_id="daily",
            job_id=JOB,
            definition=definition("0 0 * * *", catch_up=CatchUp.ALL),
        )
    )
    core.step(
        BackfillJob(
            command_id="fill",
            job_id=JOB,
            from_us=us("2026-05-04T00:00:00Z"),
            to_us=us("2026-05-04T01:10:00Z"),
        )
    )
    core.restart(us("2026-05-07T05:04:00Z") - core.now_us)
    core.step()
    core.step()
    for run in sorted(core.job().runs.values(), key=lambda run: run.due_us):
        core.claim(run.run_id)
        core.complete(run.run_id)
    started = [event.run_id for event in only(core.events, RunStarted)]
    for day in ("04", "05", "06", "07"):
        assert started.count(run_at(us(f"2026-05-{day}T00:00:00Z"))) == 1
    core.pass_time(us("2026-05-07T23:59:50Z") - core.now_us, step_us=60 * SECOND_US)
    assert list(core.job().runs) == [run_at(us("2026-05-08T00:00:00Z"))]


def test_r07_owners_whose_clocks_differ_run_each_slot_once_and_not_early() -> None:
    start_us = us("2020-01-01T07:59:50Z")
    log = MemoryLog(partitions=1)
    core = Core(start_us, log)
    # With catch-up `all`: to an owner whose clock is 61 s ahead a slot may be a missed one.
    core.create(definition("* * * * *", catch_up=CatchUp.ALL))
    errors_us = [0, -61, -88, -127, 61]
    true_us = start_us
    while true_us < us("2020-01-01T08:14:00Z"):
        for error_s in errors_us:
            # Each owner takes over with its own wrong clock; the log's time never runs back.
            core.clock.at_us = true_us + error_s * SECOND_US
            core.restart()
            core.step()
            for run in list(core.job().runs.values()):
                if run.not_before_us <= max(core.now_us, core.state.at_us):
                    core.claim(run.run_id)
                    core.complete(run.run_id)
            true_us += 3 * SECOND_US
    started = [event.run_id for event in only(core.events, RunStarted)]
    assert len(started) == len(set(started))
    for slot_us in minutes_of("2020-01-01T08:00:00Z", "2020-01-01T08:09:00Z"):
        assert started.count(run_at(slot_us)) == 1


@pytest.mark.parametrize("crash_after", ["plan", "start", "completion"])
def test_r09_crash_around_the_start_of_a_run_gives_one_run_and_the_next_slot(
    crash_after: str,
) -> None:
    core = Core(us("2024-05-06T12:09:00Z"))
    core.create(definition("*/10 * * * *"))
    core.pass_time(61 * SECOND_US)
    run_id = run_at(us("2024-05-06T12:10:00Z"))
    if crash_after == "plan":
        core.restart(45 * SECOND_US)
        core.step()
    core.claim(run_id)
    if crash_after == "start":
        core.restart(20 * SECOND_US)
        core.step()
    core.complete(run_id)
    if crash_after == "completion":
        core.restart(45 * SECOND_US)
        core.step()
    core.pass_time(us("2024-05-06T12:19:40Z") - core.now_us)
    assert len(only(core.events, RunStarted)) == 1
    assert len(only(core.events, RunSucceeded)) == 1
    assert list(core.job().runs) == [run_at(us("2024-05-06T12:20:00Z"))]


def test_r11_clock_that_jumps_ahead_and_back_is_not_believed() -> None:
    core = Core(us("2023-02-20T14:59:00Z"))
    core.create(definition("* * * * *", catch_up=CatchUp.SKIP))
    clock = HandClock(core.now_us)
    steady = SteadyClock(clock)
    starts: dict[int, int] = {}
    for second in range(360):
        clock.advance(SECOND_US)
        if second == 70:
            clock.at_us += 2 * 3600 * SECOND_US
        if second == 125:
            clock.at_us -= 2 * 3600 * SECOND_US
        core.clock.at_us = steady.now_us()
        core.step()
        for run in list(core.job().runs.values()):
            if run.not_before_us <= core.now_us:
                core.claim(run.run_id)
                core.complete(run.run_id)
                starts[run.slot_us or 0] = starts.get(run.slot_us or 0, 0) + 1
    assert starts == dict.fromkeys(
        minutes_of("2023-02-20T14:59:00Z", "2023-02-20T15:05:00Z")[1:], 1
    )


def test_r13_interval_job_keeps_its_anchor_through_restarts() -> None:
    core = Core(us("2024-05-06T00:00:00Z"))
    core.create(definition(None, schedule=Schedule(every_us=6 * 3600 * SECOND_US)))
    started: list[int | None] = []
    while core.now_us < us("2024-05-07T00:00:30Z"):
        core.pass_time(30 * SECOND_US, step_us=30 * SECOND_US)
        if (core.now_us - us("2024-05-06T00:00:00Z")) % (4 * 3600 * SECOND_US) == 0:
            core.restart(20 * SECOND_US)
            core.step()
        for run in list(core.job().runs.values()):
            if run.not_before_us <= core.now_us:
                core.claim(run.run_id)
                core.complete(run.run_id)
                started.append(run.slot_us)
    hours = ("2024-05-06T06", "2024-05-06T12", "2024-05-06T18", "2024-05-07T00")
    assert started == [us(f"{hour}:00:00Z") for hour in hours]


def test_r15_manual_runs_start_no_chain_of_their_own() -> None:
    core = Core(us("2026-09-07T09:59:00Z"))
    core.create(definition("0 0 * * *"))
    for key in ("a", "b", "c"):
        core.pass_time(60 * SECOND_US)
        run_id = core.trigger(key)
        assert core.run(run_id).origin is RunOrigin.MANUAL
        assert core.run(run_id).slot_us is None
        core.claim(run_id)
        core.complete(run_id)
    while core.now_us < us("2026-09-10T00:30:00Z"):
        core.pass_time(30 * MINUTE_US, step_us=15 * SECOND_US)
        for run in list(core.job().runs.values()):
            if run.not_before_us <= core.now_us:
                core.claim(run.run_id)
                core.complete(run.run_id)
    slots = [event.slot_us for event in only(core.events, RunPlanned)]
    assert slots == [us(f"2026-09-{day}T00:00:00Z") for day in ("08", "09", "10")]
    assert len(only(core.events, RunStarted)) == 6


@pytest.mark.parametrize("catch_up", list(CatchUp))
def test_r17_pause_is_no_outage_whatever_catch_up_says(catch_up: CatchUp) -> None:
    core = Core(us("2024-05-03T17:59:50Z"))
    core.create(definition("* * * * *", catch_up=catch_up))
    core.pass_time(10 * SECOND_US)
    core.claim(run_at(us("2024-05-03T18:00:00Z")))
    core.complete(run_at(us("2024-05-03T18:00:00Z")))
    core.step(PauseJob(command_id="p", job_id=JOB, reason="weekend"))
    assert core.job().status is JobStatus.PAUSED
    core.clock.advance(us("2024-05-06T09:00:30Z") - core.now_us)
    core.step()
    core.step(ResumeJob(command_id="r", job_id=JOB))
    skipped = only(core.events, SlotsSkipped)
    assert [(each.slots_count, each.reason) for each in skipped] == [(3780, SkipReason.PAUSED)]
    assert not only(core.events, CursorStarted)
    assert list(core.job().runs) == [run_at(us("2024-05-06T09:01:00Z"))]


def test_r19_overlap_is_the_live_lease_and_not_a_flag() -> None:
    core = Core(us("2024-05-06T11:59:00Z"))
    core.create(definition("*/5 * * * *", overlap=Overlap.SKIP, lost_max=0))
    core.pass_time(60 * SECOND_US)
    first = run_at(us("2024-05-06T12:00:00Z"))
    core.claim(first)

    def beat_until(text: str) -> None:
        while core.now_us < us(text):
            core.pass_time(10 * SECOND_US)
            core.step(heartbeat_of(core, first))

    beat_until("2024-05-06T12:01:34Z")
    core.restart()
    beat_until("2024-05-06T12:06:00Z")
    assert [event.slot_us for event in only(core.events, RunSkipped)] == [
        us("2024-05-06T12:05:00Z")
    ]
    core.pass_time(us("2024-05-06T12:07:30Z") - core.now_us)
    assert [event.outcome for event in only(core.events, AttemptEnded)] == [AttemptOutcome.LOST]
    core.pass_time(us("2024-05-06T12:10:01Z") - core.now_us)
    second = run_at(us("2024-05-06T12:10:00Z"))
    core.claim(second)
    started = [event.run_id for event in only(core.events, RunStarted)]
    assert started == [first, second]
    core.step(heartbeat_of(core, second))


def heartbeat_of(core: Core, run_id: str) -> Heartbeat:
    """A heartbeat of the run's live lease."""
    return Heartbeat(
        run_id=RunId(run_id), token=core.token(RunId(run_id)), claim_id="c1", inbox="w1"
    )
