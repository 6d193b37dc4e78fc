"""Projection `dead_letters`: runs that used up their attempts and wait for a person."""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from horolog.projections.known import Known
from horolog.projections.schema import DEAD_LETTERS
from horolog.projections.tables import Change, Delete, Upsert
from horolog.schemas.ids import tenant_of
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

NAME: Final = "dead_letters"
VERSION: Final = 1
TABLES: Final = (DEAD_LETTERS,)
READS: Final[tuple[type[Event], ...]] = (RunDeadLettered, RunRedriven, RunDiscarded)


def project(event: Event, known: Known) -> Iterable[Change]:
    """Rows that an event changes."""
    match event:
        case RunDeadLettered():
            return _dead(event, known)
        case RunRedriven() | RunDiscarded():
            at_us = known.place(event.run_id)
            if at_us is None:
                return ()
            key = (tenant_of(event.job_id), at_us, event.run_id)
            return (Delete(DEAD_LETTERS, key, event.at_us),)
        case (
            AttemptEnded()
            | CancelRequested()
            | CursorEnded()
            | CursorStarted()
            | DispatcherEpochRecorded()
            | EpochStarted()
            | InputsRead()
            | JobCreated()
            | JobDeleted()
            | JobForgotten()
            | JobPaused()
            | JobRefused()
            | JobRequested()
            | JobResumed()
            | JobUpdated()
            | LogCreated()
            | ReportRejected()
            | RunAdmitted()
            | RunCancelled()
            | RunPlanned()
            | RunQueued()
            | RunRefused()
            | RunRequested()
            | RunRevoked()
            | RunSkipped()
            | RunStarted()
            | RunSucceeded()
            | SlotsSkipped()
            | TzdataChanged()
        ):
            return ()
        case _:
            assert_never(event)


def _dead(event: RunDeadLettered, known: Known) -> Sequence[Change]:
    at_us = known.place(event.run_id)
    if at_us is None:
        return ()
    return (
        Upsert(
            DEAD_LETTERS,
            (tenant_of(event.job_id), at_us, event.run_id),
            0,
            event.at_us,
            (event.job_id, event.round, event.reason),
        ),
    )
