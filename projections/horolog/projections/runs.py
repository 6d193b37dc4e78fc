"""Projection `runs`: each run as it is now, in the order of its job's history.

Shown as: pending, planned, queued, running, succeeded, cancelled, dead, skipped, refused,
discarded; a revoked run is not shown, its slot may be planned again under the same ID.
"""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from horolog.projections.known import Known
from horolog.projections.schema import MANUAL_RUNS, RUNS
from horolog.projections.tables import Change, Key, Upsert, Value
from horolog.schemas.ids import is_manual
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
    RunId,
    RunOrigin,
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

NAME: Final = "runs"
VERSION: Final = 1
TABLES: Final = (RUNS, MANUAL_RUNS)
READS: Final[tuple[type[Event], ...]] = (
    RunPlanned,
    RunStarted,
    RunSucceeded,
    AttemptEnded,
    RunQueued,
    RunRequested,
    RunAdmitted,
    RunRefused,
    RunRevoked,
    RunSkipped,
    RunCancelled,
    CancelRequested,
    RunDeadLettered,
    RunRedriven,
    RunDiscarded,
)

STATUS, PLAN, BEGIN, END, CANCEL = range(5)

HIDDEN: Final = "revoked"
REVOKED_KEPT_US: Final = 3_600_000_000
"""So long a revoked run hides writes that come late; then the row goes."""

_Ended = RunSucceeded | RunSkipped | RunCancelled | RunRefused | RunDiscarded
_Moved = RunQueued | RunAdmitted | RunStarted | AttemptEnded | RunDeadLettered | RunRedriven


def project(event: Event, known: Known) -> Iterable[Change]:
    """Rows that an event changes."""
    match event:
        case RunPlanned():
            return _planned(event)
        case RunStarted():
            return _started(event, known)
        case RunSucceeded():
            end = ("succeeded", event.exit_code, "", event.warning, event.output)
            return _ended(event, known, "succeeded", end=end)
        case AttemptEnded():
            return _attempt_ended(event, known)
        case RunQueued() | RunAdmitted():
            return _moved(event, known, "queued")
        case RunRequested():
            return _requested(event)
        case RunRefused():
            return _ended(event, known, "refused", event.detail or event.code, by=event.principal)
        case RunRevoked():
            expires_us = event.at_us + REVOKED_KEPT_US
            key: Key = (event.job_id, event.slot_us, event.run_id)
            values = (HIDDEN, "", None, None, "")
            return (Upsert(RUNS, key, STATUS, event.at_us, values, expires_us),)
        case RunSkipped():
            return _ended(event, known, "skipped", event.reason.value, into=event.into)
        case RunCancelled():
            return _ended(event, known, "cancelled", event.reason, by=event.principal)
        case CancelRequested():
            return _cancel_asked(event, known)
        case RunDeadLettered():
            return _moved(event, known, "dead", event.reason)
        case RunRedriven():
            return _redriven(event, known)
        case RunDiscarded():
            return _ended(event, known, "discarded", event.reason, by=event.principal)
        case (
            CursorEnded()
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
            | SlotsSkipped()
            | TzdataChanged()
        ):
            return ()
        case _:
            assert_never(event)


def _planned(event: RunPlanned) -> Sequence[Change]:
    key = (event.job_id, event.slot_us, event.run_id)
    plan = (
        event.slot_us,
        event.due_us,
        event.tier.value,
        event.pool,
        event.origin.value,
        "",
    )
    return (
        Upsert(RUNS, key, STATUS, event.at_us, ("planned", "", None, None, "")),
        Upsert(RUNS, key, PLAN, event.at_us, plan),
    )


def _requested(event: RunRequested) -> Sequence[Change]:
    key = (event.job_id, event.at_us, event.run_id)
    plan = (
        event.slot_us,
        event.at_us,
        event.tier.value,
        event.pool,
        RunOrigin.MANUAL.value,
        event.principal,
    )
    return (
        Upsert(RUNS, key, STATUS, event.at_us, ("pending", "", None, None, "")),
        Upsert(RUNS, key, PLAN, event.at_us, plan),
        Upsert(MANUAL_RUNS, (event.run_id,), 0, event.at_us, (event.at_us,)),
    )


def _started(event: RunStarted, known: Known) -> Sequence[Change]:
    key = _key(event, known)
    if key is None:
        return ()
    begin = (event.round, event.attempt, event.at_us, event.worker_id, event.version)
    return (
        Upsert(RUNS, key, STATUS, event.at_us, ("running", "", None, None, "")),
        Upsert(RUNS, key, BEGIN, event.at_us, begin),
    )


def _attempt_ended(event: AttemptEnded, known: Known) -> Sequence[Change]:
    key = _key(event, known)
    if key is None:
        return ()
    end = (event.outcome.value, event.exit_code, event.error, "", event.output)
    return (
        Upsert(RUNS, key, STATUS, event.at_us, ("queued", "", None, event.retry_at_us, "")),
        Upsert(RUNS, key, END, event.at_us, end),
    )


def _redriven(event: RunRedriven, known: Known) -> Sequence[Change]:
    key = _key(event, known)
    if key is None:
        return ()
    # What the round before had counted starts anew; its attempts stay in their own table.
    begin = (event.round, 0, None, "", 0)
    return (
        Upsert(RUNS, key, STATUS, event.at_us, ("queued", "", None, None, event.principal)),
        Upsert(RUNS, key, BEGIN, event.at_us, begin),
    )


def _cancel_asked(event: CancelRequested, known: Known) -> Sequence[Change]:
    key = _key(event, known)
    if key is None:
        return ()
    return (Upsert(RUNS, key, CANCEL, event.at_us, (event.principal, event.reason)),)


def _moved(event: _Moved, known: Known, status: str, reason: str = "") -> Sequence[Change]:
    key = _key(event, known)
    if key is None:
        return ()
    return (Upsert(RUNS, key, STATUS, event.at_us, (status, reason, None, None, "")),)


def _ended(
    event: _Ended,
    known: Known,
    status: str,
    reason: str = "",
    *,
    into: RunId | None = None,
    by: str = "",
    end: tuple[Value, ...] | None = None,
) -> Sequence[Change]:
    key = _key(event, known)
    if key is None:
        return ()
    expires_us = known.expires_us(event)
    changes: list[Change] = [
        Upsert(RUNS, key, STATUS, event.at_us, (status, reason, into, None, by), expires_us)
    ]
    if end is not None:
        changes.append(Upsert(RUNS, key, END, event.at_us, end))
    if is_manual(event.run_id):
        changes.append(Upsert(MANUAL_RUNS, (event.run_id,), 0, event.at_us, (key[1],), expires_us))
    return changes


def _key(event: _Ended | _Moved | CancelRequested, known: Known) -> Key | None:
    """None: nothing is known any more of the run; so nothing is written of it."""
    at_us = known.place(event.run_id)
    return None if at_us is None else (event.job_id, at_us, event.run_id)
