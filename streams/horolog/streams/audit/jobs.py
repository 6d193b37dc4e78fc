"""Handlers of the events of jobs."""

from horolog.schemas.ids import partition_of
from horolog.schemas.records import (
    JobCreated,
    JobDeleted,
    JobForgotten,
    JobPaused,
    JobRefused,
    JobRequested,
    JobResumed,
    JobUpdated,
    Schedule,
)
from horolog.streams.audit import rules
from horolog.streams.audit.accounts import SlotAccount
from horolog.streams.audit.closing import close_job
from horolog.streams.audit.slots import keep_backfillable
from horolog.streams.audit.state import Book, Job, JobStatus, Policies, Status
from horolog.streams.calendar import check

_Change = JobUpdated | JobPaused | JobResumed | JobDeleted


def requested(book: Book, event: JobRequested) -> None:
    """A job is asked for, for the first time or after it was deleted."""
    job = book.jobs.get(event.job_id)
    if job is None:
        if partition_of(event.job_id, book.partitions) != book.partition:
            book.broken(rules.MISPLACED, event, "its ID names another partition")
        job = book.jobs[event.job_id] = Job(
            job_id=event.job_id,
            status=JobStatus.REQUESTED,
            account=SlotAccount(event.job_id),
        )
    elif job.status is not JobStatus.DELETED:
        book.broken(rules.JOB_LIFE, event, f"the job is {job.status.value}")
        return
    job.status = JobStatus.REQUESTED
    job.asked_us = event.at_us


def refused(book: Book, event: JobRefused) -> None:
    """A job that was asked for is not admitted: it is what it was before."""
    job = _asked_for(book, event)
    if job is None:
        return
    if job.deleted_us is None:
        del book.jobs[job.job_id]
    else:
        job.status = JobStatus.DELETED


def created(book: Book, event: JobCreated) -> None:
    """A job exists; its slots count from the asking on."""
    job = _asked_for(book, event)
    if job is None:
        return
    _check_version(book, job, event)
    if event.accounted_to_us > job.asked_us:
        lost_us = event.accounted_to_us - job.asked_us
        book.broken(rules.ACCOUNTED_TO, event, f"{lost_us} us after the job was asked for")
    keep_backfillable(job, job.accounted_us, event.accounted_to_us)
    job.account.settle(max(event.accounted_to_us, job.accounted_us), book.zones)
    job.status = JobStatus.ACTIVE
    job.accounted_us = event.accounted_to_us
    _take(book, job, event, event.accounted_to_us)
    # Attempts may go on through a deletion, and be retried in the job's next life.
    _exempt(job)
    book.jobs_count += 1


def _asked_for(book: Book, event: JobCreated | JobRefused) -> Job | None:
    job = book.jobs.get(event.job_id)
    if job is None or job.status is not JobStatus.REQUESTED:
        status = "unknown" if job is None else job.status.value
        book.broken(rules.JOB_LIFE, event, f"the job was not asked for, it is {status}")
        return None
    return job


def updated(book: Book, event: JobUpdated) -> None:
    """A job has a new definition, for the slots after `accounted_to_us`."""
    job = _changed(book, event)
    if job is None:
        return
    _check_version(book, job, event)
    forbade = job.forbids_overlap
    before = None if job.policies is None else job.policies.schedule
    if event.reschedules:
        _check_left(book, job, event, "the new schedule")
        job.account.settle(event.accounted_to_us, book.zones)
        _take(book, job, event, event.accounted_to_us)
    else:
        if event.definition.schedule != before:
            book.broken(rules.SCHEDULE_MOVED, event, "the schedule is another one")
        job.account.go_on(event.accounted_to_us, book.zones)
        job.policies = Policies.of(event.definition)
    if not forbade:
        _exempt(job)


def _exempt(job: Job) -> None:
    """What was let through before overlap was forbidden may go on."""
    if job.forbids_overlap:
        for run in job.runs.values():
            let_through = run.status is Status.QUEUED and not run.must_queue
            run.exempt = let_through or run.status is Status.RUNNING


def paused(book: Book, event: JobPaused) -> None:
    """A job is paused: slots after `accounted_to_us` are skipped."""
    job = _changed(book, event)
    if job is not None:
        _check_left(book, job, event, "the pause", every=True)
        job.account.settle(event.accounted_to_us, book.zones)
        job.status = JobStatus.PAUSED


def resumed(book: Book, event: JobResumed) -> None:
    """A paused job is planned again: slots after `accounted_to_us` count as usual."""
    job = _changed(book, event)
    if job is None:
        return
    if job.status is not JobStatus.PAUSED:
        book.broken(rules.JOB_LIFE, event, "the job is not paused")
    job.account.settle(event.accounted_to_us, book.zones)
    job.status = JobStatus.ACTIVE


def deleted(book: Book, event: JobDeleted) -> None:
    """A job has no slots after `accounted_to_us`; only attempts that run may go on."""
    job = _changed(book, event)
    if job is None:
        return
    _check_left(book, job, event, "the deletion", every=True)
    for run in job.runs.values():
        if run.status is not Status.RUNNING and not run.is_unstarted_slot:
            book.broken(rules.LEFT_OPEN, event, f"{run.run_id} is {run.status.value} still")
    job.account.settle(event.accounted_to_us, book.zones)
    job.account.change(None, event.accounted_to_us)
    job.status = JobStatus.DELETED
    job.policies = None
    job.deleted_us = event.at_us


def forgotten(book: Book, event: JobForgotten) -> None:
    """The stub of a deleted job is gone."""
    job = book.jobs.get(event.job_id)
    if job is None or job.status is not JobStatus.DELETED or job.runs:
        book.broken(rules.JOB_LIFE, event, "the job is no stub without open runs")
    if job is not None:
        close_job(book, job, event.at_us)
        del book.jobs[job.job_id]


def _changed(book: Book, event: _Change) -> Job | None:
    """The job of a change, its accounted instant checked and moved."""
    job = book.jobs.get(event.job_id)
    if job is None or not job.exists:
        status = "unknown" if job is None else job.status.value
        book.broken(rules.JOB_LIFE, event, f"the job is {status}")
        return None
    accounted_us = event.accounted_to_us
    lowest_us = max(job.accounted_us, job.decided_us)
    if accounted_us < lowest_us:
        book.broken(rules.ACCOUNTED_TO, event, f"back to {accounted_us} from {lowest_us}")
    # A run that is cancelled before its slot has decided a slot that is still to come.
    if accounted_us > max(event.at_us, job.ahead_us):
        book.broken(rules.ACCOUNTED_TO, event, f"{accounted_us}, which is still to come")
    job.accounted_us = max(job.accounted_us, accounted_us)
    book.edited.add(job.job_id)
    return job


def _check_version(book: Book, job: Job, event: JobCreated | JobUpdated) -> None:
    if event.version != job.version + 1:
        book.broken(rules.JOB_VERSION, event, f"version {event.version} after {job.version}")
    job.version = event.version


def _check_left(book: Book, job: Job, event: _Change, change: str, *, every: bool = False) -> None:
    """What a change has to end first: runs of slots to come (or every one that has not started),
    and cursors.
    """
    for run in job.runs.values():
        if run.is_unstarted_slot and run.slot_us is not None:
            to_come = run.counts and run.slot_us > event.accounted_to_us
            if every or to_come:
                book.broken(rules.LEFT_OPEN, event, f"{run.run_id} stays over {change}")
    if job.cursors:
        book.broken(rules.LEFT_OPEN, event, f"{len(job.cursors)} cursors stay over {change}")


def _take(book: Book, job: Job, event: JobCreated | JobUpdated, since_us: int) -> None:
    """Go by a new definition."""
    job.policies = Policies.of(event.definition)
    job.account.change(_usable(book, event), since_us)


def _usable(book: Book, event: JobCreated | JobUpdated) -> Schedule | None:
    """The schedule, if its slots can be counted; None, and a finding, if they cannot."""
    schedule = event.definition.schedule
    if schedule.timezone not in book.zones:
        book.broken(rules.ZONE_RULES, event, f"no rules of {schedule.timezone} are recorded")
        return None
    # At no time: what is in the past by now was not when it was asked for, and the shortest
    # interval, which a jitter may not pass, depends on the time it is looked at.
    faults = check(schedule, event.job_id, 0, book.zones)
    grave = [fault for fault in faults if fault.field != "jitter_us"]
    if grave:
        book.broken(
            rules.SCHEDULE_UNREADABLE,
            event,
            f"{grave[0].field} {grave[0].value!r} {grave[0].detail}",
        )
        return None
    return schedule
