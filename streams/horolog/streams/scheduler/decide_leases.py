"""Leases: claims, heartbeats, completions, releases, and the end of lease time.

Only a grant is the right to execute, and only the newest token speaks for a run: a report with
another one changes nothing, is answered each time and recorded once.
"""

from collections.abc import Iterator, Mapping

from horolog.schemas.ids import job_of
from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    ClaimRefused,
    ClaimRun,
    CompleteRun,
    EpochSuperseded,
    Heartbeat,
    RefusalReason,
    ReleaseRun,
    ReportAnswered,
    ReportKind,
    ReportRejected,
    RunCancelled,
    RunDeadLettered,
    RunResult,
    RunStarted,
    RunStatus,
    RunSucceeded,
    StopReason,
    StopRun,
    Verdict,
)
from horolog.streams.limits import (
    ERROR_CHARS_MAX,
    OUTPUT_BYTES_MAX,
    TIMEOUT_SLACK_US,
)
from horolog.streams.scheduler import decide_slots
from horolog.streams.scheduler.decision import Step
from horolog.streams.scheduler.react import grant_of, state_of
from horolog.streams.scheduler.state import Beat, Job, PartitionState, Run, Soft

LOST = "the lease ended without a report"
OVERDUE = "no report by the time-out, its grace and 5 s"
NO_ATTEMPT_LEFT = "no attempt is left"
NOT_RETRYABLE = "the worker says that no retry would help"
DELETED = "the job was deleted"


def claim(state: PartitionState, soft: Soft, report: ClaimRun, now_us: int) -> Iterator[Step]:
    """Grant the lease of a run that waits and is due; refuse all else and tell the dispatcher the
    run's present state, which also mends a lost message. A claim by a hint of an older dispatcher
    epoch is dropped, and its dispatcher told.
    """
    epoch = state.dispatcher_epochs.get(report.dispatcher, 0)
    if report.epoch != epoch:
        if report.epoch < epoch:
            yield EpochSuperseded(
                partition=state.partition,
                writer_epoch=state.writer_epoch,
                seq=state.seq,
                dispatcher=report.dispatcher,
                epoch=epoch,
            )
        return
    job = state.jobs.get(job_of(report.run_id))
    run = None if job is None else job.runs.get(report.run_id)
    if job is None or run is None:
        yield _refused(report, RefusalReason.GONE)
        yield state_of(None, report.run_id)
        return
    lease = run.lease
    if lease is not None:
        if lease.claim_id == report.claim_id:
            yield grant_of(state, job, run)
            return
        yield _refused(report, RefusalReason.TAKEN)
    elif report.plan != run.plan or not _may_start(run):
        yield _refused(report, RefusalReason.STALE)
    elif run.not_before_us > now_us:
        yield _refused(report, RefusalReason.NOT_YET, run.not_before_us)
    elif _is_too_late(job, run, now_us):
        yield _refused(report, RefusalReason.GONE)
        yield from decide_slots.judge(job, now_us)
    else:
        yield _started(state, soft, job, run, report)
        return
    yield state_of(job, report.run_id)


def _may_start(run: Run) -> bool:
    # A pending run is admitted by the very hint that led to the claim.
    return run.is_waiting or (run.status is RunStatus.PENDING and not run.held and not run.gated)


def _is_too_late(job: Job, run: Run, now_us: int) -> bool:
    deadline_us = None if job.definition is None else job.definition.starting_deadline_us
    return deadline_us is not None and run.is_unstarted_slot and now_us > run.due_us + deadline_us


def _started(state: PartitionState, soft: Soft, job: Job, run: Run, report: ClaimRun) -> Step:
    definition = job.definition_of(run)
    return RunStarted(
        job_id=job.job_id,
        run_id=run.run_id,
        attempt=run.attempt + 1,
        round=run.round,
        generation=state.generation,
        worker_id=report.worker_id,
        inbox=report.inbox,
        claim_id=report.claim_id,
        term_us=definition.lease_term_us,
        version=run.version or job.version,
        lease_time_us=soft.lease_time_us,
    )


def _refused(
    report: ClaimRun, reason: RefusalReason, retry_at_us: int | None = None
) -> ClaimRefused:
    return ClaimRefused(
        run_id=report.run_id,
        claim_id=report.claim_id,
        inbox=report.inbox,
        reason=reason,
        retry_at_us=retry_at_us,
    )


def heartbeat(state: PartitionState, report: Heartbeat) -> Iterator[Step]:
    """Extend a lease (the host notes the beat when the verdict is not stale)."""
    found = _leased(state, report)
    if found is None:
        yield from _reject(state, report, ReportKind.HEARTBEAT)
        return
    _, run = found
    verdict = Verdict.CANCEL if run.cancel_asked else Verdict.ACCEPTED
    yield _answered(report, ReportKind.HEARTBEAT, verdict)


def complete(state: PartitionState, report: CompleteRun, now_us: int) -> Iterator[Step]:
    """End an attempt by its worker's word; what was read first is the result."""
    found = _leased(state, report)
    if found is None:
        job = state.jobs.get(job_of(report.run_id))
        if job is not None and report.token in job.ended:
            yield _answered(report, ReportKind.COMPLETE, Verdict.ACCEPTED)
        else:
            yield from _reject(state, report, ReportKind.COMPLETE)
        return
    job, run = found
    yield _answered(report, ReportKind.COMPLETE, Verdict.ACCEPTED)
    if report.result is RunResult.SUCCEEDED:
        yield RunSucceeded(
            job_id=job.job_id,
            run_id=run.run_id,
            attempt=run.attempt,
            round=run.round,
            token=report.token,
            exit_code=report.exit_code,
            output=report.output[:OUTPUT_BYTES_MAX],
            warning=report.warning[:ERROR_CHARS_MAX],
        )
        yield from decide_slots.proceed(state, job, now_us)
        return
    yield from _ended_badly(state, job, run, report, now_us)


_OUTCOMES: Mapping[RunResult, AttemptOutcome] = {
    RunResult.FAILED: AttemptOutcome.FAILED,
    RunResult.TIMED_OUT: AttemptOutcome.TIMED_OUT,
    RunResult.CANCELLED: AttemptOutcome.CANCELLED,
    # A result this version does not know is no success.
    RunResult.UNSPECIFIED: AttemptOutcome.FAILED,
}


def _ended_badly(
    state: PartitionState, job: Job, run: Run, report: CompleteRun, now_us: int
) -> Iterator[Step]:
    outcome = _OUTCOMES[report.result]
    if outcome is AttemptOutcome.CANCELLED and not run.cancel_asked:
        # Nobody asked for it: the program stopped itself, which is a failure like another.
        outcome = AttemptOutcome.FAILED
    yield from _end(
        state,
        job,
        run,
        AttemptEnded(
            job_id=job.job_id,
            run_id=run.run_id,
            attempt=run.attempt,
            round=run.round,
            token=report.token,
            outcome=outcome,
            error=report.error[:ERROR_CHARS_MAX],
            exit_code=report.exit_code,
            output=report.output[:OUTPUT_BYTES_MAX],
            retry_at_us=_retry_at(job, run, outcome, now_us, retryable=report.retryable),
        ),
        now_us,
        NO_ATTEMPT_LEFT if report.retryable else NOT_RETRYABLE,
    )


def release(state: PartitionState, report: ReleaseRun, now_us: int) -> Iterator[Step]:
    """Take a run back unexecuted, at no cost."""
    found = _leased(state, report)
    if found is None:
        job = state.jobs.get(job_of(report.run_id))
        if job is not None and report.token in job.ended:
            yield _answered(report, ReportKind.RELEASE, Verdict.ACCEPTED)
        else:
            yield from _reject(state, report, ReportKind.RELEASE)
        return
    job, run = found
    yield _answered(report, ReportKind.RELEASE, Verdict.ACCEPTED)
    ended = AttemptEnded(
        job_id=job.job_id,
        run_id=run.run_id,
        attempt=run.attempt,
        round=run.round,
        token=report.token,
        outcome=AttemptOutcome.RELEASED,
        error="",
        exit_code=None,
        retry_at_us=None if _must_end(job, run) else now_us,
    )
    yield from _end(state, job, run, ended, now_us, NO_ATTEMPT_LEFT)


def check_leases(state: PartitionState, soft: Soft, now_us: int) -> Iterator[Step]:
    """End the leases that lease time has passed, and attempts past their time-out.

    Cost: one pass over the live leases a second.
    """
    for run_id, beat in list(soft.beats.items()):
        job = state.jobs.get(job_of(run_id))
        run = None if job is None else job.runs.get(run_id)
        if job is None or run is None or run.lease is None:
            continue
        outcome = _overdue(job, run, beat, soft.lease_time_us)
        if outcome is None:
            continue
        # Best effort: a worker that still lives also learns it from its next heartbeat.
        yield StopRun(
            run_id=run_id,
            token=run.lease.token,
            claim_id=run.lease.claim_id,
            inbox=beat.inbox,
            reason=StopReason.LEASE_LOST,
        )
        ended = AttemptEnded(
            job_id=job.job_id,
            run_id=run_id,
            attempt=run.attempt,
            round=run.round,
            token=run.lease.token,
            outcome=outcome,
            error=LOST if outcome is AttemptOutcome.LOST else OVERDUE,
            exit_code=None,
            retry_at_us=_retry_at(job, run, outcome, now_us, retryable=True),
        )
        yield from _end(state, job, run, ended, now_us, NO_ATTEMPT_LEFT)


def _overdue(job: Job, run: Run, beat: Beat, lease_time_us: int) -> AttemptOutcome | None:
    assert run.lease is not None
    if lease_time_us > beat.at_us + run.lease.term_us:
        return AttemptOutcome.LOST
    definition = job.definition_of(run)
    longest_us = definition.timeout_us + definition.kill_grace_us + TIMEOUT_SLACK_US
    if lease_time_us > run.lease.granted_us + longest_us:
        return AttemptOutcome.TIMED_OUT
    return None


def _end(
    state: PartitionState,
    job: Job,
    run: Run,
    ended: AttemptEnded,
    now_us: int,
    reason: str,
) -> Iterator[Step]:
    """End an attempt without success, and the run if nothing more is allowed."""
    cancelled, cancel_reason = run.cancel_asked, run.cancel_reason
    yield ended
    if ended.retry_at_us is None:
        if cancelled or not job.exists:
            yield RunCancelled(
                job_id=job.job_id,
                run_id=run.run_id,
                reason=cancel_reason if cancelled else DELETED,
            )
        else:
            yield RunDeadLettered(
                job_id=job.job_id, run_id=run.run_id, round=run.round, reason=reason
            )
    yield from decide_slots.proceed(state, job, now_us)


def _must_end(job: Job, run: Run) -> bool:
    return run.cancel_asked or not job.exists


def _retry_at(
    job: Job, run: Run, outcome: AttemptOutcome, now_us: int, *, retryable: bool
) -> int | None:
    """When the next attempt may start; None: there is none.

    Lost leases have a budget of their own and no back-off: the worker failed, not the target.
    """
    if _must_end(job, run) or not retryable:
        return None
    policy = job.definition_of(run).retry
    if outcome is AttemptOutcome.LOST:
        return now_us if run.losses < policy.lost_max else None
    if outcome is AttemptOutcome.TIMED_OUT and not policy.on_timeout:
        return None
    if run.failures >= policy.max:
        return None
    return now_us + backoff_us(policy.backoff_us, policy.max_backoff_us, run.failures + 1)


def backoff_us(first_us: int, longest_us: int, retry: int) -> int:
    """Delay before the `retry`-th retry (from 1): min(first * 2^(retry-1), longest).

    The exponent is clamped before the power is taken, so no retry count is too high.
    """
    doublings = min(retry - 1, 62)
    return min(first_us << doublings, longest_us)


def _leased(
    state: PartitionState, report: Heartbeat | CompleteRun | ReleaseRun
) -> tuple[Job, Run] | None:
    """Job and run of a report whose token and claim are those of the live lease."""
    job = state.jobs.get(job_of(report.run_id))
    run = None if job is None else job.runs.get(report.run_id)
    if job is None or run is None or run.lease is None:
        return None
    if run.lease.token != report.token or run.lease.claim_id != report.claim_id:
        return None
    return job, run


def _reject(
    state: PartitionState, report: Heartbeat | CompleteRun | ReleaseRun, kind: ReportKind
) -> Iterator[Step]:
    yield _answered(report, kind, Verdict.STALE)
    job = state.jobs.get(job_of(report.run_id))
    if job is not None and report.token not in job.rejected:
        yield ReportRejected(
            job_id=job.job_id,
            run_id=report.run_id,
            kind=kind,
            token=report.token,
            claim_id=report.claim_id,
        )


def _answered(
    report: Heartbeat | CompleteRun | ReleaseRun, kind: ReportKind, verdict: Verdict
) -> ReportAnswered:
    return ReportAnswered(
        run_id=report.run_id,
        token=report.token,
        claim_id=report.claim_id,
        inbox=report.inbox,
        kind=kind,
        verdict=verdict,
    )
