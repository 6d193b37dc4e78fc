"""The `lease-worker` cases of shared/cases, as far as the scheduler decides them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    ClaimRefused,
    ClaimRun,
    CompleteRun,
    Grant,
    Heartbeat,
    JobId,
    RedriveRun,
    RefusalReason,
    ReportAnswered,
    ReportRejected,
    RunDeadLettered,
    RunId,
    RunRedriven,
    RunResult,
    RunStarted,
    RunStatus,
    RunSucceeded,
    Verdict,
)
from horolog.streams.limits import SECOND_US
from horolog.streams.scheduler.decide_leases import backoff_us
from tests.builders.core import (
    EPOCH,
    JOB,
    T0,
    Core,
    completion,
    definition,
    only,
    run_at,
)

SLOT = T0 + 300 * SECOND_US


def core_with_due_run(retries: int = 0, timeout_us: int = 600 * SECOND_US) -> tuple[Core, RunId]:
    """A core with one run that is due and waits for a worker."""
    core = Core(SLOT - 5 * SECOND_US)
    core.create(definition("5 12 * * *", retries=retries, timeout_us=timeout_us))
    core.pass_time(5 * SECOND_US)
    return core, run_at(SLOT)


def beat(core: Core, run_id: RunId, claim_id: str = "c1", token: int | None = None) -> Heartbeat:
    """A heartbeat with the live token, or another one."""
    return Heartbeat(
        run_id=run_id,
        token=core.token(run_id) if token is None else token,
        claim_id=claim_id,
        inbox="w1",
    )


def claim_of(run_id: RunId, plan: int, claim_id: str, epoch: int = EPOCH) -> ClaimRun:
    """A claim by a given plan and epoch."""
    return ClaimRun(
        run_id=run_id,
        plan=plan,
        dispatcher=0,
        epoch=epoch,
        worker_id="w2",
        inbox="w2",
        claim_id=claim_id,
    )


def test_l01_run_that_is_not_due_is_never_handed_out() -> None:
    core = Core(SLOT - 20 * SECOND_US)
    core.create(definition("5 12 * * *"))
    run_id = run_at(SLOT)
    core.claim(run_id)
    refused = core.sent(ClaimRefused)
    assert [each.reason for each in refused] == [RefusalReason.NOT_YET]
    assert [each.retry_at_us for each in refused] == [SLOT]
    assert not only(core.events, RunStarted)
    core.pass_time(25 * SECOND_US)
    core.claim(run_id, "c2")
    assert [event.attempt for event in only(core.events, RunStarted)] == [1]


def test_l01_retry_waits_for_its_backoff_on_the_server() -> None:
    core, run_id = core_with_due_run(retries=1)
    core.claim(run_id)
    core.complete(run_id, RunResult.FAILED)
    retry_at_us = only(core.events, AttemptEnded)[0].retry_at_us
    assert retry_at_us is not None
    assert retry_at_us >= core.now_us + 10 * SECOND_US
    core.claim(run_id, "early")
    assert len(only(core.events, RunStarted)) == 1
    core.pass_time(retry_at_us - core.now_us)
    core.claim(run_id, "c2")
    assert [event.attempt for event in only(core.events, RunStarted)] == [1, 2]


@pytest.mark.parametrize("wrong", [0, -1, 1, 2**52])
def test_l05_report_with_another_token_changes_nothing_and_is_recorded_once(wrong: int) -> None:
    core, run_id = core_with_due_run()
    core.claim(run_id)
    before = core.run(run_id)
    for _ in range(2):
        core.step(beat(core, run_id, token=wrong), completion(run_id, wrong))
    answers = core.sent(ReportAnswered)
    assert {each.verdict for each in answers} == {Verdict.STALE}
    assert len(answers) == 4
    assert len(only(core.events, ReportRejected)) == 1
    assert core.run(run_id) == before
    core.complete(run_id)
    assert len(only(core.events, RunSucceeded)) == 1


def test_l05_right_token_with_another_claim_is_stale() -> None:
    core, run_id = core_with_due_run()
    core.claim(run_id)
    core.step(completion(run_id, core.token(run_id), claim_id="other"))
    assert core.run(run_id).status is RunStatus.RUNNING


def test_l05_frozen_worker_does_not_renew_its_successors_lease() -> None:
    core, run_id = core_with_due_run()
    core.claim(run_id)
    old = core.token(run_id)
    core.pass_time(40 * SECOND_US)
    core.claim(run_id, "c2", "w2")
    assert core.token(run_id) > old
    for _ in range(40):
        core.pass_time(SECOND_US)
        core.step(beat(core, run_id, token=old))
        if core.run(run_id).lease is None:
            break
    assert core.run(run_id).lease is None
    assert [event.outcome for event in only(core.events, AttemptEnded)] == [
        AttemptOutcome.LOST,
        AttemptOutcome.LOST,
    ]


@pytest.mark.parametrize(
    "retry, delay_s",
    [(1, 1), (2, 2), (12, 2048), (13, 3600), (47, 3600), (48, 3600), (1025, 3600), (100_000, 3600)],
)
def test_l07_backoff_is_capped_at_any_retry_number(retry: int, delay_s: int) -> None:
    assert backoff_us(SECOND_US, 3600 * SECOND_US, retry) == delay_s * SECOND_US


@given(
    first_us=st.integers(0, 3600 * SECOND_US),
    longest_us=st.integers(0, 7 * 24 * 3600 * SECOND_US),
    retry=st.integers(1, 1 << 63),
)
def test_l07_backoff_of_any_policy_doubles_up_to_its_longest(
    first_us: int, longest_us: int, retry: int
) -> None:
    # Nothing below a week needs more than 100 doublings to reach it.
    exact = min(first_us * 2 ** min(retry - 1, 100), longest_us)
    assert backoff_us(first_us, longest_us, retry) == exact


def test_l09_redriven_run_starts_a_new_round_with_nothing_used_up() -> None:
    core, run_id = core_with_due_run(retries=2, timeout_us=60 * SECOND_US)
    for attempt in (1, 2, 3):
        core.claim(run_id, f"c{attempt}")
        core.complete(run_id, RunResult.FAILED, f"c{attempt}")
        core.pass_time(25 * SECOND_US)
    assert core.run(run_id).status is RunStatus.DEAD
    core.clock.advance(4 * 24 * 3600 * SECOND_US)
    core.step()
    core.step(
        RedriveRun(command_id="click 1", job_id=JOB, run_id=run_id),
        RedriveRun(command_id="click 2", job_id=JOB, run_id=run_id),
    )
    assert len(only(core.events, RunRedriven)) == 1
    core.claim(run_id, "again")
    core.pass_time(30 * SECOND_US, step_us=5 * SECOND_US)
    core.complete(run_id, RunResult.FAILED, "again")
    core.pass_time(25 * SECOND_US)
    core.claim(run_id, "last")
    core.complete(run_id, RunResult.SUCCEEDED, "last")
    rounds = [(event.round, event.attempt) for event in only(core.events, RunStarted)]
    assert rounds == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]
    assert len(only(core.events, RunDeadLettered)) == 1


def test_l11_lease_of_a_killed_worker_ends_and_the_run_starts_again() -> None:
    core, run_id = core_with_due_run()
    core.claim(run_id)
    killed_us = core.now_us
    while not only(core.events, AttemptEnded):
        core.pass_time(SECOND_US)
    assert core.now_us - killed_us <= 35 * SECOND_US
    core.claim(run_id, "c2", "w2")
    core.complete(run_id, claim_id="c2")
    assert [event.attempt for event in only(core.events, RunStarted)] == [1, 2]
    assert only(core.events, RunSucceeded)[0].attempt == 2


def test_l11_kill_during_the_report_repeats_nothing() -> None:
    core, run_id = core_with_due_run()
    core.claim(run_id)
    token = core.token(run_id)
    core.complete(run_id)
    core.restart(down_us=10 * SECOND_US)
    core.step(completion(run_id, token))
    answers = core.sent(ReportAnswered)
    assert {each.verdict for each in answers} == {Verdict.ACCEPTED}
    assert len(only(core.events, RunSucceeded)) == 1


def test_l13_sleeping_scheduler_takes_no_healthy_run_away() -> None:
    core = Core(SLOT - 5 * SECOND_US)
    runs: dict[JobId, RunId] = {}
    for number in range(20):
        job_id = JobId(f"acme.job{number}")
        core.create(definition("5 12 * * *"), job_id)
        runs[job_id] = RunId(f"{job_id}@20240506T120500Z")
    core.pass_time(5 * SECOND_US)
    for run_id in runs.values():
        core.claim(run_id)
    healthy = list(runs.values())[1:]
    # Asleep for 90 s; the heartbeats wait in the inbox.
    for _ in range(9):
        core.clock.advance(10 * SECOND_US)
        for run_id in healthy:
            core.owner.inbox.report(beat(core, run_id))
    core.step()
    asleep_until_us = core.now_us
    while not only(core.events, AttemptEnded):
        core.pass_time(SECOND_US)
        core.step(*(beat(core, run_id) for run_id in healthy))
    assert core.now_us - asleep_until_us <= 35 * SECOND_US
    core.pass_time(SECOND_US)
    assert [event.run_id for event in only(core.events, AttemptEnded)] == [
        next(iter(runs.values()))
    ]


def test_l15_repeated_claim_gets_the_same_grant_again() -> None:
    core, run_id = core_with_due_run()
    plan = core.run(run_id).plan
    core.step(claim_of(run_id, plan, "c1"))
    first = core.sent(Grant)
    core.step(claim_of(run_id, plan, "c1"))
    core.restart(SECOND_US)
    core.sent(Grant)
    core.step(claim_of(run_id, plan, "c1"))
    assert core.sent(Grant) == first
    assert len(only(core.events, RunStarted)) == 1


def test_claim_by_another_worker_or_an_old_plan_or_epoch_is_refused() -> None:
    core, run_id = core_with_due_run(retries=1)
    plan = core.run(run_id).plan
    core.step(claim_of(run_id, plan, "c1"))
    core.step(claim_of(run_id, plan, "c9"))
    core.step(
        CompleteRun(
            run_id=run_id,
            token=core.token(run_id),
            claim_id="c1",
            inbox="w2",
            result=RunResult.FAILED,
        )
    )
    core.pass_time(15 * SECOND_US)
    core.step(claim_of(run_id, plan, "c2"))
    core.step(claim_of(run_id, core.run(run_id).plan, "c3", epoch=EPOCH - 1))
    core.step(claim_of(RunId(f"{JOB}@20240101T000000Z"), 1, "c4"))
    reasons = [each.reason for each in core.sent(ClaimRefused)]
    assert reasons == [RefusalReason.TAKEN, RefusalReason.STALE, RefusalReason.GONE]
    assert len(only(core.events, RunStarted)) == 1
