"""What the queries give, and how it is read from rows of the tables, whichever store has them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from horolog.projections.tables import Row, Value
from horolog.schemas.ids import tenant_of
from horolog.schemas.records import JobDefinition, JobId, RunId, TenantId

RUN_STATUSES: Final = (
    "pending",
    "planned",
    "queued",
    "running",
    "succeeded",
    "cancelled",
    "dead",
    "skipped",
    "refused",
    "discarded",
)
"""Words for the state of a run, as users see it."""
ENDED: Final = frozenset(("succeeded", "cancelled", "dead", "skipped", "refused", "discarded"))
EXISTING: Final = frozenset(("active", "paused"))
"""Of jobs."""


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is now."""

    job_id: JobId
    tenant: TenantId
    status: str
    """`requested`, `active`, `paused` or `deleted`."""
    status_us: int
    """Since when."""
    status_by: str
    """Who asked for that."""
    version: int
    """Of the definition; 0: requested and not admitted yet. Runs do not change it."""
    definition: str
    """JSON of the definition in force; bytes in base64. `definition_of` reads it."""
    created_us: int
    created_by: str
    updated_us: int
    updated_by: str
    paused_until_us: int | None
    pause_reason: str


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a job's definition."""

    job_id: JobId
    version: int
    at_us: int
    principal: str
    change: str
    """`created` or `updated`."""
    definition: str


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a run."""

    run_id: RunId
    round: int
    attempt: int
    """Released attempts leave their number to the next."""
    token: int
    worker_id: str
    version: int
    """Of the definition it went by."""
    started_us: int
    ended_us: int | None
    outcome: str
    """`running`, `succeeded`, or how it ended without success."""
    exit_code: int | None
    error: str
    warning: str
    output: bytes
    retry_at_us: int | None
    """The next attempt may start then."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is now."""

    run_id: RunId
    job_id: JobId
    tenant: TenantId
    at_us: int
    """The slot, or when a manual run was asked for: the order of history."""
    slot_us: int | None
    due_us: int | None
    origin: str
    asked_by: str
    """Who triggered a manual run."""
    planned_us: int | None
    """When it was planned or asked for."""
    status: str
    """One of `RUN_STATUSES`."""
    status_us: int
    """Since when."""
    status_by: str
    """Who cancelled, redrove or discarded it."""
    tier: str
    pool: str
    version: int
    """Of the definition it goes by; 0: it has not started in this round."""
    attempt: int
    round: int
    started_us: int | None
    """Start of the last attempt of this round."""
    ended_us: int | None
    """When the run ended, or died."""
    outcome: str
    """Of the last attempt, once it has ended."""
    exit_code: int | None
    error: str
    reason: str
    """Why it was skipped, cancelled, refused, dead or discarded."""
    into: RunId | None
    """The run that stands for it, when coalesced."""
    warning: str
    output: bytes
    retry_at_us: int | None
    worker_id: str
    cancel_us: int | None
    """When somebody asked that the attempt stops."""
    cancel_by: str
    cancel_reason: str


class RunDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its attempts, oldest first."""

    run: RunRow
    attempts: tuple[AttemptRow, ...]


class SlotRow(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a slot, or of a range of slots that were skipped together."""

    after_us: int
    """Exclusive lower end of a range; of a single slot, the slot."""
    to_us: int
    """The slot, or the inclusive upper end of a range."""
    slots_count: int
    """0: not counted yet."""
    outcome: str
    """A status of its run, `skipped`, or `making_up`: a range whose runs are yet to come."""
    reason: str
    """Why it was skipped or is made up."""
    run_id: RunId | None
    into: RunId | None


class TenantUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant has and uses."""

    tenant: TenantId
    jobs_count: int
    waiting_count: int
    """Open runs that no worker holds."""
    running_count: int
    dead_count: int
    day_us: int
    """Begin of the last day, UTC, on which a run started; 0: none did."""
    started_count: int
    """Attempts started on that day."""


def definition_of(text: str) -> JobDefinition:
    """The definition in a job's or version's row. What a newer release added is left out."""
    return msgspec.json.decode(text.encode(), type=JobDefinition)


def labels_of(row: Row) -> Mapping[str, str]:
    """Labels in a row of `jobs`."""
    return msgspec.json.decode(text(row, "labels") or "{}", type=dict[str, str])


def job_row(row: Row) -> JobRow | None:
    """From `jobs`. None: it was asked for and refused."""
    status = text(row, "status")
    if status == "refused":
        return None
    return JobRow(
        job_id=JobId(text(row, "job_id")),
        tenant=TenantId(text(row, "tenant")),
        status=status,
        status_us=number(row, "status_us"),
        status_by=text(row, "status_by"),
        version=number(row, "version"),
        definition=text(row, "definition"),
        created_us=number(row, "created_us"),
        created_by=text(row, "created_by"),
        updated_us=number(row, "updated_us"),
        updated_by=text(row, "updated_by"),
        paused_until_us=maybe(row, "paused_until_us"),
        pause_reason=text(row, "pause_reason"),
    )


def version_row(row: Row) -> VersionRow:
    """From `versions`."""
    return VersionRow(
        job_id=JobId(text(row, "job_id")),
        version=number(row, "version"),
        at_us=number(row, "at_us"),
        principal=text(row, "principal"),
        change=text(row, "change"),
        definition=text(row, "definition"),
    )


def run_row(row: Row) -> RunRow:
    """From `runs`. What an attempt left is shown until the next one begins."""
    job_id = JobId(text(row, "job_id"))
    status = text(row, "status")
    begun_us = number(row, "begun_us")
    started_us = maybe(row, "started_us")
    ended: Row = row if number(row, "ended_us") > begun_us else {}
    is_asked = started_us is not None and number(row, "cancel_us") > started_us
    cancel: Row = row if is_asked else {}
    into = text(row, "into_run")
    return RunRow(
        run_id=RunId(text(row, "run_id")),
        job_id=job_id,
        tenant=tenant_of(job_id),
        at_us=number(row, "at_us"),
        slot_us=maybe(row, "slot_us"),
        due_us=maybe(row, "due_us"),
        origin=text(row, "origin"),
        asked_by=text(row, "asked_by"),
        planned_us=maybe(row, "planned_us"),
        status=status,
        status_us=number(row, "status_us"),
        status_by=text(row, "status_by"),
        tier=text(row, "tier"),
        pool=text(row, "pool"),
        version=number(row, "version"),
        attempt=number(row, "attempt"),
        round=number(row, "round"),
        started_us=started_us,
        ended_us=maybe(row, "status_us") if status in ENDED else None,
        outcome=text(ended, "outcome"),
        exit_code=maybe(ended, "exit_code"),
        error=text(ended, "error"),
        reason=text(row, "reason"),
        into=RunId(into) if into else None,
        warning=text(ended, "warning"),
        output=data(ended, "output"),
        retry_at_us=maybe(row, "retry_at_us"),
        worker_id=text(row, "worker_id"),
        cancel_us=maybe(cancel, "cancel_us"),
        cancel_by=text(cancel, "cancel_by"),
        cancel_reason=text(cancel, "cancel_reason"),
    )


def attempt_row(row: Row) -> AttemptRow:
    """From `attempts`."""
    return AttemptRow(
        run_id=RunId(text(row, "run_id")),
        round=number(row, "round"),
        attempt=number(row, "attempt"),
        token=number(row, "token"),
        worker_id=text(row, "worker_id"),
        version=number(row, "version"),
        started_us=number(row, "started_us"),
        ended_us=maybe(row, "ended_us"),
        outcome=text(row, "outcome") or "running",
        exit_code=maybe(row, "exit_code"),
        error=text(row, "error"),
        warning=text(row, "warning"),
        output=data(row, "output"),
        retry_at_us=maybe(row, "retry_at_us"),
    )


def slot_of_run(row: Row) -> SlotRow:
    """From `runs`, for the run of a slot."""
    into = text(row, "into_run")
    slot_us = number(row, "at_us")
    return SlotRow(
        after_us=slot_us,
        to_us=slot_us,
        slots_count=1,
        outcome=text(row, "status"),
        reason=text(row, "reason"),
        run_id=RunId(text(row, "run_id")),
        into=RunId(into) if into else None,
    )


def slots_of_skip(row: Row) -> SlotRow:
    """From `skips`."""
    into = text(row, "into_run")
    return SlotRow(
        after_us=number(row, "after_us"),
        to_us=number(row, "to_us"),
        slots_count=number(row, "slots_count"),
        outcome="skipped",
        reason=text(row, "reason"),
        run_id=None,
        into=RunId(into) if into else None,
    )


def slots_of_cursor(row: Row) -> SlotRow:
    """From `cursors`, for one that is open."""
    return SlotRow(
        after_us=number(row, "after_us"),
        to_us=number(row, "to_us"),
        slots_count=0,
        outcome="making_up",
        reason=text(row, "origin"),
        run_id=None,
        into=None,
    )


def tenant_use(tenant: TenantId, rows: list[Row]) -> TenantUse:
    """From the tenant's rows of `tenant_use`, one for each partition."""
    day_us = max((number(row, "day_us") for row in rows), default=0)
    return TenantUse(
        tenant=tenant,
        jobs_count=sum(number(row, "jobs") for row in rows),
        waiting_count=sum(number(row, "waiting") for row in rows),
        running_count=sum(number(row, "running") for row in rows),
        dead_count=sum(number(row, "dead") for row in rows),
        day_us=day_us,
        started_count=sum(
            number(row, "day_started") for row in rows if number(row, "day_us") == day_us
        ),
    )


# A group that was never written, or has ended before another of its row, reads as empty.


def text(row: Row, column: str) -> str:
    """A column of text."""
    value = row.get(column)
    assert value is None or isinstance(value, str), f"{column} is {value!r}"
    return value or ""


def number(row: Row, column: str) -> int:
    """A column of a number; none reads as 0."""
    return maybe(row, column) or 0


def maybe(row: Row, column: str) -> int | None:
    """A column of a number, which may be missing."""
    value: Value = row.get(column)
    assert value is None or isinstance(value, int), f"{column} is {value!r}"
    return value


def data(row: Row, column: str) -> bytes:
    """A column of bytes."""
    value = row.get(column)
    assert value is None or isinstance(value, bytes), f"{column} is {value!r}"
    return value or b""
