"""How events change runs and their attempts."""

from collections.abc import Callable, Mapping
from typing import Any

from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    CancelRequested,
    Event,
    JobStatus,
    Overlap,
    ReportRejected,
    RunAdmitted,
    RunDeadLettered,
    RunKey,
    RunOrigin,
    RunRedriven,
    RunRefused,
    RunRequested,
    RunStarted,
    RunStatus,
    RunSucceeded,
)
from horolog.streams.limits import (
    REJECTED_REMEMBERED,
)
from horolog.streams.scheduler.decide_runs import MILLI, trigger_tokens_milli
from horolog.streams.scheduler.evolve_slots import end_run, run_of
from horolog.streams.scheduler.lifecycle import next_status
from horolog.streams.scheduler.memory import forget_keys, remember, remember_ended, remember_request
from horolog.streams.scheduler.state import Lease, PartitionState, Run


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
    forget_keys(job, event.at_us)
    job.keys[event.key] = RunKey(
        key=event.key,
        run_id=event.run_id,
        payload_digest=event.payload_digest,
        at_us=event.at_us,
    )


def _run_admitted(state: PartitionState, event: RunAdmitted) -> None:
    run = run_of(state, event)
    remember_request(state.jobs[event.job_id], run, event.seq)


def _run_refused(state: PartitionState, event: RunRefused) -> None:
    job = state.jobs[event.job_id]
    run = job.runs[event.run_id]
    job.keys.pop(run.key, None)
    end_run(job, run, event)


def _run_started(state: PartitionState, event: RunStarted) -> None:
    job = state.jobs[event.job_id]
    run = job.runs[event.run_id]
    status = next_status(run.status, event)
    assert status is not None
    assert run.lease is None, f"{event.run_id} has a live lease"
    if run.status is RunStatus.PENDING:
        remember_request(job, run, event.seq)
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
    end_run(job, job.runs[event.run_id], event)
    remember_ended(job, event.token, event.at_us)


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
        remember_ended(job, event.token, event.at_us)


def _run_dead_lettered(state: PartitionState, event: RunDeadLettered) -> None:
    run = run_of(state, event)
    run.dead_us = event.at_us
    run.held = False


def _cancel_requested(state: PartitionState, event: CancelRequested) -> None:
    run = run_of(state, event)
    run.cancel_asked = True
    run.cancel_reason = event.reason
    remember(state.jobs[event.job_id], event, event.run_id)


def _run_redriven(state: PartitionState, event: RunRedriven) -> None:
    job = state.jobs[event.job_id]
    run = run_of(state, event)
    run.round = event.round
    run.attempt = run.failures = run.losses = run.version = 0
    run.dead_us = 0
    run.plan = event.seq
    run.not_before_us = event.at_us
    run.held = job.status is JobStatus.PAUSED
    run.gated = job.in_force.overlap is not Overlap.ALLOW
    run.cancel_reason = ""
    remember(job, event, event.run_id)


def _report_rejected(state: PartitionState, event: ReportRejected) -> None:
    job = state.jobs[event.job_id]
    job.rejected = [*job.rejected, event.token][-REJECTED_REMEMBERED:]


# Each handler takes its own event type, which a dict cannot say.
HANDLERS: Mapping[type[Event], Callable[[PartitionState, Any], None]] = {
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
