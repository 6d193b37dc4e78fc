"""Handlers of the events that move a run, but for its leases; and the lives that are allowed."""

from collections.abc import Mapping
from typing import Final

from horolog.schemas.ids import run_id_of_key
from horolog.schemas.records import (
    AttemptEnded,
    CancelRequested,
    Event,
    RunAdmitted,
    RunCancelled,
    RunDeadLettered,
    RunDiscarded,
    RunOrigin,
    RunQueued,
    RunRedriven,
    RunRefused,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
)
from horolog.streams.audit import rules
from horolog.streams.audit.state import Book, Job, Run, Status
from horolog.streams.limits import KEYS_KEPT_US, OPEN_RUNS_MAX

RunEvent = (
    AttemptEnded
    | CancelRequested
    | RunAdmitted
    | RunCancelled
    | RunDeadLettered
    | RunDiscarded
    | RunQueued
    | RunRedriven
    | RunRefused
    | RunRevoked
    | RunSkipped
    | RunStarted
    | RunSucceeded
)

_WAITS: Final = frozenset({Status.PLANNED, Status.QUEUED})
_RUNS: Final = frozenset({Status.RUNNING})
_DEAD: Final = frozenset({Status.DEAD})

ALLOWED: Final[Mapping[type[RunEvent], frozenset[Status]]] = {
    RunAdmitted: frozenset({Status.PENDING}),
    RunRefused: frozenset({Status.PENDING}),
    RunQueued: _WAITS,
    RunRevoked: frozenset({Status.PLANNED}),
    RunSkipped: _WAITS,
    RunStarted: _WAITS | {Status.PENDING},
    RunSucceeded: _RUNS,
    AttemptEnded: _RUNS,
    CancelRequested: _RUNS,
    RunCancelled: _WAITS | {Status.PENDING},
    RunDeadLettered: frozenset({Status.QUEUED}),
    RunRedriven: _DEAD,
    RunDiscarded: _DEAD,
}
"""The states in which an event may find its run."""


def job_of_event(book: Book, event: RunEvent | RunRequested) -> Job | None:
    """The job of a run's event; None, and a finding, if there is no such job."""
    job = book.jobs.get(event.job_id)
    if job is None:
        book.broken(rules.JOB_LIFE, event, "there is no such job")
    return job


def run_of_event(book: Book, event: RunEvent) -> tuple[Job, Run] | None:
    """Job and run that an event is about. None, and a finding, if the run is not open; a finding
    too if the event may not follow.
    """
    job = job_of_event(book, event)
    if job is None:
        return None
    run = job.runs.get(event.run_id)
    if run is None:
        book.broken(rules.RUN_NOT_OPEN, event, f"{type(event).__name__} of a run that is not open")
        return None
    check_move(book, run, event)
    return job, run


def check_move(book: Book, run: Run, event: RunEvent) -> None:
    """Whether an event may follow in the state of its run."""
    if run.status not in ALLOWED[type(event)]:
        book.broken(
            rules.RUN_LIFE, event, f"{type(event).__name__} of a run that is {run.status.value}"
        )
    if run.ending and not isinstance(event, RunDeadLettered | RunCancelled):
        book.broken(
            rules.RUN_LIFE, event, f"{type(event).__name__} after an attempt that was the last"
        )


def requested(book: Book, event: RunRequested) -> None:
    """A manual run is asked for."""
    job = job_of_event(book, event)
    if job is None:
        return
    if not job.exists:
        book.broken(rules.JOB_LIFE, event, f"the job is {job.status.value}")
    if event.run_id != run_id_of_key(event.job_id, event.key):
        book.broken(rules.RUN_ID, event, f"not made of the job and the key {event.key!r}")
    _check_key(book, job, event)
    check_room(book, job, event)
    job.keys.pop(event.key, None)
    job.keys[event.key] = event.at_us
    job.runs[event.run_id] = Run(
        run_id=event.run_id,
        status=Status.PENDING,
        origin=RunOrigin.MANUAL,
        due_us=event.at_us,
        not_before_us=event.at_us,
        slot_us=event.slot_us,
        key=event.key,
    )


def _check_key(book: Book, job: Job, event: RunRequested) -> None:
    """One run a key, within the window or as long as the run is open."""
    while job.keys:
        key, at_us = next(iter(job.keys.items()))
        if at_us + KEYS_KEPT_US > event.at_us:
            break
        del job.keys[key]
    if event.run_id in job.runs:
        book.broken(rules.KEY_TWICE, event, "its run is still open")
    elif event.key in job.keys:
        book.broken(rules.KEY_TWICE, event, f"the key was used at {job.keys[event.key]}")


def check_room(book: Book, job: Job, event: Event) -> None:
    """Whether a job may have one more open run."""
    if len(job.runs) >= OPEN_RUNS_MAX:
        book.broken(rules.OPEN_LIMIT, event, f"{len(job.runs)} runs are open already")


def admitted(book: Book, event: RunAdmitted) -> None:
    """A manual run may wait for a worker."""
    found = run_of_event(book, event)
    if found is not None:
        found[1].status = Status.PLANNED


def refused(book: Book, event: RunRefused) -> None:
    """A manual run is not admitted; its key is free again."""
    found = run_of_event(book, event)
    if found is not None:
        job, run = found
        job.keys.pop(run.key, None)
        book.end(job, run)


def queued(book: Book, event: RunQueued) -> None:
    """The overlap policy lets a run wait for a worker."""
    found = run_of_event(book, event)
    if found is not None:
        run = found[1]
        run.status = Status.QUEUED
        run.must_queue = False


def cancelled(book: Book, event: RunCancelled) -> None:
    """A run has ended by request; a slot's run that never started has had its outcome."""
    found = run_of_event(book, event)
    if found is not None:
        job, run = found
        if not run.started:
            book.run_outcome(job, run, "cancelled", event)
        run.ending = False
        book.end(job, run)


def dead_lettered(book: Book, event: RunDeadLettered) -> None:
    """A run used up its attempts."""
    found = run_of_event(book, event)
    if found is None:
        return
    run = found[1]
    if not run.ending:
        book.broken(rules.RUN_LIFE, event, "RunDeadLettered without an attempt that was the last")
    if event.round != run.round:
        book.broken(rules.ROUND, event, f"round {event.round} of a run in round {run.round}")
    run.ending = False
    run.status = Status.DEAD


def redriven(book: Book, event: RunRedriven) -> None:
    """A dead run starts again, by the definition in force."""
    found = run_of_event(book, event)
    if found is None:
        return
    job, run = found
    if event.round != run.round + 1:
        book.broken(rules.ROUND, event, f"round {event.round} after round {run.round}")
    if not job.exists:
        book.broken(rules.JOB_LIFE, event, f"the job is {job.status.value}")
    run.status = Status.QUEUED
    run.round = event.round
    run.attempt = run.failures = run.losses = run.version = 0
    run.retry = None
    run.not_before_us = event.at_us
    run.exempt = False
    run.must_queue = job.forbids_overlap


def discarded(book: Book, event: RunDiscarded) -> None:
    """A dead run is given up."""
    found = run_of_event(book, event)
    if found is not None:
        book.end(*found)
