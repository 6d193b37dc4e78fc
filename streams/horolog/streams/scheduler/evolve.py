"""The only writer of a partition's folded state. Total: it cannot refuse, only crash on a broken
invariant. All it needs is in the event, so a replay consults no clock, calendar or tzdata.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from horolog.schemas.ids import tenant_of
from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    CancelRequested,
    CommandMemory,
    Cursor,
    CursorEnded,
    CursorStarted,
    DispatcherEpochRecorded,
    EpochStarted,
    Event,
    InputsRead,
    JobCreated,
    JobDefinition,
    JobDeleted,
    JobForgotten,
    JobId,
    JobPaused,
    JobRefused,
    JobRequested,
    JobResumed,
    JobStatus,
    JobUpdated,
    LogCreated,
    Overlap,
    ReportRejected,
    RunAdmitted,
    RunCancelled,
    RunDeadLettered,
    RunDiscarded,
    RunId,
    RunKey,
    RunOrigin,
    RunPlanned,
    RunQueued,
    RunRedriven,
    RunRefused,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunStatus,
    RunSucceeded,
    SkippedRange,
    SkipReason,
    SlotsSkipped,
    TzdataChanged,
    ZoneRules,
)
from horolog.streams.calendar import Zones
from horolog.streams.limits import (
    COMMANDS_REMEMBERED,
    ENDED_KEPT_US,
    ENDED_MAX,
    KEYS_KEPT_US,
    REJECTED_REMEMBERED,
    SKIPPED_RANGES_MAX,
    TRIGGERS_BURST,
)
from horolog.streams.scheduler.decide_runs import MILLI, trigger_tokens_milli
from horolog.streams.scheduler.lifecycle import next_status
from horolog.streams.scheduler.state import Job, Lease, PartitionState, Run


def evolve(state: PartitionState, event: Event) -> None:
    """Apply one stamped event; events come in order of `seq`, without a gap."""
    assert event.seq == state.seq + 1, f"seq {event.seq} follows {state.seq}"
    state.seq = event.seq
    state.at_us = event.at_us
    HANDLERS[type(event)](state, event)


def apply(state: PartitionState, event: Event) -> None:
    """Apply one event without moving the partition's `seq`: for a recovery, which starts each job
    from a snapshot of its own `seq` and knows which events its jobs still lack.
    """
    HANDLERS[type(event)](state, event)


# --- the partition


def _log_created(state: PartitionState, event: LogCreated) -> None:
    state.log_id = event.log_id
    state.generation = event.generation
    state.partitions = event.partitions
    state.tzdata = event.tzdata


def _epoch_started(state: PartitionState, event: EpochStarted) -> None:
    state.writer_epoch = event.writer_epoch


def _inputs_read(state: PartitionState, event: InputsRead) -> None:
    state.positions.update(event.positions)
    state.lease_time_us = event.lease_time_us


def _dispatcher_epoch(state: PartitionState, event: DispatcherEpochRecorded) -> None:
    state.dispatcher_epochs[event.dispatcher] = event.epoch


def _tzdata_changed(state: PartitionState, event: TzdataChanged) -> None:
    state.tzdata = event.version
    state.zone_rules.extend(event.zones)
    state.zones = with_rules(state.zones, state.zone_rules, {rules.zone for rules in event.zones})
    state.next_slots.clear()


def with_rules(zones: Zones, rules: Sequence[ZoneRules], names: Iterable[str]) -> Zones:
    """The zones with the rules of those named replaced by what the list holds for them."""
    for name in sorted(names):
        zones = zones.load(
            name, [(each.effective_us, each.rules) for each in rules if each.zone == name]
        )
    return zones


# --- jobs


def _job_requested(state: PartitionState, event: JobRequested) -> None:
    job = state.jobs.get(event.job_id)
    if job is None:
        job = state.jobs[event.job_id] = Job(
            job_id=event.job_id, status=JobStatus.REQUESTED, definition=None
        )
    job.status = JobStatus.REQUESTED
    job.definition = event.definition
    job.created_us = event.at_us
    job.requested_by = event.command_id
    job.reply_to = event.reply_to
    job.principal = event.principal


def _job_refused(state: PartitionState, event: JobRefused) -> None:
    job = state.jobs[event.job_id]
    if job.deleted_us is None:
        del state.jobs[event.job_id]
        return
    job.status = JobStatus.DELETED
    job.definition = None


def _job_created(state: PartitionState, event: JobCreated) -> None:
    job = state.jobs[event.job_id]
    _forget_request(job)
    state.next_slots.pop(event.job_id, None)
    job.status = JobStatus.ACTIVE
    job.version = event.version
    job.definition = event.definition
    job.deleted_us = None
    # Slots before the job's first were never planned; a backfill may still name them. Those of an
    # earlier life of the job, up to its deletion, stay decided.
    _keep_range(job, _never_planned(job.accounted_to_us, event.accounted_to_us))
    job.accounted_to_us = job.planned_to_us = event.accounted_to_us
    job.trigger_tokens_milli = TRIGGERS_BURST * MILLI
    job.trigger_at_us = event.at_us
    _remember(job, event)
    _count_jobs(state, event.job_id, 1)


def _never_planned(after_us: int, to_us: int) -> SkippedRange:
    return SkippedRange(
        after_us=after_us, to_us=to_us, slots_count=0, reason=SkipReason.UNSPECIFIED
    )


def _job_updated(state: PartitionState, event: JobUpdated) -> None:
    job = state.jobs[event.job_id]
    if any(run.version == job.version for run in job.runs.values()):
        job.kept = {**job.kept, job.version: job.in_force}
    state.next_slots.pop(event.job_id, None)
    job.version = event.version
    job.definition = event.definition
    job.accounted_to_us = max(job.accounted_to_us, event.accounted_to_us)
    if event.reschedules:
        job.planned_to_us = job.accounted_to_us
    for run in job.runs.values():
        if run.version == 0:
            _take_definition(run, event.definition, event.seq)
    _remember(job, event)


def _take_definition(run: Run, definition: JobDefinition, seq: int) -> None:
    """A run that has not started goes by the new definition; it begins to wait anew if it moves."""
    tier = run.tier if run.origin is RunOrigin.BACKFILL else definition.priority
    gated = run.gated
    if run.status in (RunStatus.PLANNED, RunStatus.PENDING):
        gated = definition.overlap is not Overlap.ALLOW
    if (tier, definition.pool, gated) != (run.tier, run.pool, run.gated):
        run.tier = tier
        run.pool = definition.pool
        run.gated = gated
        run.plan = seq


def _job_paused(state: PartitionState, event: JobPaused) -> None:
    job = state.jobs[event.job_id]
    job.status = JobStatus.PAUSED
    job.paused_until_us = event.until_us
    job.accounted_to_us = job.planned_to_us = event.accounted_to_us
    for run in job.runs.values():
        if run.lease is None and run.status is not RunStatus.DEAD:
            run.held = True
    _remember(job, event)


def _job_resumed(state: PartitionState, event: JobResumed) -> None:
    job = state.jobs[event.job_id]
    job.status = JobStatus.ACTIVE
    job.paused_until_us = None
    job.accounted_to_us = job.planned_to_us = event.accounted_to_us
    for run in job.runs.values():
        if run.held:
            run.held = False
            run.plan = event.seq
    _remember(job, event)


def _job_deleted(state: PartitionState, event: JobDeleted) -> None:
    job = state.jobs[event.job_id]
    if job.runs:
        job.kept = {**job.kept, job.version: job.in_force}
    job.status = JobStatus.DELETED
    job.definition = None
    job.deleted_us = event.at_us
    job.paused_until_us = None
    job.accounted_to_us = job.planned_to_us = event.accounted_to_us
    _remember(job, event)
    _count_jobs(state, event.job_id, -1)


def _job_forgotten(state: PartitionState, event: JobForgotten) -> None:
    del state.jobs[event.job_id]
    state.next_slots.pop(event.job_id, None)


def _forget_request(job: Job) -> None:
    job.requested_by = job.reply_to = job.principal = ""


def _count_jobs(state: PartitionState, job_id: JobId, change: int) -> None:
    tenant = tenant_of(job_id)
    state.tenant_jobs[tenant] = state.tenant_jobs.get(tenant, 0) + change


_Commanded = (
    JobCreated
    | JobUpdated
    | JobPaused
    | JobResumed
    | JobDeleted
    | CursorStarted
    | RunRequested
    | CancelRequested
    | RunCancelled
    | RunRedriven
    | RunDiscarded
)


def _remember(job: Job, event: _Commanded, run_id: RunId | None = None) -> None:
    """Keep the answer to a command, for the last few commands of the job."""
    if not event.command_id:
        return
    job.commands = {
        **job.commands,
        event.command_id: CommandMemory(
            command_id=event.command_id, run_id=run_id, version=job.version, seq=event.seq
        ),
    }
    while len(job.commands) > COMMANDS_REMEMBERED:
        del job.commands[next(iter(job.commands))]


# --- slots


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
    run = _run(state, event)
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
    _end_run(job, run, event)
    if not isinstance(event, RunRevoked | RunSkipped):
        _remember(job, event, event.run_id)


def _end_run(
    job: Job,
    run: Run,
    event: RunRevoked | RunSkipped | RunDiscarded | RunCancelled | RunSucceeded | RunRefused,
) -> None:
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
    _keep_range(
        job,
        SkippedRange(
            after_us=event.after_us,
            to_us=event.to_us,
            slots_count=event.slots_count,
            reason=event.reason,
        ),
    )


def _keep_range(job: Job, past: SkippedRange) -> None:
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
    _remember(job, event)


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
        _keep_range(
            job,
            SkippedRange(
                after_us=cursor.done_to_us, to_us=cursor.to_us, slots_count=0, reason=event.reason
            ),
        )


# --- runs


def _run(
    state: PartitionState,
    event: RunQueued | RunAdmitted | RunDeadLettered | CancelRequested | RunRedriven,
) -> Run:
    """The run of an event that leaves it open, moved by the transition table."""
    run = state.jobs[event.job_id].runs[event.run_id]
    status = next_status(run.status, event)
    assert status is not None
    run.status = status
    return run


def _run_requested(state: PartitionState, event: RunRequested) -> None:
    job = state.jobs[event.job_id]
    status = next_status(None, event)
    assert status is not None
    job.trigger_tokens_milli = trigger_tokens_milli(job, event.at_us) - MILLI
    job.trigger_at_us = event.at_us
    job.runs[event.run_id] = Run(
        run_id=event.run_id,
        origin=RunOrigin.MANUAL,
        status=status,
        due_us=event.at_us,
        plan=event.seq,
        tier=event.tier,
        pool=event.pool,
        not_before_us=event.at_us,
        slot_us=event.slot_us,
        held=job.status is JobStatus.PAUSED,
        gated=job.in_force.overlap is not Overlap.ALLOW,
        key=event.key,
        payload=event.payload,
        requested_by=event.command_id,
        reply_to=event.reply_to,
    )
    _forget_keys(job, event.at_us)
    job.keys[event.key] = RunKey(
        key=event.key,
        run_id=event.run_id,
        payload_digest=event.payload_digest,
        at_us=event.at_us,
    )


def _forget_keys(job: Job, now_us: int) -> None:
    """Drop the keys older than the idempotency window; they stand in order of asking."""
    while job.keys:
        oldest = next(iter(job.keys.values()))
        if oldest.at_us + KEYS_KEPT_US > now_us:
            return
        del job.keys[oldest.key]


def _run_admitted(state: PartitionState, event: RunAdmitted) -> None:
    run = _run(state, event)
    _remember_request(state.jobs[event.job_id], run, event.seq)


def _remember_request(job: Job, run: Run, seq: int) -> None:
    """An asked-for run is admitted: from now on its command has an answer."""
    if run.requested_by and run.requested_by not in job.commands:
        job.commands = {
            **job.commands,
            run.requested_by: CommandMemory(
                command_id=run.requested_by, run_id=run.run_id, version=job.version, seq=seq
            ),
        }
        while len(job.commands) > COMMANDS_REMEMBERED:
            del job.commands[next(iter(job.commands))]


def _run_refused(state: PartitionState, event: RunRefused) -> None:
    job = state.jobs[event.job_id]
    run = job.runs[event.run_id]
    job.keys.pop(run.key, None)
    _end_run(job, run, event)


def _run_started(state: PartitionState, event: RunStarted) -> None:
    job = state.jobs[event.job_id]
    run = job.runs[event.run_id]
    status = next_status(run.status, event)
    assert status is not None
    assert run.lease is None, f"{event.run_id} has a live lease"
    if run.status is RunStatus.PENDING:
        _remember_request(job, run, event.seq)
    run.status = status
    run.attempt = event.attempt
    run.version = event.version
    run.lease = Lease(
        token=state.token_of(event.seq),
        worker_id=event.worker_id,
        inbox=event.inbox,
        claim_id=event.claim_id,
        term_us=event.term_us,
        granted_us=event.lease_time_us,
    )


def _run_succeeded(state: PartitionState, event: RunSucceeded) -> None:
    job = state.jobs[event.job_id]
    _end_run(job, job.runs[event.run_id], event)
    _remember_ended(job, event.token, event.at_us)


def _remember_ended(job: Job, token: int, at_us: int) -> None:
    ended = job.ended = {
        kept: since_us for kept, since_us in job.ended.items() if since_us + ENDED_KEPT_US > at_us
    }
    ended[token] = at_us
    if len(ended) > ENDED_MAX:
        del ended[next(iter(ended))]


def _attempt_ended(state: PartitionState, event: AttemptEnded) -> None:
    job = state.jobs[event.job_id]
    run = job.runs[event.run_id]
    status = next_status(run.status, event)
    assert status is not None
    run.status = status
    run.lease = None
    run.plan = event.seq
    run.held = job.status is JobStatus.PAUSED
    run.cancel_asked = False
    if event.retry_at_us is not None:
        run.not_before_us = event.retry_at_us
    match event.outcome:
        case AttemptOutcome.RELEASED:
            run.attempt -= 1
        case AttemptOutcome.LOST:
            run.losses += 1
        case _:
            run.failures += 1
    if event.outcome is not AttemptOutcome.LOST:
        _remember_ended(job, event.token, event.at_us)


def _run_dead_lettered(state: PartitionState, event: RunDeadLettered) -> None:
    run = _run(state, event)
    run.dead_us = event.at_us
    run.held = False


def _cancel_requested(state: PartitionState, event: CancelRequested) -> None:
    run = _run(state, event)
    run.cancel_asked = True
    run.cancel_reason = event.reason
    _remember(state.jobs[event.job_id], event, event.run_id)


def _run_redriven(state: PartitionState, event: RunRedriven) -> None:
    job = state.jobs[event.job_id]
    run = _run(state, event)
    run.round = event.round
    run.attempt = run.failures = run.losses = run.version = 0
    run.dead_us = 0
    run.plan = event.seq
    run.not_before_us = event.at_us
    run.held = job.status is JobStatus.PAUSED
    run.gated = job.in_force.overlap is not Overlap.ALLOW
    run.cancel_reason = ""
    _remember(job, event, event.run_id)


def _report_rejected(state: PartitionState, event: ReportRejected) -> None:
    job = state.jobs[event.job_id]
    job.rejected = [*job.rejected, event.token][-REJECTED_REMEMBERED:]


# By type and not by `match`, which takes ten times as long over so many cases (style page). Each
# handler takes its own event type, which a dict cannot say; a test holds that none is missing.
HANDLERS: Mapping[type[Event], Callable[[PartitionState, Any], None]] = {
    LogCreated: _log_created,
    EpochStarted: _epoch_started,
    InputsRead: _inputs_read,
    DispatcherEpochRecorded: _dispatcher_epoch,
    TzdataChanged: _tzdata_changed,
    JobRequested: _job_requested,
    JobRefused: _job_refused,
    JobCreated: _job_created,
    JobUpdated: _job_updated,
    JobPaused: _job_paused,
    JobResumed: _job_resumed,
    JobDeleted: _job_deleted,
    JobForgotten: _job_forgotten,
    RunPlanned: _run_planned,
    RunQueued: _run_queued,
    RunRevoked: _run_gone,
    RunSkipped: _run_gone,
    RunDiscarded: _run_gone,
    RunCancelled: _run_gone,
    SlotsSkipped: _slots_skipped,
    CursorStarted: _cursor_started,
    CursorEnded: _cursor_ended,
    RunRequested: _run_requested,
    RunAdmitted: _run_admitted,
    RunRefused: _run_refused,
    RunStarted: _run_started,
    RunSucceeded: _run_succeeded,
    AttemptEnded: _attempt_ended,
    RunDeadLettered: _run_dead_lettered,
    CancelRequested: _cancel_requested,
    RunRedriven: _run_redriven,
    ReportRejected: _report_rejected,
}
