"""Events to rows: a pure function of the log, without looking at what is stored.

Every column is set by the event that decides it, so writing a row needs no reading. Bump `VERSION`
when a row would come out different; the store is then rebuilt.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from horolog.projections.rows import Change, Columns, Delete, Upsert, Value
from horolog.schemas.ids import tenant_of
from horolog.schemas.records import (
    AttemptEnded,
    Event,
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
)

VERSION: Final = 1


def fold(events: Iterable[Event]) -> Iterator[Change]:
    """Rows that the events change, in order."""
    for event in events:
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            yield from handler(event)


def coalesced(changes: Iterable[Change]) -> list[Change]:
    """One change a row: what started and finished among these is one write."""
    rows: dict[tuple[str, tuple[Value, ...]], Change] = {}
    for change in changes:
        place = (change.table, change.key)
        before = rows.get(place)
        if isinstance(change, Upsert) and isinstance(before, Upsert):
            before.columns.update(change.columns)
            rows[place] = Upsert(change.table, change.key, before.columns, change.at_us)
        else:
            rows[place] = change
    return list(rows.values())


def definition_json(definition: JobDefinition) -> str:
    """A definition as JSON, bytes in base64."""
    return msgspec.json.encode(definition).decode()


def definition_of(text: str) -> JobDefinition:
    """The definition that `definition_json` was made of."""
    return msgspec.json.decode(text.encode(), type=JobDefinition)


# --- jobs


def _job(job_id: JobId, at_us: int, **columns: Value) -> Upsert:
    return Upsert("jobs", (job_id,), columns, at_us)


def _job_requested(event: JobRequested) -> Iterator[Change]:
    yield _job(
        event.job_id,
        event.at_us,
        tenant=tenant_of(event.job_id),
        status="requested",
        definition=definition_json(event.definition),
        labels=_labels(event.definition),
        pool=event.definition.pool,
        created_us=event.at_us,
        updated_us=event.at_us,
        updated_by=event.principal,
    )


def _job_refused(event: JobRefused) -> Iterator[Change]:
    yield Delete("jobs", (event.job_id,), event.at_us)


def _job_created(event: JobCreated) -> Iterator[Change]:
    yield _job(
        event.job_id,
        event.at_us,
        status="active",
        version=event.version,
        paused_until_us=None,
        pause_reason="",
    )
    yield _version(event, "created")


def _job_updated(event: JobUpdated) -> Iterator[Change]:
    yield _job(
        event.job_id,
        event.at_us,
        version=event.version,
        definition=definition_json(event.definition),
        labels=_labels(event.definition),
        pool=event.definition.pool,
        updated_us=event.at_us,
        updated_by=event.principal,
    )
    yield _version(event, "updated")


def _version(event: JobCreated | JobUpdated, change: str) -> Upsert:
    return Upsert(
        "versions",
        (event.job_id, event.version),
        {
            "at_us": event.at_us,
            "principal": event.principal,
            "change": change,
            "definition": definition_json(event.definition),
        },
        event.at_us,
    )


def _labels(definition: JobDefinition) -> str:
    """Labels as text that one LIKE finds: `\\nteam=finance\\n`."""
    pairs = "\n".join(f"{key}={value}" for key, value in sorted(definition.labels.items()))
    return f"\n{pairs}\n"


def _job_paused(event: JobPaused) -> Iterator[Change]:
    yield _job(
        event.job_id,
        event.at_us,
        status="paused",
        paused_until_us=event.until_us,
        pause_reason=event.reason,
    )


def _job_resumed(event: JobResumed) -> Iterator[Change]:
    yield _job(event.job_id, event.at_us, status="active", paused_until_us=None, pause_reason="")


def _job_deleted(event: JobDeleted) -> Iterator[Change]:
    yield _job(
        event.job_id,
        event.at_us,
        status="deleted",
        updated_us=event.at_us,
        updated_by=event.principal,
    )


def _job_forgotten(event: JobForgotten) -> Iterator[Change]:
    yield Delete("jobs", (event.job_id,), event.at_us)


# --- runs


def _run(event: Any, status: str, **columns: Value) -> Upsert:
    return Upsert("runs", (event.run_id,), {"status": status, **columns}, event.at_us)


def _new_run(event: RunPlanned | RunRequested, at_us: int, status: str, **columns: Value) -> Upsert:
    return _run(
        event,
        status,
        job_id=event.job_id,
        tenant=tenant_of(event.job_id),
        at_us=at_us,
        slot_us=event.slot_us,
        tier=event.tier.value,
        pool=event.pool,
        attempt=0,
        round=0,
        **columns,
    )


def _run_planned(event: RunPlanned) -> Iterator[Change]:
    yield _new_run(event, event.slot_us, "planned", due_us=event.due_us, origin=event.origin.value)


def _run_requested(event: RunRequested) -> Iterator[Change]:
    yield _new_run(event, event.at_us, "pending", due_us=event.at_us, origin="manual")


def _run_revoked(event: RunRevoked) -> Iterator[Change]:
    yield Delete("runs", (event.run_id,), event.at_us)


def _run_queued(event: RunQueued | RunAdmitted) -> Iterator[Change]:
    yield _run(event, "queued")


def _run_started(event: RunStarted) -> Iterator[Change]:
    yield _run(
        event,
        "running",
        attempt=event.attempt,
        round=event.round,
        started_us=event.at_us,
        ended_us=None,
        worker_id=event.worker_id,
        retry_at_us=None,
    )
    yield Upsert(
        "attempts",
        (event.run_id, token_of(event)),
        {
            "round": event.round,
            "attempt": event.attempt,
            "worker_id": event.worker_id,
            "started_us": event.at_us,
            "outcome": "running",
        },
        event.at_us,
    )


def token_of(event: RunStarted) -> int:
    """Fencing token of the attempt (design, section 1)."""
    return event.generation * _GENERATION + event.seq


_GENERATION: Final = 1 << 40


def _attempt(event: RunSucceeded | AttemptEnded, outcome: str, error: str) -> Upsert:
    columns: Columns = {
        "ended_us": event.at_us,
        "outcome": outcome,
        "exit_code": event.exit_code,
        "error": error,
    }
    return Upsert("attempts", (event.run_id, event.token), columns, event.at_us)


def _run_succeeded(event: RunSucceeded) -> Iterator[Change]:
    yield _run(
        event,
        "succeeded",
        ended_us=event.at_us,
        exit_code=event.exit_code,
        output=event.output,
        warning=event.warning,
        error="",
        reason="",
    )
    yield _attempt(event, "succeeded", "")


def _attempt_ended(event: AttemptEnded) -> Iterator[Change]:
    yield _run(
        event,
        "queued",
        exit_code=event.exit_code,
        error=event.error,
        output=event.output,
        retry_at_us=event.retry_at_us,
    )
    yield _attempt(event, event.outcome.value, event.error)


def _run_skipped(event: RunSkipped) -> Iterator[Change]:
    yield _run(
        event,
        "skipped",
        ended_us=event.at_us,
        reason=event.reason.value,
        into_run=event.into,
    )


def _run_refused(event: RunRefused) -> Iterator[Change]:
    yield _run(event, "refused", ended_us=event.at_us, reason=event.detail or event.code)


def _run_dead(event: RunDeadLettered) -> Iterator[Change]:
    yield _run(event, "dead", ended_us=event.at_us, reason=event.reason, retry_at_us=None)


def _run_cancelled(event: RunCancelled) -> Iterator[Change]:
    yield _run(event, "cancelled", ended_us=event.at_us, reason=event.reason)


def _run_discarded(event: RunDiscarded) -> Iterator[Change]:
    yield _run(event, "discarded", ended_us=event.at_us, reason=event.reason)


def _run_redriven(event: RunRedriven) -> Iterator[Change]:
    yield _run(event, "queued", round=event.round, attempt=0, ended_us=None, reason="", error="")


def _slots_skipped(event: SlotsSkipped) -> Iterator[Change]:
    yield Upsert(
        "skips",
        (event.job_id, event.to_us, event.after_us),
        {
            "slots_count": event.slots_count,
            "reason": event.reason.value,
            "into_run": event.into,
            "at_us": event.at_us,
        },
        event.at_us,
    )


# What is not here changes no row: leases, cursors and the log's own events.
_HANDLERS: Mapping[type[Event], Callable[[Any], Iterator[Change]]] = {
    JobRequested: _job_requested,
    JobRefused: _job_refused,
    JobCreated: _job_created,
    JobUpdated: _job_updated,
    JobPaused: _job_paused,
    JobResumed: _job_resumed,
    JobDeleted: _job_deleted,
    JobForgotten: _job_forgotten,
    RunPlanned: _run_planned,
    RunRequested: _run_requested,
    RunRevoked: _run_revoked,
    RunQueued: _run_queued,
    RunAdmitted: _run_queued,
    RunStarted: _run_started,
    RunSucceeded: _run_succeeded,
    AttemptEnded: _attempt_ended,
    RunSkipped: _run_skipped,
    RunRefused: _run_refused,
    RunDeadLettered: _run_dead,
    RunCancelled: _run_cancelled,
    RunDiscarded: _run_discarded,
    RunRedriven: _run_redriven,
    SlotsSkipped: _slots_skipped,
}
