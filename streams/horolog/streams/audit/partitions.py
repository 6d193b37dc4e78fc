"""Handlers of the events of a partition itself: its log, its owners, its batches, zone rules."""

from horolog.schemas.records import (
    DispatcherEpochRecorded,
    EpochStarted,
    Event,
    InputsRead,
    LogCreated,
    TzdataChanged,
)
from horolog.streams.audit import rules
from horolog.streams.audit.state import Book
from horolog.streams.limits import SECOND_US

SETTLED_AFTER_US = 5 * SECOND_US
"""An owner has decided each slot that is due this much later, if it is in force that long."""


def begin_batch(book: Book, first: Event) -> None:
    """A batch begins."""
    # Invariant: the first event's time is `now`, or one more than the event before if `now` is not
    # later; so `now` was no less than this for any event of the batch.
    book.batch_from_us = first.at_us - 1
    if book.seq == 0:
        book.epoch_since_us = first.at_us
        if not isinstance(first, LogCreated):
            book.broken(rules.LOG_IDENTITY, first, f"the log begins with {type(first).__name__}")


def log_created(book: Book, event: LogCreated) -> None:
    """The log says which one it is; again when a copy goes on as another generation."""
    named = (event.partition, event.partitions)
    if named != (book.partition, book.partitions):
        book.broken(
            rules.LOG_IDENTITY,
            event,
            f"partition {named[0]} of {named[1]}, read as {book.partition} of {book.partitions}",
        )
    if event.log_id != book.log_id:
        book.broken(rules.LOG_IDENTITY, event, f"of log {event.log_id}, read as {book.log_id}")
    if event.generation <= book.generation:
        book.broken(
            rules.LOG_IDENTITY, event, f"generation {event.generation} after {book.generation}"
        )
    book.generation = event.generation


def epoch_started(book: Book, event: EpochStarted) -> None:
    """A new owner: the one before had to decide what was due while it was in force."""
    if event.writer_epoch <= book.epoch:
        book.broken(rules.EPOCH, event, f"epoch {event.writer_epoch} after {book.epoch}")
    if event.last_good_seq != event.batch - 1:
        book.broken(
            rules.EPOCH, event, f"it had read up to {event.last_good_seq} of {event.batch - 1}"
        )
    settle_epoch(book, book.at_us)
    book.epoch = event.writer_epoch
    book.epoch_since_us = event.at_us


def settle_epoch(book: Book, last_us: int) -> None:
    """The epoch in force was last seen at this instant."""
    if last_us - book.epoch_since_us >= SETTLED_AFTER_US:
        book.proven_to_us = max(book.proven_to_us, last_us - SETTLED_AFTER_US)


def dispatcher_epoch(book: Book, event: DispatcherEpochRecorded) -> None:
    """Claims of an older epoch no longer count."""
    known = book.dispatcher_epochs.get(event.dispatcher, 0)
    if event.epoch <= known:
        book.broken(rules.DISPATCHER_EPOCH, event, f"epoch {event.epoch} after {known}")
    book.dispatcher_epochs[event.dispatcher] = max(known, event.epoch)


def zones_changed(book: Book, event: TzdataChanged) -> None:
    """Zone rules: the first ones of a zone hold since ever, later ones from a time to come."""
    for each in event.zones:
        known = book.zone_rules.setdefault(each.zone, [])
        if known and each.effective_us <= event.at_us:
            book.broken(
                rules.ZONE_RULES,
                event,
                f"rules of {each.zone} in force from {each.effective_us}, which has passed",
            )
        known.append((each.effective_us, each.rules))
        try:
            book.zones = book.zones.load(each.zone, sorted(known, key=_by_time))
        except ValueError as error:
            known.pop()
            book.broken(rules.ZONE_RULES, event, f"{each.zone}: {error}")


def _by_time(rules_from: tuple[int, bytes]) -> int:
    return rules_from[0]


def inputs_read(book: Book, event: InputsRead) -> None:
    """A batch ends: what had to be in it, is in it."""
    if event.writer_epoch != book.epoch:
        book.broken(rules.EPOCH, event, f"epoch {event.writer_epoch} where {book.epoch} began")
    if event.lease_time_us < book.lease_time_us:
        book.broken(
            rules.LEASE_TIME, event, f"back to {event.lease_time_us} from {book.lease_time_us}"
        )
    book.lease_time_us = max(book.lease_time_us, event.lease_time_us)
    for run, ended in book.ending:
        if run.ending:
            run.ending = False
            book.broken(rules.END_MISSING, ended, "no end of the run follows in its batch")
    for lease, lost in book.lost:
        if event.lease_time_us <= lease.granted_us + lease.term_us:
            short_us = lease.granted_us + lease.term_us - event.lease_time_us
            book.broken(rules.LOST_EARLY, lost, f"{short_us} us of lease time before its end")
    for job_id, revoked in book.revoked:
        if job_id not in book.edited:
            book.broken(rules.REVOKED, revoked, "its job is not changed in this batch")
    book.ending.clear()
    book.lost.clear()
    book.revoked.clear()
    book.edited.clear()
