"""Cases of shared/cases whose answer is what the history shows of a real scheduler's ledger."""

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.projections.rebuild import rebuild
from horolog.projections.rows import definition_of
from horolog.projections.stores.memory import MemoryHistory
from horolog.schemas.records import (
    CatchUp,
    JobStatus,
    PauseJob,
    RedriveRun,
    ResumeJob,
    RunResult,
    Schedule,
    TenantId,
)
from horolog.streams.limits import SECOND_US
from tests.builders.core import JOB, Core, definition
from tests.builders.life import Life
from tests.builders.times import us

ACME = TenantId("acme")


def history_of(core: Core) -> MemoryHistory:
    """The tables of all that the core has decided."""
    store = MemoryHistory()
    rebuild(core.log, store)
    return store


def test_r17_a_weekend_in_pause_is_one_entry_and_no_run() -> None:
    core = Core(us("2024-05-03T17:58:00Z"))
    core.create(definition("* * * * *", catch_up=CatchUp.ALL))
    core.clock.advance(us("2024-05-03T18:00:00Z") - core.now_us)
    core.step(PauseJob(command_id="p", job_id=JOB))
    core.clock.advance(us("2024-05-06T09:00:30Z") - core.now_us)
    core.step(ResumeJob(command_id="r", job_id=JOB))
    store = history_of(core)
    found = store.slots(JOB, us("2024-05-03T18:00:30Z"), us("2024-05-06T09:00:30Z"), 1_000)
    assert [(row.outcome, row.reason, row.slots_count) for row in found] == [
        ("skipped", "paused", 3_780)
    ]
    page = store.runs(
        JOB,
        statuses=(),
        from_us=us("2024-05-03T18:00:30Z"),
        to_us=None,
        after=None,
        limit=10,
    )
    assert [row.slot_us for row in page.rows] == [us("2024-05-06T09:01:00Z")]


def test_t44_a_one_time_job_in_a_gap_or_a_double_hour_shows_the_one_instant_it_means() -> None:
    for at_local, expected in (
        ("2024-03-31T02:30", "2024-03-31T01:00:00Z"),
        ("2024-10-27T02:30", "2024-10-27T00:30:00Z"),
    ):
        core = Core(us(expected) - 7_200 * SECOND_US)
        schedule = Schedule(at=at_local, timezone="Europe/Berlin")
        core.create(definition(None, schedule=schedule))
        core.pass_time(3 * 7_200 * SECOND_US, step_us=20 * SECOND_US)
        store = history_of(core)
        page = store.runs(JOB, statuses=(), from_us=None, to_us=None, after=None, limit=10)
        assert [row.slot_us for row in page.rows] == [us(expected)]
        job = store.job(JOB)
        assert job is not None
        assert definition_of(job.definition).schedule.at == at_local


def test_l09_a_run_retried_days_later_shows_both_rounds() -> None:
    core = Core(us("2026-05-20T08:00:00Z"))
    core.create(definition("0 8 20 5 *", retries=2, timeout_us=60 * SECOND_US))
    run_id = core.trigger("k")
    for attempt in range(3):
        core.claim(run_id, f"c{attempt}")
        core.complete(run_id, RunResult.FAILED, f"c{attempt}")
        core.pass_time(60 * SECOND_US, step_us=5 * SECOND_US)
    assert [
        row.run_id for row in history_of(core).dead_letters(ACME, after=None, limit=9).rows
    ] == [run_id]
    core.clock.advance(4 * 86_400 * SECOND_US)
    for click in ("one", "two"):
        core.step(RedriveRun(command_id=click, job_id=JOB, run_id=run_id))
        core.clock.advance(SECOND_US // 2)
    core.claim(run_id, "d0")
    core.complete(run_id, RunResult.FAILED, "d0")
    core.pass_time(60 * SECOND_US, step_us=5 * SECOND_US)
    core.claim(run_id, "d1")
    core.complete(run_id, RunResult.SUCCEEDED, "d1")
    store = history_of(core)
    found = store.run(run_id)
    assert found is not None
    assert (found.run.status, found.run.round, found.run.attempt) == ("succeeded", 1, 2)
    assert [(each.round, each.attempt) for each in found.attempts] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 1),
        (1, 2),
    ]
    assert store.dead_letters(ACME, after=None, limit=9).rows == []


lives = st.lists(st.integers(0, 64 * 40), min_size=1, max_size=60)


@given(lives)
@settings(max_examples=60)
def test_history_of_a_real_scheduler_shows_what_is_open_as_its_state_says(
    choices: list[int],
) -> None:
    life = Life()
    life.live(choices, lambda _: None)
    store = history_of(life.core)
    state = life.core.state
    for job in state.jobs.values():
        shown = store.job(job.job_id)
        if shown is None:
            assert job.status is JobStatus.DELETED
            continue
        if job.status is JobStatus.REQUESTED:
            assert shown.status == "requested"
        else:
            assert (shown.status, shown.version) == (job.status.value, job.version)
        for run in job.runs.values():
            found = store.run(run.run_id)
            assert found is not None
            if run.status.value not in ("planned", "queued"):
                assert found.run.status == run.status.value
            assert found.run.round == run.round
    open_runs: dict[str, int] = {}
    for job in state.jobs.values():
        tenant = job.job_id.partition(".")[0]
        open_runs[tenant] = open_runs.get(tenant, 0) + len(job.runs)
    for tenant in store.tenants():
        use = store.tenant_use(tenant)
        assert use.waiting_count + use.running_count + use.dead_count == open_runs.get(tenant, 0)
        assert use.jobs_count == state.tenant_jobs.get(tenant, 0)
