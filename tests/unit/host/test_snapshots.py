"""How many jobs a step covers by snapshots: in step with its events."""

from horolog.schemas.records import JobId, JobSnapshot
from horolog.streams.host.snapshots import OLDEST_US, Snapshotter
from horolog.streams.limits import SNAPSHOT_TAIL, SNAPSHOTS_PER_STEP
from horolog.streams.scheduler.state import PartitionState
from tests.builders.core import T0

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


def test_old_changes_are_covered_at_every_busy_step_until_none_is_left() -> None:
    snapshotter, state = changed()
    for _ in range(JOBS):
        state.seq += 16
        covered(snapshotter, state, T0 + OLDEST_US)
    assert snapshotter.due_us() is None
