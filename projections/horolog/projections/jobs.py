"""Projection `jobs`: each job as it is now."""

from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from horolog.projections.known import Known
from horolog.projections.schema import JOBS
from horolog.projections.tables import Change, Key, Upsert
from horolog.schemas.ids import name_of, tenant_of
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
    JobDefinition,
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

NAME: Final = "jobs"
VERSION: Final = 1
TABLES: Final = (JOBS,)
READS: Final[tuple[type[Event], ...]] = (
    JobRequested,
    JobCreated,
    JobUpdated,
    JobPaused,
    JobResumed,
    JobDeleted,
    JobRefused,
)

STATUS, DEFINITION, CREATED = range(3)


def project(event: Event, known: Known) -> Iterable[Change]:
    """Rows that an event changes."""
    match event:
        case JobRequested():
            # A whole row: nothing of an earlier job of this name is left.
            return (
                _status(event, "requested", event.principal),
                _definition(event, 0),
                Upsert(JOBS, _key(event.job_id), CREATED, event.at_us, (event.principal,)),
            )
        case JobCreated():
            return (
                _status(event, "active", event.principal),
                _definition(event, event.version),
            )
        case JobUpdated():
            return (_definition(event, event.version),)
        case JobPaused():
            values = ("paused", event.until_us, event.reason, event.principal)
            return (Upsert(JOBS, _key(event.job_id), STATUS, event.at_us, values),)
        case JobResumed():
            return (_status(event, "active", event.principal),)
        case JobDeleted():
            return (_status(event, "deleted", event.principal, known.expires_us(event)),)
        case JobRefused():
            return (_status(event, "refused", event.principal, known.expires_us(event)),)
        case (
            AttemptEnded()
            | CancelRequested()
            | CursorEnded()
            | CursorStarted()
            | DispatcherEpochRecorded()
            | EpochStarted()
            | InputsRead()
            | JobForgotten()
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
            # A forgotten job is a stub less in the ledger; its history stays for its time.
            return ()
        case _:
            assert_never(event)


def definition_json(definition: JobDefinition) -> str:
    """Canonical JSON of a definition as the records have it; bytes in base64."""
    return msgspec.json.encode(definition, order="deterministic").decode()


def search_text(job_id: JobId, definition: JobDefinition) -> str:
    """What a search for text looks through: name, description, labels, owner and target, folded
    for comparison without case.
    """
    target = definition.target
    parts = [
        name_of(job_id),
        definition.description,
        definition.owner.name,
        *(f"{key}={value}" for key, value in sorted(definition.labels.items())),
        target.handler or "",
        *(target.command or ()),
        target.http.url if target.http is not None else "",
        target.container.image if target.container is not None else "",
    ]
    return "\n".join(part for part in parts if part).casefold()


def _key(job_id: JobId) -> Key:
    return (tenant_of(job_id), job_id)


def _status(
    event: JobRequested | JobCreated | JobResumed | JobDeleted | JobRefused,
    status: str,
    principal: str,
    expires_us: int | None = None,
) -> Upsert:
    values = (status, None, "", principal)
    return Upsert(JOBS, _key(event.job_id), STATUS, event.at_us, values, expires_us)


def _definition(event: JobRequested | JobCreated | JobUpdated, version: int) -> Upsert:
    definition = event.definition
    values = (
        version,
        definition_json(definition),
        msgspec.json.encode(definition.labels, order="deterministic").decode(),
        definition.pool,
        search_text(event.job_id, definition),
        event.principal,
    )
    return Upsert(JOBS, _key(event.job_id), DEFINITION, event.at_us, values)
