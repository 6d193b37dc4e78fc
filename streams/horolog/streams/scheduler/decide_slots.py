"""Slots: planning, what was missed, and what is due.

Per job two instants are kept, moved by events only. `accounted_to_us` never goes back: slots up to
it are decided for good. `planned_to_us` runs ahead of it by the lookahead; an edit takes it back.

A slot the scheduler first gets to more than `MISSED_AFTER_US` past due is missed and catch-up
decides; a younger one simply runs, late. The same rule clears a backlog of runs that never
started. Jobs that may not overlap have gated runs: their policy is judged when they are due, and
again in the very step that ends the run before.
"""

from collections.abc import Iterator

from horolog.schemas.ids import run_id_of_slot
from horolog.schemas.records import (
    CancelRequested,
    CatchUp,
    Cursor,
    CursorEnded,
    CursorStarted,
    JobForgotten,
    JobResumed,
    JobStatus,
    Overlap,
    RunCancelled,
    RunDiscarded,
    RunId,
    RunOrigin,
    RunPlanned,
    RunQueued,
    RunSkipped,
    RunStatus,
    SkipReason,
    SlotsSkipped,
    Tier,
)
from horolog.streams.calendar import count_slots, jitter_of, next_slot, previous_slot
from horolog.streams.limits import (
    AHEAD_MAX,
    DEAD_KEPT_US,
    KEYS_KEPT_US,
    LOOKAHEAD_US,
    MISSED_AFTER_US,
    OPEN_RUNS_MAX,
    PLANNED_AT_ONCE,
)
from horolog.streams.scheduler.decision import Step
from horolog.streams.scheduler.state import Job, PartitionState, Run

EXPIRED = "not redriven within 30 days"
REPLACED = "replaced by the next slot"


def wake(state: PartitionState, job: Job, now_us: int) -> Iterator[Step]:
    """All that the passing of time asks of a job, but for its leases."""
    if job.status is JobStatus.DELETED:
        assert job.deleted_us is not None
        if not job.runs and now_us >= job.deleted_us + KEYS_KEPT_US:
            yield JobForgotten(job_id=job.job_id)
        return
    if job.status is JobStatus.PAUSED:
        if job.paused_until_us is not None and now_us >= job.paused_until_us:
            yield from end_pause(state, job, now_us)
        return
    if job.status is not JobStatus.ACTIVE:
        return
    yield from plan(state, job, now_us)
    yield from _clear_backlog(job, now_us)
    for run in list(job.runs.values()):
        if run.status is RunStatus.DEAD and now_us >= run.dead_us + DEAD_KEPT_US:
            yield RunDiscarded(job_id=job.job_id, run_id=run.run_id, reason=EXPIRED)


def settle(state: PartitionState, job: Job, now_us: int) -> Iterator[Step]:
    """Decide every slot up to now by the definition in force."""
    if job.status is JobStatus.PAUSED:
        yield from skip_paused(state, job, now_us)
    else:
        yield from _plan_up_to(state, job, now_us, now_us)


def skip_paused(state: PartitionState, job: Job, to_us: int) -> Iterator[Step]:
    """The slots that passed while the job was paused: one range, whatever catch-up says."""
    yield from _skip(state, job, job.planned_to_us, to_us, SkipReason.PAUSED)


def end_pause(state: PartitionState, job: Job, now_us: int) -> Iterator[Step]:
    """The end of a pause has come: slots from that very instant on are decided as usual."""
    assert job.paused_until_us is not None
    until_us = max(job.paused_until_us - 1, job.accounted_to_us)
    yield from skip_paused(state, job, until_us)
    yield JobResumed(job_id=job.job_id, accounted_to_us=until_us)
    yield from plan(state, job, now_us)


def plan(state: PartitionState, job: Job, now_us: int) -> Iterator[Step]:
    """Plan the slots up to the lookahead and what the cursors have to make up, and judge what is
    due already.
    """
    if job.status is not JobStatus.ACTIVE:
        return
    yield from _plan_up_to(state, job, now_us, now_us + LOOKAHEAD_US)
    yield from proceed(state, job, now_us)


def proceed(state: PartitionState, job: Job, now_us: int) -> Iterator[Step]:
    """Go on with what waits for room: cursors, and runs that may not overlap. Called in the step
    that ends a run of the job.
    """
    if job.status is not JobStatus.ACTIVE:
        return
    for cursor_id in list(job.cursors):
        yield from _advance(state, job, cursor_id)
    yield from judge(job, now_us)


def _plan_up_to(state: PartitionState, job: Job, now_us: int, to_us: int) -> Iterator[Step]:
    schedule = job.in_force.schedule
    jitter_us = jitter_of(job.job_id, schedule.jitter_us)
    yield from _decide_missed(state, job, now_us, jitter_us)
    ahead = sum(run.due_us > now_us and run.is_unstarted_slot for run in job.runs.values())
    # A lookahead never holds more slots than it has seconds, so the loop ends.
    while True:
        slot_us = state.next_slot_of(job)
        if slot_us is None or slot_us > to_us:
            return
        if slot_us + jitter_us > now_us:
            if ahead >= AHEAD_MAX:
                return
            ahead += 1
        if len(job.runs) < OPEN_RUNS_MAX:
            yield _planned(job, slot_us, slot_us + jitter_us, RunOrigin.SCHEDULE)
        elif slot_us <= now_us:
            yield from _skip(state, job, job.planned_to_us, slot_us, SkipReason.LIMIT)
        else:
            # There may be room by then.
            return


def _decide_missed(state: PartitionState, job: Job, now_us: int, jitter_us: int) -> Iterator[Step]:
    """Catch-up over the slots that were not planned in time."""
    definition = job.in_force
    schedule = definition.schedule
    first_us = state.next_slot_of(job)
    if first_us is None or first_us + jitter_us >= now_us - MISSED_AFTER_US:
        return
    last_us = previous_slot(schedule, job.job_id, now_us - MISSED_AFTER_US - jitter_us, state.zones)
    assert last_us is not None
    if definition.catch_up is CatchUp.SKIP:
        yield from _skip(state, job, job.planned_to_us, last_us, SkipReason.CATCH_UP)
        return
    deadline_us = definition.starting_deadline_us
    if deadline_us is not None:
        too_late_us = previous_slot(
            schedule, job.job_id, now_us - deadline_us - jitter_us, state.zones
        )
        if too_late_us is not None and too_late_us > job.planned_to_us:
            yield from _skip(
                state, job, job.planned_to_us, min(too_late_us, last_us), SkipReason.TOO_LATE
            )
        if job.planned_to_us >= last_us:
            return
    if definition.catch_up is CatchUp.ALL:
        yield CursorStarted(
            job_id=job.job_id,
            cursor_id=job.cursor_next,
            origin=RunOrigin.CATCH_UP,
            after_us=job.planned_to_us,
            to_us=last_us,
            tier=definition.priority,
        )
        return
    yield from _coalesce(state, job, now_us, last_us, jitter_us)


def _coalesce(
    state: PartitionState, job: Job, now_us: int, last_us: int, jitter_us: int
) -> Iterator[Step]:
    """One run for all that was missed: that of the next slot if it has come already, else that of
    the last missed one.
    """
    schedule = job.in_force.schedule
    young_us = next_slot(schedule, job.job_id, last_us, state.zones)
    if young_us is not None and young_us + jitter_us <= now_us:
        into = run_id_of_slot(job.job_id, young_us)
        yield from _skip(state, job, job.planned_to_us, last_us, SkipReason.COALESCED, into)
        return
    into = run_id_of_slot(job.job_id, last_us)
    yield from _skip(state, job, job.planned_to_us, last_us - 1, SkipReason.COALESCED, into)
    yield _planned(job, last_us, last_us + jitter_us, RunOrigin.CATCH_UP)


def _advance(state: PartitionState, job: Job, cursor_id: int) -> Iterator[Step]:
    """Plan the next runs of a cursor, at most `PLANNED_AT_ONCE` of them open."""
    cursor = job.cursors[cursor_id]
    schedule = job.in_force.schedule
    jitter_us = jitter_of(job.job_id, schedule.jitter_us)
    room = min(PLANNED_AT_ONCE - _open_of(job, cursor), OPEN_RUNS_MAX - len(job.runs))
    while room > 0:
        done_us = job.cursors[cursor_id].done_to_us
        slot_us = next_slot(schedule, job.job_id, done_us, state.zones)
        if slot_us is None or slot_us > cursor.to_us:
            yield CursorEnded(job_id=job.job_id, cursor_id=cursor_id)
            return
        yield _planned(job, slot_us, slot_us + jitter_us, cursor.origin, cursor.tier)
        room -= 1


def _open_of(job: Job, cursor: Cursor) -> int:
    return sum(run.origin is cursor.origin for run in job.runs.values())


def end_cursors(state: PartitionState, job: Job, reason: SkipReason) -> Iterator[Step]:
    """Give up what the cursors had still to make up; missed slots become one skipped range each,
    slots of a backfill were skipped before and stay so.
    """
    for cursor in list(job.cursors.values()):
        yield CursorEnded(job_id=job.job_id, cursor_id=cursor.cursor_id, reason=reason)
        if cursor.origin is RunOrigin.CATCH_UP:
            yield from _skip(state, job, cursor.done_to_us, cursor.to_us, reason)


def judge(job: Job, now_us: int) -> Iterator[Step]:
    """Let through, skip or replace what is due by the overlap policy, and end what is too late."""
    yield from _end_too_late(job, now_us)
    gated = [run for run in job.runs.values() if run.gated and not run.held]
    due = sorted(
        (run for run in gated if run.due_us <= now_us and run.status is not RunStatus.PENDING),
        key=_turn,
    )
    if not due:
        return
    if job.in_force.overlap is Overlap.ALLOW:
        for run in due:
            yield RunQueued(job_id=job.job_id, run_id=run.run_id)
        return
    yield from _judge_in_turn(job, due, now_us)


def _judge_in_turn(job: Job, due: list[Run], now_us: int) -> Iterator[Step]:
    """At most one run is let through; a slot that finds no room goes by the policy, while manual
    runs and what is made up wait for their turn: somebody asked for them.
    """
    policy = job.in_force.overlap
    slots = [run for run in due if run.origin is RunOrigin.SCHEDULE and run.is_unstarted_slot]
    if policy is Overlap.REPLACE and slots:
        for run in slots[:-1]:
            yield _overlapping(job, run)
        due = [run for run in due if run not in slots[:-1]]
        slots = slots[-1:]
        yield from _make_room(job)
    occupant = next((run for run in job.runs.values() if run.occupies), None)
    if occupant is not None and slots and _gives_way(job, occupant, now_us):
        yield _coalesced(job, occupant, slots[-1].run_id)
        occupant = None
    if occupant is None:
        yield RunQueued(job_id=job.job_id, run_id=due[0].run_id)
        slots = [run for run in slots if run is not due[0]]
    may_wait = 0 if policy is Overlap.SKIP else 1
    for run in slots[may_wait:]:
        yield _overlapping(job, run)


def _make_room(job: Job) -> Iterator[Step]:
    """Ask running attempts to end, and end what occupies the job without one."""
    for run in list(job.runs.values()):
        if not run.occupies or run.cancel_asked:
            continue
        if run.lease is not None:
            yield CancelRequested(
                job_id=job.job_id, run_id=run.run_id, token=run.lease.token, reason=REPLACED
            )
        elif run.is_unstarted_slot:
            yield _overlapping(job, run)
        else:
            yield RunCancelled(job_id=job.job_id, run_id=run.run_id, reason=REPLACED)


def _overlapping(job: Job, run: Run) -> Step:
    assert run.slot_us is not None
    return RunSkipped(
        job_id=job.job_id, run_id=run.run_id, slot_us=run.slot_us, reason=SkipReason.OVERLAP
    )


def _turn(run: Run) -> tuple[bool, int, RunId]:
    """Fresh slots and manual runs first, by due time; what is made up after them."""
    made_up = run.origin in (RunOrigin.CATCH_UP, RunOrigin.BACKFILL)
    return made_up, run.due_us, run.run_id


def _gives_way(job: Job, occupant: Run, now_us: int) -> bool:
    """Whether a run that was let through and never started is a missed one by now, so that a later
    slot stands for it.
    """
    return (
        occupant.is_unstarted_slot
        and job.in_force.catch_up is not CatchUp.ALL
        and occupant.due_us < now_us - MISSED_AFTER_US
    )


def _end_too_late(job: Job, now_us: int) -> Iterator[Step]:
    deadline_us = job.in_force.starting_deadline_us
    if deadline_us is None:
        return
    for run in list(job.runs.values()):
        if (
            run.is_unstarted_slot
            and run.origin is not RunOrigin.BACKFILL
            and now_us > run.due_us + deadline_us
        ):
            assert run.slot_us is not None
            yield RunSkipped(
                job_id=job.job_id,
                run_id=run.run_id,
                slot_us=run.slot_us,
                reason=SkipReason.TOO_LATE,
            )


def _clear_backlog(job: Job, now_us: int) -> Iterator[Step]:
    """Runs that waited so long that their slots count as missed, by the catch-up policy."""
    if job.in_force.catch_up is CatchUp.ALL:
        return
    stale_us = now_us - MISSED_AFTER_US
    waiting = sorted(
        (
            run
            for run in job.runs.values()
            if run.due_us <= now_us
            and run.is_unstarted_slot
            and run.origin is not RunOrigin.BACKFILL
            and not run.gated
        ),
        key=lambda run: run.due_us,
    )
    if job.in_force.catch_up is CatchUp.SKIP:
        for run in waiting:
            if run.due_us < stale_us and run.slot_us is not None:
                yield RunSkipped(
                    job_id=job.job_id,
                    run_id=run.run_id,
                    slot_us=run.slot_us,
                    reason=SkipReason.CATCH_UP,
                )
        return
    for run in waiting[:-1]:
        if run.due_us < stale_us:
            yield _coalesced(job, run, waiting[-1].run_id)


def _coalesced(job: Job, run: Run, into: RunId) -> Step:
    assert run.slot_us is not None
    return RunSkipped(
        job_id=job.job_id,
        run_id=run.run_id,
        slot_us=run.slot_us,
        reason=SkipReason.COALESCED,
        into=into,
    )


def _planned(
    job: Job, slot_us: int, due_us: int, origin: RunOrigin, tier: Tier | None = None
) -> Step:
    definition = job.in_force
    return RunPlanned(
        job_id=job.job_id,
        run_id=run_id_of_slot(job.job_id, slot_us),
        slot_us=slot_us,
        due_us=due_us,
        tier=definition.priority if tier is None else tier,
        pool=definition.pool,
        origin=origin,
        gated=definition.overlap is not Overlap.ALLOW,
    )


def _skip(
    state: PartitionState,
    job: Job,
    after_us: int,
    to_us: int,
    reason: SkipReason,
    into: RunId | None = None,
) -> Iterator[Step]:
    """Account for the slots in (after, to] as skipped, if there are any."""
    if to_us <= after_us:
        return
    slots_count = count_slots(job.in_force.schedule, job.job_id, after_us, to_us, state.zones)
    if slots_count:
        yield SlotsSkipped(
            job_id=job.job_id,
            after_us=after_us,
            to_us=to_us,
            slots_count=slots_count,
            reason=reason,
            into=into,
        )
