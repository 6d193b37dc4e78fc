"""Commands on jobs: what they do to slots, runs and answers."""

from horolog.schemas import errors
from horolog.schemas.records import (
    CancelRequested,
    CreateJob,
    DeleteJob,
    JobAsk,
    JobCreated,
    JobForgotten,
    JobRefused,
    JobRequested,
    JobStatus,
    JobUpdated,
    PauseJob,
    Reply,
    ResumeJob,
    RunCancelled,
    RunPlanned,
    RunResult,
    RunRevoked,
    RunSkipped,
    RunStarted,
    Schedule,
    SkipReason,
    SlotsSkipped,
    TenantJobs,
    TriggerJob,
    UpdateJob,
)
from horolog.streams.limits import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from tests.builders.core import JOB, T0, Core, admission, definition, only, run_at


def replies_of(core: Core) -> list[Reply]:
    """Answers sent since the last call."""
    return core.sent(Reply)


def create(command_id: str = "c", cron: str = "*/5 * * * *") -> CreateJob:
    """A command that creates the job."""
    return CreateJob(command_id=command_id, job_id=JOB, definition=definition(cron))


def test_job_that_is_asked_for_exists_once_its_tenant_admits_it() -> None:
    core = Core()
    core.step(create())
    assert core.job().status is JobStatus.REQUESTED
    assert not replies_of(core)
    assert [message.job_id for message in core.sent(JobAsk)] == [JOB]
    core.step(admission(JOB))
    assert [reply.code for reply in replies_of(core)] == [""]
    assert [message.jobs_count for message in core.sent(TenantJobs)] == [1]


def test_job_that_is_not_admitted_leaves_nothing() -> None:
    core = Core()
    core.step(create())
    core.step(admission(JOB, admitted=False, code=errors.TOO_MANY_JOBS.slug))
    assert len(only(core.events, JobRefused)) == 1
    assert JOB not in core.state.jobs
    assert [reply.code for reply in replies_of(core)] == ["too_many_jobs"]


def test_create_again_is_the_same_job_and_another_definition_a_conflict() -> None:
    core = Core()
    core.create(definition())
    replies_of(core)
    core.step(create("again"), create("other", cron="0 0 * * *"))
    same, other = replies_of(core)
    assert (same.code, same.changed, same.version) == ("", False, 1)
    assert other.code == errors.JOB_EXISTS.slug
    assert len(only(core.events, JobRequested)) == 1


def test_command_repeated_has_one_effect_and_the_same_answer() -> None:
    core = Core()
    core.create(definition())
    replies_of(core)
    update = UpdateJob(command_id="u1", job_id=JOB, definition=definition("0 3 * * *"))
    core.step(update)
    core.step(UpdateJob(command_id="u2", job_id=JOB, definition=definition("0 4 * * *")))
    core.restart()
    core.step(update)
    first, _, again = replies_of(core)
    assert (again.version, again.code) == (first.version, "")
    assert len(only(core.events, JobUpdated)) == 2


def test_command_repeated_after_the_job_changed_or_went_gets_the_answer_it_had() -> None:
    core = Core()
    core.create(definition())
    core.trigger("k")
    trigger = TriggerJob(command_id="trigger k", job_id=JOB, key="k")
    created = CreateJob(command_id=f"create {JOB}", job_id=JOB, definition=definition())
    core.step(UpdateJob(command_id="u", job_id=JOB, definition=definition("0 3 * * *")))
    core.step(created)
    core.step(DeleteJob(command_id="d", job_id=JOB))
    core.restart()
    core.step(trigger, created)
    replies = replies_of(core)
    assert {reply.code for reply in replies} == {""}
    triggered = [reply.run_id for reply in replies if reply.command_id == trigger.command_id]
    assert len(triggered) == 2
    assert len(set(triggered)) == 1
    assert core.job().status is JobStatus.DELETED


def test_update_inside_the_lookahead_takes_effect_and_never_fires_the_past() -> None:
    core = Core(T0 - 20 * SECOND_US)
    core.create(definition("0 * * * *"))
    assert run_at(T0) in core.job().runs
    core.step(UpdateJob(command_id="u", job_id=JOB, definition=definition("30 * * * *")))
    assert [event.run_id for event in only(core.events, RunRevoked)] == [run_at(T0)]
    core.pass_time(HOUR_US, step_us=10 * SECOND_US)
    planned = [event.slot_us for event in only(core.events, RunPlanned)]
    assert planned == [T0, T0 + 30 * MINUTE_US]


def test_update_back_within_the_lookahead_plans_the_same_run_again() -> None:
    core = Core(T0 - 20 * SECOND_US)
    core.create(definition("0 * * * *"))
    old_plan = core.run(run_at(T0)).plan
    core.step(UpdateJob(command_id="u1", job_id=JOB, definition=definition("30 * * * *")))
    core.step(UpdateJob(command_id="u2", job_id=JOB, definition=definition("0 * * * *")))
    assert core.run(run_at(T0)).plan > old_plan


def test_update_that_leaves_the_schedule_alone_revokes_nothing() -> None:
    core = Core(T0 - 20 * SECOND_US)
    core.create(definition("0 * * * *"))
    core.step(UpdateJob(command_id="u", job_id=JOB, definition=definition("0 * * * *", retries=5)))
    assert not only(core.events, RunRevoked)
    assert core.job().version == 2


def test_update_with_another_version_than_expected_is_refused() -> None:
    core = Core()
    core.create(definition())
    replies_of(core)
    core.step(
        UpdateJob(command_id="u", job_id=JOB, definition=definition("0 1 * * *"), if_version=7)
    )
    (reply,) = replies_of(core)
    assert reply.code == errors.VERSION_MISMATCH.slug
    assert "version 1, not 7" in reply.detail


def test_definition_that_is_wrong_is_refused_with_field_value_and_what_is_right() -> None:
    core = Core()
    core.step(create(cron="61 * * * *"))
    core.step(
        CreateJob(command_id="c2", job_id=JOB, definition=definition("* * * * *", timeout_us=1_000))
    )
    schedule, amount = replies_of(core)
    assert schedule.code == errors.INVALID_SCHEDULE.slug
    assert "61" in schedule.detail
    assert amount.code == errors.INVALID_FIELD.slug
    assert amount.field == "/timeout_us"
    assert JOB not in core.state.jobs


def test_run_keeps_the_definition_of_its_first_grant_for_all_attempts() -> None:
    core = Core(T0 - 5 * SECOND_US)
    core.create(definition("0 12 * * *", retries=1))
    core.pass_time(5 * SECOND_US)
    run_id = run_at(T0)
    core.claim(run_id)
    core.step(UpdateJob(command_id="u", job_id=JOB, definition=definition("0 12 * * *", retries=0)))
    core.complete(run_id, RunResult.FAILED)
    core.pass_time(15 * SECOND_US)
    core.claim(run_id, "c2")
    assert [event.version for event in only(core.events, RunStarted)] == [1, 1]
    core.complete(run_id, claim_id="c2")
    assert not core.job().kept


def test_pause_revokes_what_is_to_come_skips_what_is_due_and_lets_running_go_on() -> None:
    core = Core(T0 - 5 * SECOND_US)
    core.create(definition("* * * * *"))
    core.pass_time(40 * SECOND_US)
    due, to_come = run_at(T0), run_at(T0 + MINUTE_US)
    assert {due, to_come} == set(core.job().runs)
    manual = core.trigger("k")
    core.claim(manual)
    core.step(PauseJob(command_id="p", job_id=JOB))
    assert [event.run_id for event in only(core.events, RunRevoked)] == [to_come]
    skipped = only(core.events, RunSkipped)
    assert [(each.run_id, each.reason) for each in skipped] == [(due, SkipReason.PAUSED)]
    assert list(core.job().runs) == [manual]
    core.complete(manual)


def test_pause_holds_waiting_manual_runs_until_resumed() -> None:
    core = Core()
    core.create(definition("0 0 * * *"))
    manual = core.trigger("k")
    core.step(PauseJob(command_id="p", job_id=JOB))
    core.claim(manual)
    assert not only(core.events, RunStarted)
    core.step(ResumeJob(command_id="r", job_id=JOB))
    core.claim(manual)
    assert len(only(core.events, RunStarted)) == 1


def test_pause_with_an_end_resumes_by_itself_and_runs_the_slot_of_that_instant() -> None:
    core = Core(T0)
    core.create(definition("*/5 * * * *"))
    core.step(PauseJob(command_id="p", job_id=JOB, until_us=T0 + 10 * MINUTE_US))
    core.pass_time(10 * MINUTE_US, step_us=5 * SECOND_US)
    assert core.job().status is JobStatus.ACTIVE
    assert [each.slots_count for each in only(core.events, SlotsSkipped)] == [1]
    assert run_at(T0 + 10 * MINUTE_US) in core.job().runs


def test_delete_ends_everything_but_running_attempts_and_leaves_a_stub_for_a_day() -> None:
    core = Core(T0 - 5 * SECOND_US)
    core.create(definition("* * * * *", retries=3))
    core.pass_time(40 * SECOND_US)
    core.claim(run_at(T0))
    waiting = core.trigger("k")
    core.step(DeleteJob(command_id="d", job_id=JOB))
    assert [event.run_id for event in only(core.events, RunCancelled)] == [waiting]
    assert list(core.job().runs) == [run_at(T0)]
    core.complete(run_at(T0), RunResult.FAILED)
    assert only(core.events, RunCancelled)[-1].run_id == run_at(T0)
    core.clock.advance(DAY_US + MINUTE_US)
    core.step()
    assert len(only(core.events, JobForgotten)) == 1
    assert JOB not in core.state.jobs


def test_delete_with_cancel_asks_running_attempts_to_stop() -> None:
    core = Core(T0 - 5 * SECOND_US)
    core.create(definition("* * * * *"))
    core.pass_time(5 * SECOND_US)
    core.claim(run_at(T0))
    core.step(DeleteJob(command_id="d", job_id=JOB, cancel_running=True))
    assert [event.run_id for event in only(core.events, CancelRequested)] == [run_at(T0)]


def test_deleted_job_can_be_created_again_with_the_next_version() -> None:
    core = Core()
    core.create(definition())
    core.step(DeleteJob(command_id="d", job_id=JOB))
    core.step(create("again"))
    core.step(admission(JOB))
    assert [event.version for event in only(core.events, JobCreated)] == [1, 2]


def test_one_time_job_that_falls_between_asking_and_admission_is_kept() -> None:
    core = Core(T0 - 50_000)
    core.step(
        CreateJob(
            command_id="c",
            job_id=JOB,
            definition=definition(None, schedule=Schedule(at="2024-05-06T12:00:00Z")),
        )
    )
    core.clock.advance(100_000)
    core.step(admission(JOB))
    assert [event.slot_us for event in only(core.events, RunPlanned)] == [T0]
