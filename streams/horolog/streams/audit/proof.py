"""`audit`: reads a ledger from its first event to its end and proves what must hold."""

import heapq
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from horolog.schemas.errors import Corrupt
from horolog.schemas.records import (
    AttemptEnded,
    CancelRequested,
    CursorEnded,
    CursorStarted,
    DispatcherEpochRecorded,
    EpochStarted,
    Event,
    InputsRead,
    JobCreated,
    JobDeleted,
    JobForgotten,
    JobId,
    JobPaused,
    JobRefused,
    JobRequested,
    JobResumed,
    JobUpdated,
    LogCreated,
    ReportRejected,
    RunAdmitted,
    RunCancelled,
    RunDeadLettered,
    RunDiscarded,
    RunPlanned,
    RunQueued,
    RunRedriven,
    RunRefused,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
    SlotsSkipped,
    TzdataChanged,
)
from horolog.streams.audit import jobs, leases, lives, partitions, rules, slots
from horolog.streams.audit.closing import close_book
from horolog.streams.audit.report import Findings, Report, Violation
from horolog.streams.audit.state import Book
from horolog.streams.log import Batch
from horolog.streams.log.check import SequenceCheck

# By type and not by `match`: an audit reads a million events. Each handler takes its own event
# type, which a dict cannot say; a test holds that none is missing.
HANDLERS: Mapping[type[Event], Callable[[Book, Any], None]] = {
    LogCreated: partitions.log_created,
    EpochStarted: partitions.epoch_started,
    InputsRead: partitions.inputs_read,
    DispatcherEpochRecorded: partitions.dispatcher_epoch,
    TzdataChanged: partitions.zones_changed,
    JobRequested: jobs.requested,
    JobRefused: jobs.refused,
    JobCreated: jobs.created,
    JobUpdated: jobs.updated,
    JobPaused: jobs.paused,
    JobResumed: jobs.resumed,
    JobDeleted: jobs.deleted,
    JobForgotten: jobs.forgotten,
    RunPlanned: slots.planned,
    RunRevoked: slots.revoked,
    RunSkipped: slots.skipped,
    SlotsSkipped: slots.range_skipped,
    CursorStarted: slots.cursor_started,
    CursorEnded: slots.cursor_ended,
    RunRequested: lives.requested,
    RunAdmitted: lives.admitted,
    RunRefused: lives.refused,
    RunQueued: lives.queued,
    RunCancelled: lives.cancelled,
    RunDeadLettered: lives.dead_lettered,
    RunRedriven: lives.redriven,
    RunDiscarded: lives.discarded,
    RunStarted: leases.started,
    RunSucceeded: leases.succeeded,
    AttemptEnded: leases.attempt_ended,
    CancelRequested: leases.cancel_requested,
    ReportRejected: leases.rejected,
}


class Ledger(Protocol):
    """What an audit needs of a log."""

    @property
    def partitions(self) -> int:
        """Number of ledger partitions."""
        ...

    @property
    def log_id(self) -> str:
        """Name of the log."""
        ...

    def last_seq(self, partition: int) -> int:
        """`seq` of the last event; of one instant over all partitions."""
        ...

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """Batches after an event, in order; raises Corrupt."""
        ...


def audit(
    log: Ledger,
    *,
    job: JobId | None = None,
    from_us: int | None = None,
    to_us: int | None = None,
) -> Report:
    """Prove a ledger, or say where it fails. The log may be written meanwhile: it is read up to
    where it ended at the call.

    `job`: of that job only. `from_us`, inclusive, and `to_us`, exclusive: slots and events of that
    time only; the rest is read all the same.

    Cost: about 15 us an event; memory by what is open, not by the log.
    """
    findings = Findings(from_us, to_us)
    books = [
        Book(partition, findings, log_id=log.log_id, partitions=log.partitions)
        for partition in range(log.partitions)
    ]
    ends = [log.last_seq(partition) for partition in range(log.partitions)]
    # Cost: in order of time over all partitions, since the calendar remembers its latest answers.
    for batch in heapq.merge(
        *(_batches(log, book, end_seq) for book, end_seq in zip(books, ends, strict=True)),
        key=lambda batch: batch.events[0].at_us,
    ):
        _apply(books[batch.partition], batch.events, job)
    last_us = max((book.at_us for book in books), default=0)
    for book in books:
        # A partition that could be read in part only proves nothing beyond that part.
        partitions.settle_epoch(book, book.at_us if book.damaged else last_us)
        close_book(book, book.proven_to_us)
    return _report(log, books, findings)


def _batches(log: Ledger, book: Book, end_seq: int) -> Iterator[Batch]:
    """The batches of a partition up to a seq, as far as it can be read; a finding if that is not
    to its end.
    """
    check = SequenceCheck(book.partition)
    try:
        for batch in log.read(book.partition, 0):
            if batch.first_seq > end_seq:
                break
            if check.next(batch.events):
                yield batch
    except Corrupt as fault:
        book.damaged = True
        book.findings.violation(
            Violation(
                partition=book.partition,
                seq=book.seq,
                at_us=book.at_us,
                rule=rules.LOG_SEQUENCE.name,
                job_id=None,
                run_id=None,
                detail=f"{fault.detail}; what follows is not read",
            )
        )


def _apply(book: Book, events: tuple[Event, ...], job: JobId | None) -> None:
    partitions.begin_batch(book, events[0])
    for event in events:
        if job is None or getattr(event, "job_id", job) == job:
            HANDLERS[type(event)](book, event)
        book.seq, book.at_us = event.seq, event.at_us
    book.events_count += len(events)


def _report(log: Ledger, books: list[Book], findings: Findings) -> Report:
    decided = findings.outcomes.total()
    return Report(
        log_id=log.log_id,
        partitions_count=log.partitions,
        events_count=sum(book.events_count for book in books),
        jobs_count=sum(book.jobs_count for book in books),
        starts_count=sum(book.starts_count for book in books),
        slots_count=decided + findings.waiting_count + findings.unexplained_count,
        outcomes=dict(sorted(findings.outcomes.items())),
        waiting_count=findings.waiting_count,
        proven_to_us=min((book.proven_to_us for book in books), default=0),
        unexplained_count=findings.unexplained_count,
        doubled_count=findings.doubled_count,
        violations_count=findings.violations_count,
        unexplained=tuple(findings.unexplained),
        doubled=tuple(findings.doubled),
        violations=tuple(findings.violations),
    )
