"""Commands on jobs: create, update, delete, pause, resume; and the answer to a job asked for.

Every command on a job first decides its slots up to now by the definition in force; the new one
counts from there, so no edit fires the past and none loses a slot.
"""

from collections.abc import Iterator

import msgspec

from horolog.schemas import errors
from horolog.schemas.records import (
    AdmissionAnswer,
    CancelRequested,
    CreateJob,
    DeleteJob,
    JobCreated,
    JobDefinition,
    JobDeleted,
    JobPaused,
    JobRefused,
    JobRequested,
    JobResumed,
    JobStatus,
    JobUpdated,
    PauseJob,
    ResumeJob,
    RunCancelled,
    RunDiscarded,
    RunRevoked,
    RunSkipped,
    RunStatus,
    SkipReason,
    UpdateJob,
)
from horolog.streams.calendar import anchored as with_anchor
from horolog.streams.scheduler import decide_slots, replies
from horolog.streams.scheduler.decision import Step
from horolog.streams.scheduler.definitions import faults_of
from horolog.streams.scheduler.state import Job, PartitionState

DELETED = "the job was deleted"


def create(state: PartitionState, command: CreateJob, now_us: int) -> Iterator[Step]:
    """Ask for a job; the same definition again changes nothing, another one is a conflict."""
    job = state.jobs.get(command.job_id)
    again = replies.remembered(state, job, command)
    if again is not None:
        yield again
        return
    definition = anchored(command.definition, job, now_us)
    if job is not None and job.status is not JobStatus.DELETED:
        yield from _create_again(state, command, job, definition)
        return
    refusal = _fault(state, command, definition, now_us)
    if refusal is not None:
        yield refusal
        return
    yield JobRequested(
        job_id=command.job_id,
        definition=definition,
        command_id=command.command_id,
        reply_to=command.reply_to,
        principal=command.principal,
    )


def _create_again(
    state: PartitionState, command: CreateJob, job: Job, definition: JobDefinition
) -> Iterator[Step]:
    if job.definition != definition:
        yield replies.refused(
            state,
            command,
            errors.JOB_EXISTS,
            f"{command.job_id} exists with another definition (version {job.version}); "
            "update it instead",
        )
    elif job.status is JobStatus.REQUESTED:
        # Not decided yet: the sender repeats the command until it is answered.
        return
    else:
        yield replies.done(state, command, version=job.version)


def admit(state: PartitionState, answer: AdmissionAnswer, now_us: int) -> Iterator[Step]:
    """The tenant's job limit has decided over a job that was asked for."""
    job = state.jobs.get(answer.job_id)
    if job is None or job.status is not JobStatus.REQUESTED:
        return
    if not answer.admitted:
        yield JobRefused(
            job_id=job.job_id,
            code=answer.code,
            detail=answer.detail,
            command_id=job.requested_by,
            reply_to=job.reply_to,
            principal=job.principal,
        )
        return
    yield JobCreated(
        job_id=job.job_id,
        version=job.version + 1,
        definition=job.in_force,
        # From the asking on: a one-time slot that fell between asking and admission is kept.
        accounted_to_us=job.created_us,
        command_id=job.requested_by,
        reply_to=job.reply_to,
        principal=job.principal,
    )
    yield from decide_slots.plan(state, job, now_us)


def update(state: PartitionState, command: UpdateJob, now_us: int) -> Iterator[Step]:
    """Replace a definition. Planned runs whose slot is to come are revoked if the schedule changes
    and planned by the new one in the same step.
    """
    job = _existing(state, command, command.if_version)
    if not isinstance(job, Job):
        yield job
        return
    definition = anchored(command.definition, job, now_us)
    if definition == job.definition:
        yield replies.done(state, command, version=job.version)
        return
    reschedules = definition.schedule != job.in_force.schedule
    fault = _fault(state, command, definition, now_us, schedule=reschedules)
    if fault is not None:
        yield fault
        return
    yield from decide_slots.settle(state, job, now_us)
    edge_us = _edge_us(job, now_us)
    if reschedules:
        yield from _revoke(job, edge_us)
        yield from decide_slots.end_cursors(state, job, SkipReason.CATCH_UP)
    yield JobUpdated(
        job_id=job.job_id,
        version=job.version + 1,
        definition=definition,
        accounted_to_us=edge_us,
        reschedules=reschedules,
        command_id=command.command_id,
        reply_to=command.reply_to,
        principal=command.principal,
    )
    yield from decide_slots.plan(state, job, now_us)


def pause(state: PartitionState, command: PauseJob, now_us: int) -> Iterator[Step]:
    """Stop planning; end what has not started, hold what was asked for or waits for a retry."""
    job = _existing(state, command, None)
    if not isinstance(job, Job):
        yield job
        return
    if command.until_us is not None and command.until_us <= now_us:
        yield replies.refused(
            state,
            command,
            errors.INVALID_FIELD,
            "until is in the past; name an instant to come, or none to pause until resumed",
            field="/until",
        )
        return
    yield from decide_slots.settle(state, job, now_us)
    yield from _withdraw(state, job, now_us, SkipReason.PAUSED)
    yield JobPaused(
        job_id=job.job_id,
        accounted_to_us=_edge_us(job, now_us),
        until_us=command.until_us,
        reason=command.reason,
        command_id=command.command_id,
        reply_to=command.reply_to,
        principal=command.principal,
    )


def resume(state: PartitionState, command: ResumeJob, now_us: int) -> Iterator[Step]:
    """Plan again from now on; the slots that passed are one skipped range."""
    job = _existing(state, command, None)
    if not isinstance(job, Job):
        yield job
        return
    if job.status is not JobStatus.PAUSED:
        yield replies.done(state, command, version=job.version)
        return
    yield from decide_slots.settle(state, job, now_us)
    yield JobResumed(
        job_id=job.job_id,
        accounted_to_us=_edge_us(job, now_us),
        command_id=command.command_id,
        reply_to=command.reply_to,
        principal=command.principal,
    )
    yield from decide_slots.plan(state, job, now_us)


def delete(state: PartitionState, command: DeleteJob, now_us: int) -> Iterator[Step]:
    """End a job. Running attempts go on unless asked otherwise; all else of it ends."""
    job = _existing(state, command, command.if_version)
    if not isinstance(job, Job):
        yield job
        return
    yield from decide_slots.settle(state, job, now_us)
    yield from _withdraw(state, job, now_us, SkipReason.DELETED)
    for run in list(job.runs.values()):
        if run.status is RunStatus.DEAD:
            yield RunDiscarded(job_id=job.job_id, run_id=run.run_id, reason=DELETED)
        elif run.lease is None:
            yield RunCancelled(job_id=job.job_id, run_id=run.run_id, reason=DELETED)
        elif command.cancel_running and not run.cancel_asked:
            yield CancelRequested(
                job_id=job.job_id, run_id=run.run_id, token=run.lease.token, reason=DELETED
            )
    yield JobDeleted(
        job_id=job.job_id,
        accounted_to_us=_edge_us(job, now_us),
        command_id=command.command_id,
        reply_to=command.reply_to,
        principal=command.principal,
    )


def anchored(definition: JobDefinition, job: Job | None, now_us: int) -> JobDefinition:
    """The definition with the origin of its interval: the one the job has, else one from now. So
    restarts and edits of other fields never move the slots.
    """
    schedule = definition.schedule
    if schedule.every_us is None or schedule.anchor_us is not None:
        return definition
    old = None if job is None or job.definition is None else job.definition.schedule
    if old is not None and old.every_us == schedule.every_us and old.start_us == schedule.start_us:
        schedule = msgspec.structs.replace(schedule, anchor_us=old.anchor_us)
    else:
        schedule = with_anchor(schedule, now_us)
    return msgspec.structs.replace(definition, schedule=schedule)


def _existing(
    state: PartitionState,
    command: UpdateJob | DeleteJob | PauseJob | ResumeJob,
    if_version: int | None,
) -> Job | Step:
    """The job a command means, or the answer to give instead."""
    job = state.jobs.get(command.job_id)
    again = replies.remembered(state, job, command)
    if again is not None:
        return again
    if job is None or not job.exists:
        return replies.refused(
            state, command, errors.UNKNOWN_JOB, f"there is no job {command.job_id}"
        )
    if if_version is not None and if_version != job.version:
        return replies.refused(
            state,
            command,
            errors.VERSION_MISMATCH,
            f"{job.job_id} is at version {job.version}, not {if_version}; read it again",
        )
    return job


def _fault(
    state: PartitionState,
    command: CreateJob | UpdateJob,
    definition: JobDefinition,
    now_us: int,
    *,
    schedule: bool = True,
) -> Step | None:
    faults = faults_of(definition, command.job_id, now_us, state.zones)
    if not schedule:
        faults = tuple(fault for fault in faults if not fault.field.startswith("schedule."))
    if not faults:
        return None
    first = faults[0]
    bad_schedule = first.field.startswith("schedule.")
    return replies.refused(
        state,
        command,
        errors.INVALID_SCHEDULE if bad_schedule else errors.INVALID_FIELD,
        "; ".join(f"{fault.field} is {fault.value!r}: {fault.detail}" for fault in faults),
        field="/" + first.field.replace(".", "/"),
    )


def _edge_us(job: Job, now_us: int) -> int:
    """Up to where slots belong to what was in force before an edit: now, or a slot still to come
    whose run was cancelled and must not come back.
    """
    return max(now_us, job.accounted_to_us)


def _revoke(job: Job, edge_us: int) -> Iterator[Step]:
    """Take back the planned runs whose slot is still to come."""
    for run in list(job.runs.values()):
        if run.is_unstarted_slot and run.slot_us is not None and run.slot_us > edge_us:
            yield RunRevoked(job_id=job.job_id, run_id=run.run_id, slot_us=run.slot_us)


def _withdraw(state: PartitionState, job: Job, now_us: int, reason: SkipReason) -> Iterator[Step]:
    """End what has not started: revoke slots to come, skip those that came, end the cursors."""
    yield from _revoke(job, _edge_us(job, now_us))
    for run in list(job.runs.values()):
        if run.is_unstarted_slot and run.slot_us is not None:
            yield RunSkipped(
                job_id=job.job_id, run_id=run.run_id, slot_us=run.slot_us, reason=reason
            )
    yield from decide_slots.end_cursors(state, job, reason)
