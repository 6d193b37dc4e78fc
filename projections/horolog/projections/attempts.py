"""Projection `attempts`: each attempt of each run, of all rounds."""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from horolog.projections.known import Known
from horolog.projections.schema import ATTEMPTS
from horolog.projections.tables import Change, Upsert, Value
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

NAME: Final = "attempts"
VERSION: Final = 1
TABLES: Final = (ATTEMPTS,)
READS: Final[tuple[type[Event], ...]] = (RunStarted, RunSucceeded, AttemptEnded)

BEGIN, END = range(2)

GENERATION: Final = 1 << 40
"""Fencing token = `seq` of the RunStarted + generation * this (design, section 1)."""


def project(event: Event, known: Known) -> Iterable[Change]:
    """Rows that an event changes."""
    match event:
        case RunStarted():
            token = event.generation * GENERATION + event.seq
            begin = (event.round, event.attempt, token, event.worker_id, event.version)
            return _written(event, known, event.seq, BEGIN, begin)
        case RunSucceeded():
            return _ended(event, known, "succeeded", warning=event.warning)
        case AttemptEnded():
            return _ended(
                event,
                known,
                event.outcome.value,
                error=event.error,
                retry_at_us=event.retry_at_us,
            )
        case (
            CancelRequested()
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
            | RunDeadLettered()
            | RunDiscarded()
            | RunPlanned()
            | RunQueued()
            | RunRedriven()
            | RunRefused()
            | RunRequested()
            | RunRevoked()
            | RunSkipped()
            | SlotsSkipped()
            | TzdataChanged()
        ):
            return ()
        case _:
            assert_never(event)


def _ended(
    event: RunSucceeded | AttemptEnded,
    known: Known,
    outcome: str,
    *,
    error: str = "",
    warning: str = "",
    retry_at_us: int | None = None,
) -> Sequence[Change]:
    values = (outcome, event.exit_code, error, warning, event.output, retry_at_us)
    return _written(event, known, event.token % GENERATION, END, values)


def _written(
    event: RunStarted | RunSucceeded | AttemptEnded,
    known: Known,
    started_seq: int,
    group: int,
    values: tuple[Value, ...],
) -> Sequence[Change]:
    at_us = known.place(event.run_id)
    if at_us is None:
        return ()
    key = (event.job_id, at_us, event.run_id, started_seq)
    return (Upsert(ATTEMPTS, key, group, event.at_us, values),)
