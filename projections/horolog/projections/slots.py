"""Projection `slots`: ranges of slots that were skipped together, and ranges being made up.

A slot that had a run of its own is in `runs`: what became of it is the status of that run.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from horolog.projections.known import Known
from horolog.projections.schema import CURSORS, SKIPS
from horolog.projections.tables import Change, Key, Upsert
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

NAME: Final = "slots"
VERSION: Final = 1
TABLES: Final = (SKIPS, CURSORS)
READS: Final[tuple[type[Event], ...]] = (SlotsSkipped, CursorStarted, CursorEnded)

MOVED, RANGE = range(2)


def project(event: Event, known: Known) -> Iterable[Change]:
    """Rows that an event changes."""
    match event:
        case SlotsSkipped():
            return (
                Upsert(
                    SKIPS,
                    (event.job_id, event.to_us, event.after_us),
                    0,
                    event.at_us,
                    (event.slots_count, event.reason.value, event.into),
                    known.expires_us(event),
                ),
            )
        case CursorStarted():
            key: Key = (event.job_id, event.cursor_id)
            values = (event.origin.value, event.after_us, event.to_us)
            return (
                Upsert(CURSORS, key, MOVED, event.at_us, (1,)),
                Upsert(CURSORS, key, RANGE, event.at_us, values),
            )
        case CursorEnded():
            key = (event.job_id, event.cursor_id)
            return (Upsert(CURSORS, key, MOVED, event.at_us, (0,), known.expires_us(event)),)
        case (
            AttemptEnded()
            | CancelRequested()
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
            | RunDeadLettered()
            | RunDiscarded()
            | RunPlanned()
            | RunQueued()
            | RunRedriven()
            | RunRefused()
            | RunRequested()
            | RunRevoked()
            | RunSkipped()
            | RunStarted()
            | RunSucceeded()
            | TzdataChanged()
        ):
            return ()
        case _:
            assert_never(event)
