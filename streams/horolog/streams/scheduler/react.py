"""What the outside is to be told after a batch is committed: present states, not changes.

Runs on the owner only, never on replay, and is never needed to rebuild state. Each message can be
derived again, so losing or doubling one is harmless: a new owner passes the last minute of its
ledger through `react` again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from horolog.schemas.ids import tenant_of
from horolog.schemas.records import (
    CancelRequested,
    CursorStarted,
    DispatchStatus,
    Event,
    Grant,
    JobAsk,
    JobCreated,
    JobDeleted,
    JobId,
    JobPaused,
    JobRefused,
    JobRequested,
    JobResumed,
    JobStatus,
    JobUpdated,
    ReportRejected,
    RunAdmitted,
    RunCancelled,
    RunDiscarded,
    RunId,
    RunOrigin,
    RunRedriven,
    RunRefused,
    RunStarted,
    RunState,
    RunStatus,
    StopReason,
    StopRun,
    TenantJobs,
    Tier,
)
from horolog.streams.scheduler import replies
from horolog.streams.scheduler.messages import Message
from horolog.streams.scheduler.state import Job, PartitionState, Run

_WHOLE_JOB = (JobUpdated, JobPaused, JobResumed, JobDeleted)


def react(state: PartitionState, events: Iterable[Event]) -> Iterator[Message]:
    """Messages for the events of a committed batch, by the state after all of it.

    One state for each run touched, however often; grants and stops for workers; answers to
    commands.
    """
    touched: dict[RunId, JobId] = {}
    for event in events:
        run_id = getattr(event, "run_id", None)
        if run_id is not None and type(event) is not ReportRejected:
            touched[run_id] = event.job_id  # type: ignore[union-attr]  # each has both or none
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            yield from handler(state, event)
        if type(event) in _WHOLE_JOB:
            job = state.jobs.get(event.job_id)  # type: ignore[union-attr]  # as above
            if job is not None:
                touched.update((run_id, job.job_id) for run_id in job.runs)
    for run_id, job_id in touched.items():
        yield state_of(state.jobs.get(job_id), run_id)


def state_of(job: Job | None, run_id: RunId) -> RunState:
    """The present state of a run, as its dispatcher is told."""
    run = None if job is None else job.runs.get(run_id)
    if job is None or run is None:
        return RunState(
            run_id=run_id,
            tenant=tenant_of(run_id),
            plan=0,
            attempt=0,
            status=DispatchStatus.CLOSED,
            not_before_us=0,
            due_us=0,
            tier=Tier.NORMAL,
            pool="",
        )
    return RunState(
        run_id=run_id,
        tenant=tenant_of(run_id),
        plan=run.plan,
        attempt=run.attempt,
        status=_dispatch_status(run),
        not_before_us=run.not_before_us,
        due_us=run.due_us,
        tier=run.tier,
        pool=run.pool,
        handler=_handler_of(job, run),
        make_up=run.origin in (RunOrigin.CATCH_UP, RunOrigin.BACKFILL),
    )


def _handler_of(job: Job, run: Run) -> str:
    if job.definition is None and not run.version:
        return ""
    return job.definition_of(run).target.handler or ""


def _dispatch_status(run: Run) -> DispatchStatus:
    if run.status is RunStatus.RUNNING:
        return DispatchStatus.STARTED
    if run.is_waiting:
        return DispatchStatus.WAITING
    if run.status is RunStatus.PENDING:
        return DispatchStatus.PENDING
    return DispatchStatus.CLOSED


def is_open(run: Run) -> bool:
    """Whether a dispatcher is to know of the run: it is in inventories and digests."""
    return _dispatch_status(run) is not DispatchStatus.CLOSED


def grant_of(state: PartitionState, job: Job, run: Run) -> Grant:
    """The grant of a run's live lease, the same each time."""
    lease = run.lease
    assert lease is not None
    definition = job.definition_of(run)
    return Grant(
        run_id=run.run_id,
        job_id=job.job_id,
        partition=state.partition,
        attempt=run.attempt,
        round=run.round,
        token=lease.token,
        claim_id=lease.claim_id,
        inbox=lease.inbox,
        term_us=lease.term_us,
        slot_us=run.slot_us,
        due_us=run.due_us,
        origin=run.origin,
        target=definition.target,
        payload=definition.payload if run.payload is None else run.payload,
        content_type=definition.content_type,
        timeout_us=definition.timeout_us,
        kill_grace_us=definition.kill_grace_us,
    )


def job_ask(job: Job) -> JobAsk:
    """A job that waits for admission, as its dispatcher is told."""
    return JobAsk(tenant=tenant_of(job.job_id), job_id=job.job_id)


def _started(state: PartitionState, event: RunStarted) -> Iterator[Message]:
    job = state.jobs.get(event.job_id)
    run = None if job is None else job.runs.get(event.run_id)
    if job is None or run is None or run.lease is None:
        return
    if run.lease.token == state.token_of(event.seq):
        yield grant_of(state, job, run)
        yield from _admitted(state, event)


def _admitted(state: PartitionState, event: RunAdmitted | RunStarted) -> Iterator[Message]:
    """A manual run that was asked for may wait: whoever asked is told."""
    job = state.jobs.get(event.job_id)
    run = None if job is None else job.runs.get(event.run_id)
    if job is None or run is None or not run.requested_by:
        return
    if isinstance(event, RunStarted) and event.attempt > 1:
        return
    yield replies.of_event(
        state,
        command_id=run.requested_by,
        reply_to=run.reply_to,
        job_id=event.job_id,
        run_id=event.run_id,
        version=job.version,
    )


def _refused(state: PartitionState, event: RunRefused) -> Iterator[Message]:
    if event.command_id:
        yield replies.of_event(
            state,
            command_id=event.command_id,
            reply_to=event.reply_to,
            job_id=event.job_id,
            code=event.code,
            detail=event.detail,
        )


def _cancel(state: PartitionState, event: CancelRequested) -> Iterator[Message]:
    job = state.jobs.get(event.job_id)
    run = None if job is None else job.runs.get(event.run_id)
    if run is not None and run.lease is not None and run.lease.token == event.token:
        yield StopRun(
            run_id=event.run_id,
            token=event.token,
            claim_id=run.lease.claim_id,
            inbox=run.lease.inbox,
            reason=StopReason.CANCELLED,
        )
    yield from _commanded(state, event)


def _job_requested(state: PartitionState, event: JobRequested) -> Iterator[Message]:
    job = state.jobs.get(event.job_id)
    if job is not None and job.status is JobStatus.REQUESTED:
        yield job_ask(job)


def _job_refused(state: PartitionState, event: JobRefused) -> Iterator[Message]:
    if event.command_id:
        yield replies.of_event(
            state,
            command_id=event.command_id,
            reply_to=event.reply_to,
            job_id=event.job_id,
            code=event.code,
            detail=event.detail,
        )


def _counted(state: PartitionState, event: JobCreated | JobDeleted) -> Iterator[Message]:
    tenant = tenant_of(event.job_id)
    yield TenantJobs(tenant=tenant, jobs_count=state.tenant_jobs.get(tenant, 0))
    yield from _commanded(state, event)


_Commanded = (
    JobCreated
    | JobUpdated
    | JobPaused
    | JobResumed
    | JobDeleted
    | CursorStarted
    | CancelRequested
    | RunCancelled
    | RunRedriven
    | RunDiscarded
)


def _commanded(state: PartitionState, event: _Commanded) -> Iterator[Message]:
    if not event.command_id:
        return
    job = state.jobs.get(event.job_id)
    yield replies.of_event(
        state,
        command_id=event.command_id,
        reply_to=event.reply_to,
        job_id=event.job_id,
        run_id=getattr(event, "run_id", None),
        version=0 if job is None else job.version,
    )


# Each handler takes its own event type, which a dict cannot say.
_HANDLERS: Mapping[type[Event], Callable[[PartitionState, Any], Iterator[Message]]] = {
    RunStarted: _started,
    RunAdmitted: _admitted,
    RunRefused: _refused,
    CancelRequested: _cancel,
    JobRequested: _job_requested,
    JobRefused: _job_refused,
    JobCreated: _counted,
    JobDeleted: _counted,
    JobUpdated: _commanded,
    JobPaused: _commanded,
    JobResumed: _commanded,
    CursorStarted: _commanded,
    RunCancelled: _commanded,
    RunRedriven: _commanded,
    RunDiscarded: _commanded,
}
