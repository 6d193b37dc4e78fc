"""Manual runs: idempotency keys, limits, admission, backfill."""

from horolog.schemas import errors
from horolog.schemas.records import (
    BackfillJob,
    CancelRun,
    CatchUp,
    PauseJob,
    Reply,
    ResumeJob,
    RunCancelled,
    RunOrigin,
    RunPlanned,
    RunRequested,
    RunStarted,
    SlotsSkipped,
    Tier,
    TriggerJob,
)
from horolog.streams.limits import DAY_US, MINUTE_US, SECOND_US
from tests.builders.core import JOB, T0, Core, admission, definition, only
from tests.unit.scheduler.test_jobs import replies_of


def trigger(key: str, command_id: str = "", payload: bytes | None = None) -> TriggerJob:
    """A command that asks for a manual run."""
    return TriggerJob(command_id=command_id or key, job_id=JOB, key=key, payload=payload)


def answers(core: Core) -> list[tuple[str, str]]:
    """Code and run of each answer since the last call."""
    return [(reply.code, reply.run_id or "") for reply in replies_of(core)]


def core_with_job() -> Core:
    """A job that runs once a day."""
    core = Core()
    core.create(definition("0 0 * * *"))
    core.sent(Reply)
    return core


def test_same_key_names_the_same_run_also_after_it_has_ended() -> None:
    core = core_with_job()
    run_id = core.trigger("k", payload=b"1")
    core.step(trigger("k", "second", b"1"))
    core.claim(run_id)
    core.complete(run_id)
    core.restart()
    core.step(trigger("k", "third", b"1"))
    assert {run for code, run in answers(core) if not code} == {run_id}
    assert len(only(core.events, RunRequested)) == 1


def test_same_key_with_another_payload_is_refused() -> None:
    core = core_with_job()
    core.trigger("k", payload=b"1")
    core.sent(Reply)
    core.step(trigger("k", "second", b"2"))
    assert answers(core) == [(errors.KEY_REUSED.slug, "")]


def test_key_is_free_again_after_the_idempotency_window() -> None:
    core = core_with_job()
    first = core.trigger("k")
    core.claim(first)
    core.complete(first)
    core.clock.advance(DAY_US + SECOND_US)
    core.step()
    core.step(trigger("k", "next day"))
    assert len(only(core.events, RunRequested)) == 2


def test_transient_refusal_is_not_remembered_under_its_key() -> None:
    core = core_with_job()
    core.step(trigger("k"))
    run_id = core.job().keys["k"].run_id
    core.step(admission(JOB, run_id, admitted=False, code=errors.BACKLOG_FULL.slug))
    assert answers(core) == [(errors.BACKLOG_FULL.slug, "")]
    core.step(trigger("k", "again"))
    core.step(admission(JOB, run_id))
    assert answers(core) == [("", run_id)]


def test_more_triggers_than_the_rate_allows_are_refused_and_the_rest_runs() -> None:
    core = core_with_job()
    core.step(*(trigger(f"k{number}") for number in range(130)))
    codes = [code for code, _ in answers(core)]
    assert codes == [errors.RATE_LIMITED.slug] * 30
    core.pass_time(SECOND_US + SECOND_US // 20)
    core.step(*(trigger(f"n{number}") for number in range(20)))
    assert len(only(core.events, RunRequested)) == 110


def test_claim_of_a_pending_run_is_its_admission() -> None:
    core = core_with_job()
    core.step(trigger("k"))
    run_id = core.job().keys["k"].run_id
    core.claim(run_id)
    assert [event.run_id for event in only(core.events, RunStarted)] == [run_id]
    assert answers(core) == [("", run_id)]


def test_payload_over_the_limit_is_refused_with_the_limit() -> None:
    core = core_with_job()
    core.step(trigger("k", payload=b"x" * (256 * 1024 + 1)))
    (reply,) = replies_of(core)
    assert reply.code == errors.TOO_LARGE.slug
    assert "262144" in reply.detail


def test_cancel_before_the_start_ends_the_run_at_once() -> None:
    core = core_with_job()
    run_id = core.trigger("k")
    core.step(CancelRun(command_id="x", job_id=JOB, run_id=run_id, reason="not needed"))
    assert [event.reason for event in only(core.events, RunCancelled)] == ["not needed"]
    core.step(CancelRun(command_id="y", job_id=JOB, run_id=run_id))
    assert replies_of(core)[-1].code == errors.RUN_ENDED.slug


def test_backfill_runs_skipped_slots_once_and_leaves_those_that_ran() -> None:
    core = Core(T0)
    core.create(definition("*/5 * * * *", catch_up=CatchUp.ALL))
    core.step(PauseJob(command_id="p", job_id=JOB))
    core.pass_time(22 * MINUTE_US, step_us=MINUTE_US)
    core.step(ResumeJob(command_id="r", job_id=JOB))
    assert [each.slots_count for each in only(core.events, SlotsSkipped)] == [4]
    for command_id in ("b1", "b2"):
        core.step(
            BackfillJob(
                command_id=command_id,
                job_id=JOB,
                from_us=T0 - 10 * MINUTE_US,
                to_us=T0 + 12 * MINUTE_US,
            )
        )
    filled = [
        event for event in only(core.events, RunPlanned) if event.origin is RunOrigin.BACKFILL
    ]
    assert [(event.slot_us - T0) // MINUTE_US for event in filled] == [-10, -5, 0, 5, 10]
    assert {event.tier for event in filled} == {Tier.LOW}
