"""What the API answers, as types: the documents' schemas are made from them.

Every field that is not `NotRequired` is in every answer; null stands for "there is none". Fields
may be added in later releases: a client ignores those it does not know.
"""

from typing import Literal, NotRequired, TypeAlias, TypeVar

from pydantic import ConfigDict, JsonValue, with_config
from typing_extensions import TypedDict

from horolog.api.definition_models import (
    Duration,
    Instant,
    OwnerSpec,
    RetrySpec,
    ScheduleSpec,
    TargetSpec,
)

Shape = TypeVar("Shape", bound=type)

_Maybe: TypeAlias = Instant | None
Priority: TypeAlias = Literal["high", "normal", "low"]


def _answer(shape: Shape) -> Shape:
    """Its fields' docstrings are their descriptions."""
    return with_config(ConfigDict(use_attribute_docstrings=True))(shape)


@_answer
class JobHead(TypedDict):
    """What names a job."""

    id: str
    tenant: str
    name: str
    status: Literal["active", "paused", "deleted"]
    version: int
    """Of the definition; the job's tag is made of it. 0: it was only checked."""


@_answer
class Definition(TypedDict):
    """A job's definition, as a job file has it, with what its defaults say."""

    schedule: ScheduleSpec
    target: TargetSpec
    payload: NotRequired[JsonValue]
    payloadBase64: NotRequired[str]
    """Instead of `payload`, for bytes that JSON does not carry."""
    contentType: str
    timeout: Duration
    killGrace: Duration
    retry: RetrySpec
    priority: Priority
    pool: str
    catchUp: Literal["one", "all", "skip"]
    overlap: Literal["allow", "skip", "queue", "replace"]
    startingDeadline: NotRequired[Duration]
    leaseTerm: Duration
    owner: OwnerSpec
    labels: dict[str, str]
    description: str


@_answer
class WrittenJob(JobHead, Definition):
    """A job right after it was written, or as it would be."""

    next: list[Instant]
    """Slots to come."""
    changed: NotRequired[bool]
    """Of an update: whether anything was different."""


@_answer
class JobAnswer(JobHead, Definition):
    """A job as it is now."""

    createdAt: Instant
    updatedAt: Instant
    updatedBy: str
    pausedUntil: _Maybe
    pauseReason: str
    next: list[Instant]
    """Slots to come."""
    asOf: NotRequired[Instant]
    """The instant it is shown at, if that was asked for."""


class JobPage(TypedDict):
    """Jobs in order of ID."""

    items: list[JobAnswer]
    nextCursor: str


@_answer
class TriggerAnswer(TypedDict):
    """The run that was asked for."""

    runId: str
    jobId: str


@_answer
class BackfillAnswer(TypedDict):
    """What a backfill does."""

    jobId: str
    changed: bool
    """Whether there is anything to make up."""
    slots: NotRequired["BackfilledSlots"]
    """Of a dry run: which."""


@_answer
class BackfilledSlots(TypedDict):
    """Slots that would be made up."""

    count: int
    first: NotRequired[Instant]
    last: NotRequired[Instant]


class Upcoming(TypedDict):
    """A slot to come."""

    slot: Instant


class UpcomingPage(TypedDict):
    """Slots to come."""

    items: list[Upcoming]


@_answer
class SlotAnswer(TypedDict):
    """What became of a slot or of a range of slots."""

    slot: _Maybe
    """The only slot, or the last of the range."""
    slots: int | None
    """How many; null: not counted."""
    outcome: str
    reason: str
    runId: str | None
    coalescedInto: str | None
    """The run that stands for it."""
    after: NotRequired[_Maybe]
    """Begin of a range, exclusive."""
    to: NotRequired[_Maybe]
    """End of a range, inclusive."""


class SlotPage(TypedDict):
    """Slots and their outcomes."""

    items: list[SlotAnswer]
    nextCursor: str


@_answer
class VersionAnswer(TypedDict):
    """One version of a definition."""

    version: int
    at: _Maybe
    by: str
    change: str
    definition: Definition


class VersionPage(TypedDict):
    """Versions, newest first."""

    items: list[VersionAnswer]


class WhyAnswer(TypedDict):
    """Sentences, each from something recorded."""

    jobId: str
    trail: list[str]


@_answer
class OutputFields(TypedDict):
    """The result of a run."""

    output: NotRequired[str]
    outputBase64: NotRequired[str]
    """Instead of `output`, for bytes that are no text."""


@_answer
class RunAnswer(OutputFields):
    """A run as it is now."""

    runId: str
    jobId: str
    slot: _Maybe
    """Null: it was triggered."""
    at: _Maybe
    """Its place among runs: the slot, or when it was asked for."""
    dueAt: _Maybe
    origin: str
    status: str
    priority: str
    pool: str
    version: int | None
    """Of the definition it took."""
    attempt: int
    round: int
    """Counts redrives."""
    startedAt: _Maybe
    endedAt: _Maybe
    retryAt: _Maybe
    workerId: str
    exitCode: int | None
    error: str
    reason: str
    coalescedInto: str | None
    warning: str
    cancelReason: str


@_answer
class AttemptAnswer(TypedDict):
    """One attempt of a run."""

    attempt: int
    round: int
    fencingToken: int
    workerId: str
    startedAt: _Maybe
    endedAt: _Maybe
    outcome: str
    exitCode: int | None
    error: str
    retryAt: _Maybe


class RunDetailAnswer(RunAnswer):
    """A run with its attempts."""

    attempts: list[AttemptAnswer]
    asOf: NotRequired[Instant]
    """The instant it is shown at, if that was asked for."""


class RunPage(TypedDict):
    """Runs, newest first."""

    items: list[RunAnswer]
    nextCursor: str


class RunName(TypedDict):
    """The run that was written."""

    runId: str


@_answer
class DeadRunAnswer(TypedDict):
    """What became of one of the runs named."""

    runId: str
    done: bool
    detail: NotRequired[str]
    """Why not."""


class DeadRunsAnswer(TypedDict):
    """One entry for each run named."""

    items: list[DeadRunAnswer]


@_answer
class TenantUse(TypedDict):
    """What a tenant has."""

    jobs: int
    open: int
    waiting: int
    running: int
    dead: int


@_answer
class TenantAnswer(TypedDict):
    """What a tenant may have, null being no limit, and what it has."""

    tenant: str
    concurrency: int | None
    backlog: int | None
    jobs: int | None
    use: TenantUse


class TenantPage(TypedDict):
    """Tenants the caller may see."""

    items: list[TenantAnswer]


@_answer
class WorkerAnswer(TypedDict):
    """A worker, with those of its runs that the caller may see."""

    workerId: str
    kind: str
    tenant: str | None
    """Null: it takes runs of all."""
    pools: list[str]
    handlers: list[str] | None
    """Null: it executes the other targets."""
    slots: int | None
    lastSeenAt: _Maybe
    running: int
    runs: list[str]
    draining: bool


class WorkerPage(TypedDict):
    """Workers that take runs of the caller's tenants."""

    items: list[WorkerAnswer]


@_answer
class LeaseAnswer(TypedDict):
    """The right to execute one attempt."""

    runId: str
    jobId: str
    attempt: int
    round: int
    fencingToken: int
    claimId: str
    leaseUntil: Instant
    termS: float
    slot: str | None
    """ISO 8601 basic, as in the run's ID."""
    target: TargetSpec
    timeoutS: float
    killGraceS: float
    contentType: str
    payload: NotRequired[JsonValue]
    payloadBase64: NotRequired[str]


@_answer
class HeartbeatAnswer(TypedDict):
    """What became of a lease."""

    status: Literal["RENEWED", "CANCELLED", "STALE"]
    extendUntil: NotRequired[Instant]
    draining: NotRequired[bool]
    """Whether the worker is to lease nothing more."""


class RunHeartbeatAnswer(HeartbeatAnswer):
    """What became of one lease among many."""

    runId: str


class HeartbeatsAnswer(TypedDict):
    """One entry for each lease named."""

    runs: list[RunHeartbeatAnswer]


class CompleteAnswer(TypedDict):
    """The report counted."""

    runId: str
    accepted: Literal[True]


@with_config(ConfigDict(extra="allow"))
class EventAnswer(TypedDict):
    """An event of the ledger, with the fields its schema has."""

    type: str
    position: str
    seq: int


class EventPage(TypedDict):
    """Events, oldest first."""

    items: list[EventAnswer]
    nextAfter: int | None


class LocalSlot(TypedDict):
    """A slot, and what clocks show in the schedule's zone."""

    slot: Instant
    local: str


@_answer
class ClockChange(TypedDict):
    """A change of the zone's clocks."""

    at: Instant
    local: str
    offsetBeforeS: int
    offsetAfterS: int


class ExplainAnswer(TypedDict):
    """A schedule explained."""

    words: str
    timezone: str
    slots: list[LocalSlot]
    clockChanges: list[ClockChange]
    warnings: list[str]


class LiveAnswer(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class ReadyAnswer(TypedDict):
    """Whether the process can decide."""

    status: Literal["ok", "unavailable"]
    detail: str


@_answer
class ProjectionPartition(TypedDict):
    """How far tables are with a ledger partition."""

    partition: int
    position: int
    """Last event of the ledger that is in the tables."""
    end: int
    """Last event of the ledger."""
    lagRecords: int
    lagSeconds: float
    """Age of the oldest event that is not in the tables."""


class ProjectionAnswer(TypedDict):
    """Tables that are built together."""

    name: str
    partitions: list[ProjectionPartition]


class ProjectionPage(TypedDict):
    """All tables that reads come from."""

    items: list[ProjectionAnswer]


@_answer
class RebuiltAnswer(TypedDict):
    """Tables that were built anew."""

    name: str
    events: int
    """Folded; 0: it was only checked."""
