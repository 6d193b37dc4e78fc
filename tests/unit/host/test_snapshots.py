"""How many jobs a step covers by snapshots: in step with its events."""

from msgspec.structs import replace

from horolog.schemas.records import JobId, JobSnapshot, RunSnapshot, Schedule
from horolog.streams.host.snapshots import OLDEST_US, Recovery, Snapshotter
from horolog.streams.limits import SECOND_US, SNAPSHOT_TAIL, SNAPSHOTS_PER_STEP
from horolog.streams.scheduler.snapshot import canonical, job_key
from horolog.streams.scheduler.state import PartitionState
from tests.builders.core import JOB, T0, Core, definition

JOBS = 1_000


def changed() -> tuple[Snapshotter, PartitionState]:
    """A partition in which a thousand jobs have changed."""
    snapshotter, state = Snapshotter(0), PartitionState(0)
    for number in range(JOBS):
        state.seq += 1
        snapshotter.changed(JobId(f"acme.job{number}"), state.seq, T0)
    return snapshotter, state


def covered(snapshotter: Snapshotter, state: PartitionState, now_us: int) -> int:
    """Jobs that the next step covers."""
    taken = snapshotter.take(state, now_us)
    return sum(isinstance(record, JobSnapshot) for _, record in taken)


def test_nothing_is_covered_before_it_is_old_or_much() -> None:
    snapshotter, state = changed()
    assert covered(snapshotter, state, T0 + OLDEST_US - 1) == 0


def test_step_with_nothing_else_to_do_covers_many_old_changes() -> None:
    snapshotter, state = changed()
    assert covered(snapshotter, state, T0 + OLDEST_US - 1) == 0
    state.seq += 1
    assert covered(snapshotter, state, T0 + OLDEST_US) == SNAPSHOTS_PER_STEP


def test_busy_step_covers_few_and_a_tail_of_them_covers_all() -> None:
    snapshotter, state = changed()
    state.seq += SNAPSHOT_TAIL // 2
    covered(snapshotter, state, T0)
    events, sum_of = 400, 0
    for _ in range(SNAPSHOT_TAIL // 2 // events):
        state.seq += events
        count = covered(snapshotter, state, T0)
        assert count <= events // 16
        sum_of += count
    assert sum_of >= JOBS - SNAPSHOTS_PER_STEP


def test_job_with_few_small_runs_is_one_record_and_is_recovered_as_it_was() -> None:
    core = Core()
    core.create(replace(definition(), schedule=Schedule(every_us=10 * SECOND_US)))
    core.pass_time(OLDEST_US + 5 * SECOND_US)
    records = dict(core.log.snapshots(0))
    assert not [record for record in records.values() if isinstance(record, RunSnapshot)]
    job = records[job_key(JOB)]
    assert isinstance(job, JobSnapshot)
    assert job.runs
    before = list(canonical(core.state))
    assert list(canonical(Recovery(core.log, 0).state)) == before


def test_run_that_gets_a_payload_moves_to_a_record_of_its_own_and_back() -> None:
    core = Core()
    core.create(replace(definition(), schedule=Schedule(every_us=20 * SECOND_US)))
    counts: list[int] = []
    for key in ("small", "large", "none"):
        if key == "large":
            core.trigger(key, payload=b"x")
        core.pass_time(OLDEST_US + 5 * SECOND_US)
        records = dict(core.log.snapshots(0))
        counts.append(sum(isinstance(record, RunSnapshot) for record in records.values()))
        assert list(canonical(Recovery(core.log, 0).state)) == list(canonical(core.state))
        for run_id in list(core.job().runs):
            if run_id.endswith("manual-large"):
                core.claim(run_id)
                core.complete(run_id)
    assert counts[0] == 0
    assert counts[1] > 0
    assert counts[2] == 0


def test_old_changes_are_covered_at_every_busy_step_until_none_is_left() -> None:
    snapshotter, state = changed()
    for _ in range(JOBS):
        state.seq += 16
        covered(snapshotter, state, T0 + OLDEST_US)
    assert snapshotter.due_us() is None
