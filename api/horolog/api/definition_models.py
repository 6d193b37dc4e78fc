"""What a job looks like to a user: the job file's form, and the short form of the API.

Field names are camelCase on the wire; a field that is not listed is refused.
"""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from horolog.api.values import parse_duration, parse_instant
from horolog.schemas.ids import JOB_NAME_PATTERN, TENANT_PATTERN

DURATION_PATTERN: Final = r"^(\d+(\.\d+)?(d|h|ms|m|s))+$"


def _duration(text: str) -> str:
    try:
        parse_duration(text)
    except ValueError as error:
        raise PydanticCustomError("duration", "{why}", {"why": str(error)}) from error
    return text


def _instant(text: str) -> str:
    try:
        parse_instant(text)
    except ValueError as error:
        raise PydanticCustomError("instant", "{why}", {"why": str(error)}) from error
    return text


Duration: TypeAlias = Annotated[
    str,
    AfterValidator(_duration),
    WithJsonSchema(
        {"type": "string", "pattern": DURATION_PATTERN, "examples": ["90s", "10m", "1h30m"]}
    ),
]
"""A length of time with its units."""

Instant: TypeAlias = Annotated[
    str,
    AfterValidator(_instant),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-12-01T09:00:00Z"]}),
]
"""An instant with an offset from UTC."""

LocalInstant: TypeAlias = Annotated[
    str,
    WithJsonSchema(
        {"type": "string", "examples": ["2026-12-24T09:00", "2026-12-24T09:00:00+01:00"]}
    ),
]
"""An instant with an offset, or local time in the schedule's zone."""

Seconds: TypeAlias = Annotated[float, Field(ge=0, le=10**9)]


class Strict(BaseModel):
    """An object of which every field is known."""

    model_config = ConfigDict(
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        use_attribute_docstrings=True,
        strict=True,
    )


class ScheduleSpec(Strict):
    """When a job is due: one of `cron`, `every` and `at`; none of them: only when triggered."""

    cron: str | None = None
    """Cron expression of five fields or an @word, in Debian cron's meaning plus `L`, `#`, `W` and
    `H`."""
    second: str | None = None
    """Cron field for the second; absent = 0. The only way to name seconds."""
    every: Duration | None = None
    """Interval, whole seconds."""
    at: LocalInstant | None = None
    """One instant, with an offset or as local time in `timezone`."""
    timezone: str = "UTC"
    """IANA name of the zone in which `cron` and `at` are read."""
    gap: Literal["shift", "skip"] = "shift"
    """What a fixed-time slot does that falls into an hour the clock jumps over: run once, right
    after the gap, or not at all."""
    overlap_hour: Literal["first", "second", "both"] = "first"
    """Which pass of an hour that comes twice carries a fixed-time slot."""
    jitter: Duration = "0s"
    """Each slot is due up to this much later, always the same for one job."""
    start: LocalInstant | None = None
    """No slot before this instant."""
    end: LocalInstant | None = None
    """No slot at or after this instant."""
    anchor: Instant | None = None
    """Origin of `every`; the instant of creation when absent."""


class HttpSpec(Strict):
    """A request to make; success is a 2xx answer to exactly this request."""

    url: str
    """Absolute http or https address."""
    method: str = "POST"
    headers: dict[str, str] = {}
    """Headers to send beside Horolog's own."""


class ContainerSpec(Strict):
    """A container to run; success is exit status 0."""

    image: str
    args: list[str] = []
    env: dict[str, str] = {}
    cpu: str | None = None
    """Cores, as `0.5` or `500m`; absent = no limit of its own."""
    memory: str | None = None
    """Bytes, as `256Mi`; absent = no limit of its own."""


class TargetSpec(Strict):
    """What a run executes; exactly one field."""

    handler: str | None = None
    """Name of a function registered with a worker through the SDK."""
    command: list[str] | None = None
    """Program and arguments; no shell in between."""
    http: HttpSpec | None = None
    container: ContainerSpec | None = None


class RetrySpec(Strict):
    """What follows an attempt that did not succeed: the next attempt after
    `min(backoff * 2^(n-1), maxBackoff)`.
    """

    max: int = 0
    """Attempts after the first that failures may cost."""
    backoff: Duration = "10s"
    """Delay before the first retry, at least one second."""
    max_backoff: Duration = "10m"
    """Longest delay."""
    lost_max: int = 3
    """Attempts that lost leases may cost, beside `max`."""
    on_timeout: bool = True
    """Whether an attempt that timed out, so with an unknown outcome, is tried again."""


class OwnerSpec(Strict):
    """Who is told when a run of the job is dead."""

    name: str = ""
    notify: str = ""
    """Address that is called when a run is dead; empty = nobody."""


class JobFields(Strict):
    """What the two forms of a job have in common."""

    target: TargetSpec
    payload: JsonValue = None
    """Handed to each run: any JSON value; a string as it is when `contentType` is not JSON."""
    payload_base64: str | None = None
    """Payload that is no text, in base64; instead of `payload`."""
    content_type: str = "application/json"
    """Media type of the payload."""
    timeout: Duration = "1h"
    """Longest time one attempt may take."""
    kill_grace: Duration = "10s"
    """Time between TERM and KILL when a run is stopped."""
    priority: Literal["high", "normal", "low"] = "normal"
    """Tier of its runs; waiting runs are taken 70/20/10."""
    pool: str = "default"
    """Pool of workers that executes its runs."""
    catch_up: Literal["one", "all", "skip"] = "one"
    """What happens to slots that were missed: the latest runs, each runs, none runs."""
    overlap: Literal["allow", "skip", "queue", "replace"] = "allow"
    """What a due slot does while a run of the job is open."""
    starting_deadline: Duration | None = None
    """A run that could not start this long after it was due is skipped as `too_late`."""
    lease_term: Duration = "30s"
    """Term of the leases of its runs."""
    owner: OwnerSpec = OwnerSpec()
    labels: dict[str, str] = {}
    """Free labels to select jobs by."""
    description: str = ""


class JobSpec(JobFields):
    """A job as it stands in a job file."""

    schedule: ScheduleSpec = ScheduleSpec()
    retry: RetrySpec = RetrySpec()


JobName: TypeAlias = Annotated[str, Field(pattern=f"^{JOB_NAME_PATTERN}$")]
TenantName: TypeAlias = Annotated[str, Field(pattern=f"^{TENANT_PATTERN}$")]


class ShortSchedule(ScheduleSpec):
    """As in a job file, or with seconds as numbers."""

    every_s: Seconds | None = None
    """`every` in seconds."""
    jitter_s: Seconds | None = None
    """`jitter` in seconds."""


class ShortRetry(RetrySpec):
    """As in a job file, or with seconds as numbers."""

    backoff_s: Seconds | None = None
    """`backoff` in seconds."""
    max_backoff_s: Seconds | None = None
    """`maxBackoff` in seconds."""


class JobRequest(JobFields):
    """A job as it is sent: the job file's form, the short form, or a mixture that says nothing
    twice. `definitions.canonical` turns it into the job file's form before it is read.
    """

    schedule: str | ShortSchedule = ShortSchedule()
    """A cron expression, or an object."""
    run_at: LocalInstant | None = None
    """One instant; short for `schedule.at`."""
    timezone: str | None = None
    """Short for `schedule.timezone`."""
    timeout_s: Seconds | None = None
    """`timeout` in seconds."""
    kill_grace_s: Seconds | None = None
    """`killGrace` in seconds."""
    lease_term_s: Seconds | None = None
    """`leaseTerm` in seconds."""
    starting_deadline_s: Seconds | None = None
    """`startingDeadline` in seconds."""
    retry: ShortRetry = ShortRetry()


class NamedJobRequest(JobRequest):
    """A job to create."""

    name: JobName | None = None
    """Name within the credential's tenant."""
    id: str | None = None
    """Whole ID, `<tenant>.<name>`; instead of `name`."""


class JobPatch(JobRequest):
    """What changes of a job; null takes a field away (JSON Merge Patch, RFC 7396)."""

    target: TargetSpec | None = None  # type: ignore[assignment]  # A patch leaves out what stays.


class JobFile(Strict):
    """A job file, as `horolog apply` reads it: YAML 1.2, JSON or TOML."""

    tenant: TenantName | None = None
    """Tenant of the jobs; absent: that of the credential."""
    jobs: dict[JobName, JobRequest]
