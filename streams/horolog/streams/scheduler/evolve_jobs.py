"""How events change jobs."""

from collections.abc import Callable, Mapping
from typing import Any

from horolog.schemas.ids import tenant_of
from horolog.schemas.records import (
    Event,
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
    Overlap,
    RunOrigin,
    RunStatus,
    SkippedRange,
    SkipReason,
)
from horolog.streams.limits import (
    TRIGGERS_BURST,
)
from horolog.streams.scheduler.decide_runs import MILLI
from horolog.streams.scheduler.evolve_slots import keep_range
from horolog.streams.scheduler.memory import remember
from horolog.streams.scheduler.state import Job, PartitionState, Run


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
    keep_range(job, _never_planned(job.accounted_to_us, event.accounted_to_us))
    job.accounted_to_us = job.planned_to_us = event.accounted_to_us
    job.trigger_tokens_milli = TRIGGERS_BURST * MILLI
    job.trigger_at_us = event.at_us
    remember(job, event)
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
    remember(job, event)


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
    remember(job, event)


def _job_resumed(state: PartitionState, event: JobResumed) -> None:
    job = state.jobs[event.job_id]
    job.status = JobStatus.ACTIVE
    job.paused_until_us = None
    job.accounted_to_us = job.planned_to_us = event.accounted_to_us
    for run in job.runs.values():
        if run.held:
            run.held = False
            run.plan = event.seq
    remember(job, event)


def _job_deleted(state: PartitionState, event: JobDeleted) -> None:
    job = state.jobs[event.job_id]
    if job.runs:
        job.kept = {**job.kept, job.version: job.in_force}
    job.status = JobStatus.DELETED
    job.definition = None
    job.deleted_us = event.at_us
    job.paused_until_us = None
    job.accounted_to_us = job.planned_to_us = event.accounted_to_us
    remember(job, event)
    _count_jobs(state, event.job_id, -1)


def _job_forgotten(state: PartitionState, event: JobForgotten) -> None:
    del state.jobs[event.job_id]
    state.next_slots.pop(event.job_id, None)


def _forget_request(job: Job) -> None:
    job.requested_by = job.reply_to = job.principal = ""


def _count_jobs(state: PartitionState, job_id: JobId, change: int) -> None:
    tenant = tenant_of(job_id)
    state.tenant_jobs[tenant] = state.tenant_jobs.get(tenant, 0) + change


# Each handler takes its own event type, which a dict cannot say.
HANDLERS: Mapping[type[Event], Callable[[PartitionState, Any], None]] = {
    JobRequested: _job_requested,
    JobRefused: _job_refused,
    JobCreated: _job_created,
    JobUpdated: _job_updated,
    JobPaused: _job_paused,
    JobResumed: _job_resumed,
    JobDeleted: _job_deleted,
    JobForgotten: _job_forgotten,
}
