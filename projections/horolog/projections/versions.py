"""Projection `versions`: each definition a job had, by whom and when."""

from collections.abc import Iterable
from typing import Final, assert_never

from horolog.projections.jobs import definition_json
from horolog.projections.known import Known
from horolog.projections.schema import VERSIONS
from horolog.projections.tables import Change, Upsert
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

NAME: Final = "versions"
VERSION: Final = 1
TABLES: Final = (VERSIONS,)
READS: Final[tuple[type[Event], ...]] = (JobCreated, JobUpdated)


def project(event: Event, known: Known) -> Iterable[Change]:  # noqa: ARG001  # of all projections
    """Rows that an event changes."""
    match event:
        case JobCreated():
            return (_version(event, "created"),)
        case JobUpdated():
            return (_version(event, "updated"),)
        case (
            AttemptEnded()
            | CancelRequested()
            | CursorEnded()
            | CursorStarted()
            | DispatcherEpochRecorded()
            | EpochStarted()
            | InputsRead()
            | JobDeleted()
            | JobForgotten()
            | JobPaused()
            | JobRefused()
            | JobRequested()
            | JobResumed()
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
            | SlotsSkipped()
            | TzdataChanged()
        ):
            return ()
        case _:
            assert_never(event)


def _version(event: JobCreated | JobUpdated, change: str) -> Upsert:
    return Upsert(
        VERSIONS,
        (tenant_of(event.job_id), event.job_id, event.at_us),
        0,
        event.at_us,
        (event.version, change, event.principal, definition_json(event.definition)),
    )
