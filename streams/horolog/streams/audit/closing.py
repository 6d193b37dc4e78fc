"""What is left when a partition has been read to its end, or a job is forgotten."""

from itertools import islice

from horolog.schemas.records import RunOrigin
from horolog.streams.audit import rules
from horolog.streams.audit.accounts import Stretch
from horolog.streams.audit.report import LISTED_MAX, Unexplained, Violation
from horolog.streams.audit.state import Book, Job, JobStatus, Status


def close_book(book: Book, to_us: int) -> None:
    """The end of a partition. `to_us`: slots up to there had to be decided."""
    for job in book.jobs.values():
        close_job(book, job, to_us)
        _count_waiting(book, job)
        _check_stranded(book, job)


def close_job(book: Book, job: Job, to_us: int) -> None:
    """Slots of a job that have no outcome, and slots coalesced into nothing."""
    if job.status is JobStatus.PAUSED:
        # They are skipped by whatever ends the pause.
        to_us = min(to_us, job.account.frontier_us)
    for stretch in job.account.free(to_us, book.zones):
        part = _in_window(book, stretch)
        if part is not None and (count := part.slots_count(job.job_id, book.zones)):
            slots = (
                Unexplained(partition=book.partition, job_id=job.job_id, slot_us=slot_us)
                for slot_us in islice(part.slots(job.job_id, book.zones), LISTED_MAX)
            )
            book.findings.missing(slots, count)
    for run_id, event in job.promised.items():
        book.broken(rules.COALESCED_INTO, event, f"{run_id} was never planned")


def _in_window(book: Book, stretch: Stretch) -> Stretch | None:
    after_us, to_us = book.findings.clip(stretch.after_us, stretch.to_us)
    return stretch._replace(after_us=after_us, to_us=to_us) if after_us < to_us else None


def _count_waiting(book: Book, job: Job) -> None:
    """Slots that are planned and not started, and what a catch-up has still to plan."""
    findings = book.findings
    for run in job.runs.values():
        if run.counts and not run.started and not run.again and run.slot_us is not None:
            findings.waiting_count += findings.holds(run.slot_us)
    for cursor in job.cursors.values():
        part = _in_window(book, cursor.rest)
        if cursor.origin is RunOrigin.CATCH_UP and part is not None:
            findings.waiting_count += part.slots_count(job.job_id, book.zones)


def _check_stranded(book: Book, job: Job) -> None:
    """Runs that wait in a deleted job would wait for ever."""
    if job.status is not JobStatus.DELETED:
        return
    for run in job.runs.values():
        if run.status is not Status.RUNNING:
            book.findings.violation(
                Violation(
                    partition=book.partition,
                    seq=book.seq,
                    at_us=book.at_us,
                    rule=rules.LEFT_OPEN.name,
                    job_id=job.job_id,
                    run_id=run.run_id,
                    detail=f"it is {run.status.value} in a deleted job when the log ends",
                )
            )
