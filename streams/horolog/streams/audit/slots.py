"""Handlers of the events that decide slots: plans, skips, ranges, cursors."""

from horolog.schemas.ids import job_of, run_id_of_slot, slot_of
from horolog.schemas.records import (
    CatchUp,
    CursorEnded,
    CursorStarted,
    Overlap,
    RunId,
    RunOrigin,
    RunPlanned,
    RunRevoked,
    RunSkipped,
    SkipReason,
    SlotsSkipped,
)
from horolog.streams.audit import rules
from horolog.streams.audit.accounts import Given, Stretch, is_slot
from horolog.streams.audit.lives import check_room, run_of_event
from horolog.streams.audit.state import Book, Cursor, Job, JobStatus, Run, Status
from horolog.streams.calendar import jitter_of, next_slot
from horolog.streams.limits import LOOKAHEAD_US, MISSED_AFTER_US

BACKFILLABLE_MAX = 1_000
"""Ranges remembered of a job; the scheduler offers the newest 100 for a backfill."""
DOUBLED_LISTED_MAX = 1_000
_MADE_UP = frozenset({RunOrigin.CATCH_UP, RunOrigin.BACKFILL})


def _job(book: Book, event: RunPlanned | SlotsSkipped | CursorStarted | CursorEnded) -> Job | None:
    job = book.jobs.get(event.job_id)
    if job is None or job.policies is None:
        book.broken(rules.JOB_LIFE, event, "there is no such job")
        return None
    return job


# --- plans


def planned(book: Book, event: RunPlanned) -> None:
    """A slot has a run."""
    job = _job(book, event)
    if job is None:
        return
    if job.status is not JobStatus.ACTIVE:
        book.broken(rules.PLANNED_WHILE_CLOSED, event, f"the job is {job.status.value}")
    if event.run_id != run_id_of_slot(event.job_id, event.slot_us):
        book.broken(rules.RUN_ID, event, f"not made of the job and the slot {event.slot_us}")
    job.promised.pop(event.run_id, None)
    if event.run_id in job.runs:
        book.broken(rules.PLANNED_AGAIN, event, "its run is open")
        return
    check_room(book, job, event)
    _check_plan_times(book, job, event)
    given = _give(book, job, event)
    if given is Given.NO_SLOT:
        book.broken(rules.NO_SUCH_SLOT, event, f"{event.slot_us} is no slot of the schedule")
    elif given is Given.DECIDED:
        book.broken(rules.PLANNED_AGAIN, event, "its slot has an outcome already")
    job.runs[event.run_id] = Run(
        run_id=event.run_id,
        status=Status.PLANNED,
        origin=event.origin,
        due_us=event.due_us,
        not_before_us=event.due_us,
        slot_us=event.slot_us,
        counts=event.origin is not RunOrigin.BACKFILL and given is not Given.NO_SLOT,
        again=given is Given.DECIDED,
    )


def _check_plan_times(book: Book, job: Job, event: RunPlanned) -> None:
    assert job.policies is not None, "the caller has seen to it"
    due_us = event.slot_us + jitter_of(event.job_id, job.policies.schedule.jitter_us)
    if event.due_us != due_us:
        book.broken(rules.DUE, event, f"due at {event.due_us} and not at {due_us}")
    if event.slot_us > event.at_us + LOOKAHEAD_US:
        book.broken(rules.PLANNED_EARLY, event, f"{event.slot_us - event.at_us} us before its slot")
    if event.origin not in _MADE_UP and event.due_us < book.batch_from_us - MISSED_AFTER_US:
        book.broken(
            rules.MISSED_AS_FRESH, event, f"{event.at_us - event.due_us} us after it was due"
        )


def _give(book: Book, job: Job, event: RunPlanned) -> Given:
    """Take the slot from where its origin says: a cursor's range, or what is free."""
    if event.origin in _MADE_UP:
        for cursor in job.cursors.values():
            rest = cursor.rest
            if cursor.origin is event.origin and rest.after_us < event.slot_us <= rest.to_us:
                return _give_of_cursor(book, job, cursor, event)
    if event.origin is RunOrigin.BACKFILL:
        book.broken(rules.CURSOR, event, "no open backfill has this slot to come")
        return Given.FRESH
    return job.account.give(event.slot_us, book.zones)


def _give_of_cursor(book: Book, job: Job, cursor: Cursor, event: RunPlanned) -> Given:
    rest = cursor.rest
    expected_us = next_slot(rest.schedule, job.job_id, rest.after_us, book.zones)
    if expected_us != event.slot_us:
        if not is_slot(rest.schedule, job.job_id, event.slot_us, book.zones):
            return Given.NO_SLOT
        book.broken(
            rules.CURSOR, event, f"slot {event.slot_us} where {expected_us} was the next one"
        )
        if cursor.origin is RunOrigin.CATCH_UP:
            job.account.give_back_range(rest._replace(to_us=event.slot_us - 1))
    cursor.rest = rest._replace(after_us=event.slot_us)
    return Given.FRESH


def revoked(book: Book, event: RunRevoked) -> None:
    """A planned run is taken back; its slot is undecided again."""
    found = run_of_event(book, event)
    if found is None:
        return
    job, run = found
    if run.started or run.slot_us is None:
        book.broken(rules.REVOKED, event, "it is no slot's run that has not started")
    if event.slot_us <= book.batch_from_us:
        book.broken(rules.REVOKED, event, "its slot had come")
    book.revoked.append((job.job_id, event))
    book.end(job, run)
    if run.counts and not run.again and run.slot_us is not None:
        job.account.give_back(run.slot_us)


# --- skips


def skipped(book: Book, event: RunSkipped) -> None:
    """A planned run does not start."""
    found = run_of_event(book, event)
    if found is None:
        _skip_of_closed(book, event)
        return
    job, run = found
    if run.started or run.slot_us is None or run.origin is RunOrigin.MANUAL:
        book.broken(rules.RUN_LIFE, event, "RunSkipped of a run that had started, or of no slot")
    elif event.slot_us != run.slot_us:
        book.broken(rules.RUN_ID, event, f"slot {event.slot_us} where {run.slot_us} is its slot")
    _check_reason(book, job, event)
    if (
        event.reason in (SkipReason.CATCH_UP, SkipReason.COALESCED)
        and run.due_us >= event.at_us - MISSED_AFTER_US
    ):
        book.broken(rules.SKIPPED_YOUNG, event, f"{event.at_us - run.due_us} us after it was due")
    _check_into(book, job, event, event.slot_us)
    if run.started and run.counts and run.slot_us is not None:
        book.doubled(job, run.slot_us, event.reason.value, event)
    else:
        book.run_outcome(job, run, event.reason.value, event)
    book.end(job, run)


def _skip_of_closed(book: Book, event: RunSkipped) -> None:
    """A skip of a run that is not open: a second outcome, if its slot has one."""
    job = book.jobs.get(event.job_id)
    if job is None:
        return
    given = job.account.give(event.slot_us, book.zones)
    if given is Given.DECIDED:
        book.doubled(job, event.slot_us, event.reason.value, event)
    elif given is Given.FRESH:
        book.outcome(job, event.slot_us, event.reason.value, event)


def range_skipped(book: Book, event: SlotsSkipped) -> None:
    """Slots that were never planned do not run."""
    job = _job(book, event)
    if job is None:
        return
    if event.to_us > event.at_us:
        book.broken(rules.ACCOUNTED_TO, event, f"up to {event.to_us}, which is still to come")
    _check_reason(book, job, event)
    _check_age(book, job, event)
    _check_into(book, job, event, event.to_us)
    taken = job.account.take(event.after_us, event.to_us, book.zones)
    doubled = 0
    for stretch in taken.decided:
        doubled += _double(book, job, stretch, event)
    count = sum(stretch.slots_count(job.job_id, book.zones) for stretch in taken.fresh)
    if not doubled and count != event.slots_count:
        book.broken(rules.SKIP_COUNT, event, f"{event.slots_count} slots, the schedule has {count}")
    for stretch in taken.fresh:
        low_us, high_us = book.findings.clip(stretch.after_us, stretch.to_us)
        if low_us < high_us:
            part = stretch._replace(after_us=low_us, to_us=high_us)
            book.findings.outcomes[event.reason.value] += part.slots_count(job.job_id, book.zones)
    job.decided_us = max(job.decided_us, event.to_us)
    keep_backfillable(job, event.after_us, event.to_us)


def _double(book: Book, job: Job, stretch: Stretch, event: SlotsSkipped) -> int:
    """Slots of a range that had an outcome, or an open run, before."""
    count = 0
    for slot_us in stretch.slots(job.job_id, book.zones):
        count += 1
        book.doubled(job, slot_us, event.reason.value, event)
        if count >= DOUBLED_LISTED_MAX:
            break
    return count


def _check_reason(book: Book, job: Job, event: RunSkipped | SlotsSkipped) -> None:
    policies = job.policies
    wrong = ""
    match event.reason:
        case SkipReason.OVERLAP:
            if policies is None or policies.overlap is Overlap.ALLOW:
                wrong = "the job may overlap"
        case SkipReason.TOO_LATE:
            if policies is None or policies.starting_deadline_us is None:
                wrong = "the job has no starting deadline"
        case SkipReason.COALESCED:
            range_made_up = isinstance(event, SlotsSkipped)
            if range_made_up and policies is not None and policies.catch_up is CatchUp.SKIP:
                wrong = "catch-up skips, nothing is made up"
        case SkipReason.UNSPECIFIED:
            wrong = "it is no reason"
        case _:
            if job.status is JobStatus.PAUSED and event.reason not in _WHILE_PAUSED:
                wrong = "the job is paused"
    if wrong:
        book.broken(rules.SKIP_REASON, event, f"{event.reason.value}: {wrong}")


_WHILE_PAUSED = frozenset({SkipReason.PAUSED, SkipReason.DELETED})


def _check_age(book: Book, job: Job, event: SlotsSkipped) -> None:
    if event.reason not in (SkipReason.CATCH_UP, SkipReason.COALESCED):
        return
    assert job.policies is not None, "the caller has seen to it"
    due_us = event.to_us + jitter_of(job.job_id, job.policies.schedule.jitter_us)
    if due_us >= event.at_us - MISSED_AFTER_US:
        book.broken(
            rules.SKIPPED_YOUNG, event, f"the range ends {event.at_us - due_us} us before now"
        )


def _check_into(book: Book, job: Job, event: RunSkipped | SlotsSkipped, after_us: int) -> None:
    """What a slot is coalesced into is a later run of the job, open or planned next."""
    into = event.into
    if (event.reason is SkipReason.COALESCED) != (into is not None):
        book.broken(rules.COALESCED_INTO, event, f"{event.reason.value} into {into}")
    if into is None:
        return
    slot_us = slot_of(RunId(into))
    if job_of(RunId(into)) != job.job_id or slot_us is None or slot_us <= after_us:
        book.broken(rules.COALESCED_INTO, event, f"{into} is no later run of the job")
    elif into not in job.runs:
        job.promised[RunId(into)] = event


# --- cursors


def cursor_started(book: Book, event: CursorStarted) -> None:
    """A range of past slots is being made up."""
    job = _job(book, event)
    if job is None:
        return
    if event.cursor_id in job.cursors:
        book.broken(rules.CURSOR, event, f"cursor {event.cursor_id} is open already")
    if event.origin not in _MADE_UP:
        book.broken(rules.CURSOR, event, f"a cursor of origin {event.origin.value}")
    assert job.policies is not None, "the caller has seen to it"
    rest = Stretch(event.after_us, event.to_us, job.policies.schedule)
    job.cursors[event.cursor_id] = Cursor(origin=event.origin, rest=rest)
    if event.origin is RunOrigin.BACKFILL:
        _take_backfillable(book, job, event)
        return
    job.decided_us = max(job.decided_us, event.to_us)
    for stretch in job.account.take(event.after_us, event.to_us, book.zones).decided:
        count = stretch.slots_count(job.job_id, book.zones)
        if count:
            book.broken(rules.PLANNED_AGAIN, event, f"{count} slots of the range are decided")


def _take_backfillable(book: Book, job: Job, event: CursorStarted) -> None:
    """A backfill's range lies within what was skipped, or before the job."""
    kept: list[tuple[int, int]] = []
    covered_us = event.after_us
    for after_us, to_us in job.backfillable:
        if to_us <= event.after_us or event.to_us <= after_us:
            kept.append((after_us, to_us))
            continue
        if after_us <= covered_us:
            covered_us = max(covered_us, to_us)
        if after_us < event.after_us:
            kept.append((after_us, event.after_us))
        if event.to_us < to_us:
            kept.append((event.to_us, to_us))
    job.backfillable = kept
    if covered_us < event.to_us:
        book.broken(rules.BACKFILL, event, f"slots after {covered_us} were not skipped in a range")


def keep_backfillable(job: Job, after_us: int, to_us: int) -> None:
    """A range may be backfilled from now on."""
    if after_us < to_us:
        ranges = sorted([*job.backfillable, (after_us, to_us)])
        job.backfillable = ranges[-BACKFILLABLE_MAX:]


def cursor_ended(book: Book, event: CursorEnded) -> None:
    """A range is done, or given up: what is left of a catch-up is to be skipped then, what is left
    of a backfill was skipped before.
    """
    job = _job(book, event)
    if job is None:
        return
    cursor = job.cursors.pop(event.cursor_id, None)
    if cursor is None:
        book.broken(rules.CURSOR, event, f"cursor {event.cursor_id} is not open")
        return
    if cursor.origin is RunOrigin.BACKFILL and event.reason is not SkipReason.UNSPECIFIED:
        # Even without a slot of this schedule: a later one may have some there.
        keep_backfillable(job, cursor.rest.after_us, cursor.rest.to_us)
    elif cursor.rest.has_slots(job.job_id, book.zones):
        if cursor.origin is RunOrigin.CATCH_UP:
            job.account.give_back_range(cursor.rest)
        else:
            book.broken(rules.CURSOR, event, "the backfill ends before its last slot")
