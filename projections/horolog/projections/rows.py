"""Rows of the tables, and what changes them."""

import msgspec

from horolog.schemas.records import JobId, RunId, TenantId

Value = str | int | bytes | None
Columns = dict[str, Value]


class Upsert(msgspec.Struct, frozen=True, gc=False):
    """Set some columns of the row with this key; the others stay as they are, or empty.

    `at_us` is the event's: a store that orders writes by timestamp takes it for that, so that
    repeated and reordered writes of one row change nothing.
    """

    table: str
    key: tuple[Value, ...]
    columns: Columns
    at_us: int


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Remove the row with this key."""

    table: str
    key: tuple[Value, ...]
    at_us: int


Change = Upsert | Delete

KEYS: dict[str, tuple[str, ...]] = {
    "jobs": ("job_id",),
    "versions": ("job_id", "version"),
    "runs": ("run_id",),
    "attempts": ("run_id", "token"),
    "skips": ("job_id", "to_us", "after_us"),
}
"""Key columns by table."""


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is now."""

    job_id: JobId
    tenant: TenantId
    status: str
    """`requested`, `active`, `paused` or `deleted`."""
    version: int
    definition: str
    """JSON of the definition in force; bytes in base64."""
    created_us: int
    updated_us: int
    updated_by: str
    paused_until_us: int | None
    pause_reason: str
    next_plan_us: int | None = None


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
    token: int
    worker_id: str
    started_us: int
    ended_us: int | None
    outcome: str
    """`running`, `succeeded`, or how it ended without success."""
    exit_code: int | None
    error: str


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
    status: str
    """`pending`, `planned`, `queued`, `running`, `succeeded`, `cancelled`, `dead`, `skipped`,
    `refused` or `discarded`."""
    tier: str
    pool: str
    attempt: int
    round: int
    started_us: int | None
    """Start of the last attempt."""
    ended_us: int | None
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
    outcome: str
    """A status of its run, or `skipped`."""
    reason: str
    run_id: RunId | None
    into: RunId | None


class TenantUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant has and uses."""

    tenant: TenantId
    jobs_count: int
    waiting_count: int
    running_count: int
    dead_count: int
