"""How events change slots: planned runs, skipped ranges, cursors."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from horolog.schemas.records import (
    CancelRequested,
    Cursor,
    CursorEnded,
    CursorStarted,
    Event,
    RunAdmitted,
    RunCancelled,
    RunDeadLettered,
    RunDiscarded,
    RunOrigin,
    RunPlanned,
    RunQueued,
    RunRedriven,
    RunRefused,
    RunRevoked,
    RunSkipped,
    RunStatus,
    RunSucceeded,
    SkippedRange,
    SkipReason,
    SlotsSkipped,
)
from horolog.streams.limits import (
    SKIPPED_RANGES_MAX,
)
from horolog.streams.scheduler.lifecycle import next_status
from horolog.streams.scheduler.memory import remember
from horolog.streams.scheduler.state import Job, PartitionState, Run


def run_of(
    state: PartitionState,
    event: RunQueued | RunAdmitted | RunDeadLettered | CancelRequested | RunRedriven,
) -> Run:
    """The run of an event that leaves it open, moved by the transition table."""
    run = state.jobs[event.job_id].runs[event.run_id]
    status = next_status(run.status, event)
    assert status is not None
    run.status = status
    return run


def _run_planned(state: PartitionState, event: RunPlanned) -> None:
    job = state.jobs[event.job_id]
    _plan_cursor(job, event)
    job.planned_to_us = max(job.planned_to_us, event.slot_us)
    status = next_status(None, event)
    assert status is not None
    assert event.run_id not in job.runs, f"{event.run_id} is planned while it is open"
    job.runs[event.run_id] = Run(
        run_id=event.run_id,
        origin=event.origin,
        status=status,
        due_us=event.due_us,
        plan=event.seq,
        tier=event.tier,
        pool=event.pool,
        not_before_us=event.due_us,
        slot_us=event.slot_us,
        gated=event.gated,
    )


def _plan_cursor(job: Job, event: RunPlanned) -> None:
    if event.origin is RunOrigin.SCHEDULE:
        return
    for cursor in job.cursors.values():
        if cursor.origin is event.origin and cursor.done_to_us < event.slot_us <= cursor.to_us:
            job.cursors[cursor.cursor_id] = msgspec.structs.replace(
                cursor, done_to_us=event.slot_us
            )
            return


def _run_queued(state: PartitionState, event: RunQueued) -> None:
    run = run_of(state, event)
    run.status = RunStatus.QUEUED
    run.gated = False
    run.plan = event.seq


def _run_gone(
    state: PartitionState, event: RunRevoked | RunSkipped | RunDiscarded | RunCancelled
) -> None:
    job = state.jobs[event.job_id]
    run = job.runs[event.run_id]
    if isinstance(event, RunCancelled) and run.is_unstarted_slot and run.slot_us is not None:
        # The slot is decided, though it may be still to come: no edit may bring it back.
        job.accounted_to_us = max(job.accounted_to_us, run.slot_us)
    end_run(job, run, event)
    if not isinstance(event, RunRevoked | RunSkipped):
        remember(job, event, event.run_id)


def end_run(
    job: Job,
    run: Run,
    event: RunRevoked | RunSkipped | RunDiscarded | RunCancelled | RunSucceeded | RunRefused,
) -> None:
    """Take a run out of its job, and the definition that only it kept."""
    assert next_status(run.status, event) is None
    del job.runs[run.run_id]
    if job.kept:
        used = {other.version for other in job.runs.values()}
        job.kept = {
            version: definition for version, definition in job.kept.items() if version in used
        }


def _slots_skipped(state: PartitionState, event: SlotsSkipped) -> None:
    job = state.jobs[event.job_id]
    job.planned_to_us = max(job.planned_to_us, event.to_us)
    job.accounted_to_us = max(job.accounted_to_us, event.to_us)
    keep_range(
        job,
        SkippedRange(
            after_us=event.after_us,
            to_us=event.to_us,
            slots_count=event.slots_count,
            reason=event.reason,
        ),
    )


def keep_range(job: Job, past: SkippedRange) -> None:
    """Keep a range for a backfill; the oldest is given up when there are too many."""
    ranges = sorted([*job.skipped, past], key=lambda kept: kept.after_us)
    job.skipped = ranges[-SKIPPED_RANGES_MAX:]


def _cursor_started(state: PartitionState, event: CursorStarted) -> None:
    job = state.jobs[event.job_id]
    job.cursor_next = event.cursor_id + 1
    job.cursors = {
        **job.cursors,
        event.cursor_id: Cursor(
            cursor_id=event.cursor_id,
            origin=event.origin,
            done_to_us=event.after_us,
            to_us=event.to_us,
            tier=event.tier,
        ),
    }
    if event.origin is RunOrigin.CATCH_UP:
        job.planned_to_us = max(job.planned_to_us, event.to_us)
        job.accounted_to_us = max(job.accounted_to_us, event.to_us)
    else:
        job.skipped = [
            part for past in job.skipped for part in _without(past, event.after_us, event.to_us)
        ]
    remember(job, event)


def _without(past: SkippedRange, after_us: int, to_us: int) -> list[SkippedRange]:
    """What is left of a skipped range when (after, to] is taken out. Counts of parts are unknown
    (0): they are for people, the calendar gives them again.
    """
    if to_us <= past.after_us or past.to_us <= after_us:
        return [past]
    parts = ((past.after_us, after_us), (to_us, past.to_us))
    return [
        SkippedRange(after_us=low, to_us=high, slots_count=0, reason=past.reason)
        for low, high in parts
        if low < high
    ]


def _cursor_ended(state: PartitionState, event: CursorEnded) -> None:
    job = state.jobs[event.job_id]
    cursor = job.cursors[event.cursor_id]
    job.cursors = {key: kept for key, kept in job.cursors.items() if key != event.cursor_id}
    if (
        cursor.origin is RunOrigin.BACKFILL
        and event.reason is not SkipReason.UNSPECIFIED
        and cursor.done_to_us < cursor.to_us
    ):
        keep_range(
            job,
            SkippedRange(
                after_us=cursor.done_to_us, to_us=cursor.to_us, slots_count=0, reason=event.reason
            ),
        )


# Each handler takes its own event type, which a dict cannot say.
HANDLERS: Mapping[type[Event], Callable[[PartitionState, Any], None]] = {
    RunPlanned: _run_planned,
    RunQueued: _run_queued,
    RunRevoked: _run_gone,
    RunSkipped: _run_gone,
    RunDiscarded: _run_gone,
    RunCancelled: _run_gone,
    SlotsSkipped: _slots_skipped,
    CursorStarted: _cursor_started,
    CursorEnded: _cursor_ended,
}
