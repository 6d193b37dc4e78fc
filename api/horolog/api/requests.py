"""Bodies of requests other than jobs themselves: read by the routes, shown by OpenAPI."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, SkipValidation

from horolog.api.definition_models import Instant, ShortSchedule, Strict
from horolog.api.limits import (
    HANDLERS_PER_CALL_MAX,
    HEARTBEATS_PER_CALL_MAX,
    LEASES_PER_CALL_MAX,
    LIMIT_MAX,
    NEXT_DEFAULT,
    NEXT_MAX,
    POOLS_PER_CALL_MAX,
    REDRIVES_PER_CALL_MAX,
    WORKER_ID_CHARS_MAX,
)


class TriggerRequest(Strict):
    """Asks for a manual run."""

    idempotency_key: str | None = None
    """The same key names the same run; absent: a new run each time."""
    payload: JsonValue = None
    """Instead of the job's payload."""
    payload_base64: str | None = None
    """Payload that is no text, in base64; instead of `payload`."""
    slot: Instant | None = None
    """The slot the run stands for."""


class PauseRequest(Strict):
    """Asks that no slot of the job is planned."""

    until: Instant | None = None
    """When it goes on by itself; absent: when it is resumed."""
    reason: str = ""
    """Shown with the job."""


class BackfillRequest(Strict):
    """Asks for runs of past slots that had none."""

    from_: Annotated[Instant, Field(alias="from")]
    """First slot, inclusive."""
    to: Instant
    """Last slot, exclusive."""
    priority: Literal["high", "normal", "low"] = "low"
    """Tier of the runs."""


class CancelRequest(Strict):
    """Asks that a run ends."""

    reason: str = ""
    """Shown with the run."""


class DeadRunsRequest(Strict):
    """Names dead runs."""

    run_ids: Annotated[list[str], Field(min_length=1, max_length=REDRIVES_PER_CALL_MAX)]


class ExplainRequest(Strict):
    """Asks what a schedule means."""

    schedule: SkipValidation[str | ShortSchedule]
    """A cron expression, or an object as in a job; kept as it came, to be read as a job's is."""
    timezone: str | None = None
    """Short for `schedule.timezone`."""
    from_: Annotated[str | None, Field(alias="from")] = None
    """Where to begin: an instant, or a date or local time in the schedule's zone; absent: now."""
    count: Annotated[int, Field(ge=1, le=NEXT_MAX)] = NEXT_DEFAULT
    """How many slots."""
    job: str = "default.example"
    """ID of the job; what `H` and jitter give depends on it."""


Limit = Annotated[int, Field(ge=0, le=LIMIT_MAX)] | None


class TenantRequest(Strict):
    """What a tenant may have; what is left out or null is not limited."""

    concurrency: Limit = None
    """Runs released or started at the same time."""
    backlog: Limit = None
    """Runs that may wait, manual ones included."""
    jobs: Limit = None
    """Jobs that may exist."""


class LeaseRequest(Strict):
    """Asks for runs to execute."""

    worker_id: Annotated[str, Field(min_length=1, max_length=WORKER_ID_CHARS_MAX)]
    """Name of the worker, its own among all."""
    pools: list[str] = Field(default=["default"], max_length=POOLS_PER_CALL_MAX)
    """Pools it takes runs of."""
    handlers: Annotated[list[str], Field(max_length=HANDLERS_PER_CALL_MAX)] | None = None
    """Functions it has; absent: it executes the other targets."""
    max: Annotated[int, Field(ge=1, le=LEASES_PER_CALL_MAX)] = 1
    """Most runs to lease."""
    request_id: str | None = None
    """The same request again gets the same leases."""
    slots: Annotated[int, Field(ge=0, le=LIMIT_MAX)] | None = None
    """Most runs it executes at the same time, for the list of workers."""


class LeaseProof(Strict):
    """What the holder of a lease says with each report."""

    fencing_token: int
    """As the lease had it."""
    claim_id: str
    """As the lease had it."""


class RunLeaseProof(LeaseProof):
    """A lease among many."""

    run_id: str


class HeartbeatsRequest(Strict):
    """Renews many leases."""

    runs: Annotated[list[RunLeaseProof], Field(max_length=HEARTBEATS_PER_CALL_MAX)]


class CompleteRequest(LeaseProof):
    """Says how an attempt ended."""

    ok: bool
    """Whether it succeeded."""
    result: Literal["succeeded", "failed", "timed_out", "cancelled"] | None = None
    """How it ended, more closely than `ok`; absent: `failed` if it is not ok."""
    output: str | None = None
    """The result of the run, a short text."""
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    error: str = ""
    """Why it failed, in words."""
    retryable: bool = True
    """Whether it may be tried again."""
