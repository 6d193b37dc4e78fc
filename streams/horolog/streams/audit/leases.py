"""Handlers of the events of leases: starts, ends of attempts, cancels, rejected reports."""

from horolog.schemas.ids import is_manual, slot_of
from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    CancelRequested,
    ReportRejected,
    RetryPolicy,
    RunOrigin,
    RunStarted,
    RunSucceeded,
)
from horolog.streams.audit import rules
from horolog.streams.audit.accounts import Given
from horolog.streams.audit.lives import check_move, job_of_event, run_of_event
from horolog.streams.audit.state import Book, Job, JobStatus, Lease, Run, Status
from horolog.streams.limits import FENCING_GENERATION


def started(book: Book, event: RunStarted) -> None:
    """A worker holds the lease of an attempt."""
    job = job_of_event(book, event)
    if job is None:
        return
    run = job.runs.get(event.run_id)
    if run is None:
        run = _start_of_closed(book, job, event)
    elif run.status is not Status.RUNNING:
        check_move(book, run, event)
    token = event.generation * FENCING_GENERATION + event.seq
    _check_lease(book, run, event)
    _check_token(book, event, token)
    _check_times(book, job, run, event)
    _check_numbers(book, job, run, event)
    _check_overlap(book, job, run, event)
    if not run.started:
        book.run_outcome(job, run, "run", event)
    if run.lease is None:
        job.running_count += 1
    if run.version == 0:
        run.retry = None if job.policies is None else job.policies.retry
    run.version = event.version
    run.started = True
    run.status = Status.RUNNING
    run.attempt = event.attempt
    run.lease = Lease(
        token=token,
        claim_id=event.claim_id,
        granted_us=event.lease_time_us,
        term_us=event.term_us,
    )
    book.starts_count += 1


def _start_of_closed(book: Book, job: Job, event: RunStarted) -> Run:
    """A run that starts though it is not open. It is taken as open from here on, so that one fault
    is told once.
    """
    book.broken(rules.RUN_NOT_OPEN, event, "RunStarted of a run that is not open")
    slot_us = None if is_manual(event.run_id) else slot_of(event.run_id)
    run = Run(
        run_id=event.run_id,
        status=Status.QUEUED,
        origin=RunOrigin.MANUAL if slot_us is None else RunOrigin.SCHEDULE,
        due_us=slot_us or 0,
        slot_us=slot_us,
        attempt=event.attempt - 1,
        round=event.round,
    )
    if slot_us is not None:
        given = job.account.give(slot_us, book.zones)
        run.counts = given is not Given.NO_SLOT
        run.again = given is Given.DECIDED
    job.runs[run.run_id] = run
    return run


def _check_lease(book: Book, run: Run, event: RunStarted) -> None:
    if run.lease is not None:
        book.broken(rules.TWO_LEASES, event, f"the lease of token {run.lease.token} is live")


def _check_token(book: Book, event: RunStarted, token: int) -> None:
    if event.generation != book.generation:
        book.broken(
            rules.TOKEN_ORDER,
            event,
            f"generation {event.generation} in a log of generation {book.generation}",
        )
    elif token <= book.last_token:
        book.broken(rules.TOKEN_ORDER, event, f"token {token} after {book.last_token}")
    book.last_token = max(book.last_token, token)


def _check_times(book: Book, job: Job, run: Run, event: RunStarted) -> None:
    if job.status is not JobStatus.ACTIVE:
        book.broken(rules.START_WHILE_CLOSED, event, f"the job is {job.status.value}")
    if event.at_us < run.due_us:
        book.broken(rules.START_EARLY, event, f"{run.due_us - event.at_us} us before it was due")
    elif event.at_us < run.not_before_us:
        book.broken(
            rules.RETRY_EARLY, event, f"{run.not_before_us - event.at_us} us before its time"
        )
    deadline_us = None if job.policies is None else job.policies.starting_deadline_us
    if (
        deadline_us is not None
        and run.is_unstarted_slot
        and run.origin is not RunOrigin.BACKFILL
        and book.batch_from_us > run.due_us + deadline_us
    ):
        book.broken(
            rules.START_TOO_LATE,
            event,
            f"{event.at_us - run.due_us} us after it was due, {deadline_us} us are allowed",
        )


def _check_numbers(book: Book, job: Job, run: Run, event: RunStarted) -> None:
    if event.attempt != run.attempt + 1:
        book.broken(
            rules.ATTEMPT_NUMBER, event, f"attempt {event.attempt} after attempt {run.attempt}"
        )
    if event.round != run.round:
        book.broken(rules.ROUND, event, f"round {event.round} of a run in round {run.round}")
    kept = run.version or job.version
    if event.version != kept:
        book.broken(
            rules.VERSION_KEPT, event, f"version {event.version} where it is {kept} that counts"
        )


def _check_overlap(book: Book, job: Job, run: Run, event: RunStarted) -> None:
    if not job.forbids_overlap:
        return
    if run.must_queue or run.status not in (Status.QUEUED, Status.RUNNING):
        book.broken(rules.NOT_LET_THROUGH, event, f"it is {run.status.value} still")
    others = job.running_count - (run.lease is not None)
    if others > 0 and not run.exempt:
        book.broken(rules.OVERLAP, event, f"{others} other attempts of the job are open")


def succeeded(book: Book, event: RunSucceeded) -> None:
    """A run has ended well."""
    found = run_of_event(book, event)
    if found is not None:
        job, run = found
        _check_holder(book, run, event)
        book.end(job, run)


def attempt_ended(book: Book, event: AttemptEnded) -> None:
    """An attempt ended without success: the run waits again, or ends in this batch."""
    found = run_of_event(book, event)
    if found is None:
        return
    job, run = found
    _check_holder(book, run, event)
    if event.outcome is AttemptOutcome.CANCELLED and not run.cancel_asked:
        book.broken(rules.CANCEL_UNASKED, event, "nobody asked for a cancel")
    if event.retry_at_us is None:
        run.ending = True
        book.ending.append((run, event))
    else:
        _check_retry(book, job, run, event, event.retry_at_us)
        run.not_before_us = event.retry_at_us
    _count(book, run, event)
    if run.lease is not None:
        job.running_count -= 1
    run.lease = None
    run.cancel_asked = False
    run.status = Status.QUEUED


def _count(book: Book, run: Run, event: AttemptEnded) -> None:
    match event.outcome:
        case AttemptOutcome.RELEASED:
            run.attempt -= 1
        case AttemptOutcome.LOST:
            run.losses += 1
            if run.lease is not None:
                book.lost.append((run.lease, event))
        case _:
            run.failures += 1


def _check_holder(book: Book, run: Run, event: AttemptEnded | RunSucceeded) -> None:
    """Whether it is the live lease that speaks."""
    live = None if run.lease is None else run.lease.token
    if event.token != live:
        book.broken(rules.DEAD_TOKEN, event, f"token {event.token} where {live} is live")
    if event.attempt != run.attempt:
        book.broken(
            rules.ATTEMPT_NUMBER, event, f"attempt {event.attempt} where {run.attempt} is open"
        )
    if event.round != run.round:
        book.broken(rules.ROUND, event, f"round {event.round} of a run in round {run.round}")


def _check_retry(book: Book, job: Job, run: Run, event: AttemptEnded, retry_at_us: int) -> None:
    if run.cancel_asked or not job.exists:
        why = "its cancel was asked for" if run.cancel_asked else "the job was deleted"
        book.broken(rules.RETRY_AFTER_END, event, f"it shall run again although {why}")
    policy = run.retry
    if policy is None:
        return
    used, allowed = _budget(run, policy, event.outcome)
    if used >= allowed:
        book.broken(
            rules.OVER_BUDGET,
            event,
            f"{event.outcome.value}: {used} of {allowed} retries were used",
        )
    earliest_us = book.batch_from_us + _back_off_us(run, policy, event.outcome)
    if retry_at_us < earliest_us:
        book.broken(rules.BACK_OFF, event, f"{earliest_us - retry_at_us} us too early")


def _budget(run: Run, policy: RetryPolicy, outcome: AttemptOutcome) -> tuple[int, int]:
    """Retries that an outcome has cost before, and those that it may cost."""
    match outcome:
        case AttemptOutcome.RELEASED:
            return 0, 1
        case AttemptOutcome.LOST:
            return run.losses, policy.lost_max
        case AttemptOutcome.TIMED_OUT:
            return run.failures, policy.max if policy.on_timeout else 0
        case _:
            return run.failures, policy.max


def _back_off_us(run: Run, policy: RetryPolicy, outcome: AttemptOutcome) -> int:
    if outcome in (AttemptOutcome.RELEASED, AttemptOutcome.LOST):
        return 0
    # As a sum of doublings and not as a power: the policy's own words, and no overflow to fear.
    delay_us = policy.backoff_us
    for _ in range(run.failures):
        if delay_us >= policy.max_backoff_us:
            break
        delay_us *= 2
    return min(delay_us, policy.max_backoff_us)


def cancel_requested(book: Book, event: CancelRequested) -> None:
    """A running attempt shall stop."""
    found = run_of_event(book, event)
    if found is None:
        return
    run = found[1]
    live = None if run.lease is None else run.lease.token
    if event.token != live:
        book.broken(rules.DEAD_TOKEN, event, f"token {event.token} where {live} is live")
    run.cancel_asked = True


def rejected(book: Book, event: ReportRejected) -> None:
    """A report with a dead or wrong token changed nothing; it was not that of the live lease."""
    job = book.jobs.get(event.job_id)
    run = None if job is None else job.runs.get(event.run_id)
    lease = None if run is None else run.lease
    if lease is not None and (lease.token, lease.claim_id) == (event.token, event.claim_id):
        book.broken(rules.LIVE_REJECTED, event, f"the lease of token {lease.token} is live")
