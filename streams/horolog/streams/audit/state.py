"""What the audit keeps of a partition while it reads: what is open, and no more.

These are the audit's own: it shares no state and no transition with the scheduler, which it must
be able to find wrong.
"""

import enum

import msgspec

from horolog.schemas.records import (
    CatchUp,
    Event,
    JobDefinition,
    JobId,
    Overlap,
    RetryPolicy,
    RunId,
    RunOrigin,
    Schedule,
)
from horolog.streams.audit.accounts import SlotAccount, Stretch
from horolog.streams.audit.report import Doubled, Findings
from horolog.streams.audit.rules import Rule
from horolog.streams.calendar import Zones


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """What the audit needs of a definition; payloads and targets are not kept."""

    schedule: Schedule
    overlap: Overlap
    retry: RetryPolicy
    catch_up: CatchUp
    starting_deadline_us: int | None

    @classmethod
    def of(cls, definition: JobDefinition) -> "Policies":
        """Those of a definition."""
        return cls(
            schedule=definition.schedule,
            overlap=definition.overlap,
            retry=definition.retry,
            catch_up=definition.catch_up,
            starting_deadline_us=definition.starting_deadline_us,
        )


class Status(enum.Enum):
    """Where an open run stands."""

    PENDING = "pending"
    PLANNED = "planned"
    QUEUED = "queued"
    RUNNING = "running"
    DEAD = "dead"


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The live lease of a run."""

    token: int
    claim_id: str
    granted_us: int
    """Lease time at the grant."""
    term_us: int


class Run(msgspec.Struct, kw_only=True):
    """A run that has not ended."""

    run_id: RunId
    status: Status
    origin: RunOrigin
    due_us: int
    slot_us: int | None = None
    counts: bool = False
    """Whether it stands for its slot: not if it is manual or of a backfill."""
    again: bool = False
    """Whether its slot had an outcome when it was planned."""
    started: bool = False
    """Whether it ever had a grant."""
    not_before_us: int = 0
    attempt: int = 0
    round: int = 0
    failures: int = 0
    losses: int = 0
    version: int = 0
    """Version of the definition it keeps; 0: none yet."""
    retry: RetryPolicy | None = None
    """Of that version."""
    lease: Lease | None = None
    cancel_asked: bool = False
    ending: bool = False
    """Whether its last attempt allows no other."""
    must_queue: bool = False
    """Whether the overlap policy has to let it through again, after a redrive."""
    exempt: bool = False
    """Whether it was let through before overlap was forbidden."""
    key: str = ""

    @property
    def is_unstarted_slot(self) -> bool:
        """Whether it stands for a slot and may still be skipped."""
        return (
            self.slot_us is not None
            and self.origin is not RunOrigin.MANUAL
            and not self.started
            and self.status in (Status.PLANNED, Status.QUEUED)
        )


class JobStatus(enum.Enum):
    """Where a job stands."""

    REQUESTED = "requested"
    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class Cursor(msgspec.Struct, kw_only=True):
    """A range of past slots that is being made up."""

    origin: RunOrigin
    rest: Stretch
    """What is still to be planned."""


class Job(msgspec.Struct, kw_only=True):
    """A job, or the stub of one that was deleted."""

    job_id: JobId
    status: JobStatus
    account: SlotAccount
    policies: Policies | None = None
    version: int = 0
    asked_us: int = 0
    accounted_us: int = 0
    decided_us: int = 0
    """The latest slot that came and has an outcome."""
    ahead_us: int = 0
    """The latest slot that was decided before it came."""
    deleted_us: int | None = None
    runs: dict[RunId, Run] = {}
    running_count: int = 0
    cursors: dict[int, Cursor] = {}
    backfillable: list[tuple[int, int]] = []
    """Ranges (after, to] that were skipped or lie before the job."""
    keys: dict[str, int] = {}
    """Idempotency key -> when it was used, within its window, oldest first."""
    promised: dict[RunId, Event] = {}
    """Runs that slots were coalesced into and that are not planned yet -> the event."""

    @property
    def exists(self) -> bool:
        """Whether it can be changed and triggered."""
        return self.status in (JobStatus.ACTIVE, JobStatus.PAUSED)

    @property
    def forbids_overlap(self) -> bool:
        """Whether two of its runs must not be open at once."""
        return self.policies is not None and self.policies.overlap is not Overlap.ALLOW


class Book:
    """One partition, as far as it is read."""

    def __init__(self, partition: int, findings: Findings, *, log_id: str, partitions: int) -> None:
        self.partition = partition
        self.findings = findings
        self.log_id = log_id
        self.partitions = partitions
        self.jobs: dict[JobId, Job] = {}
        self.zones = Zones()
        self.zone_rules: dict[str, list[tuple[int, bytes]]] = {}
        self.generation = 0
        self.epoch = 0
        self.dispatcher_epochs: dict[int, int] = {}
        self.lease_time_us = 0
        self.last_token = 0
        self.seq = 0
        self.at_us = 0
        self.epoch_since_us = 0
        self.proven_to_us = 0
        """Slots up to here had to be decided by owners that were in force long enough."""
        self.damaged = False
        """Whether it could not be read to its end."""
        self.events_count = 0
        self.jobs_count = 0
        self.starts_count = 0
        # Of the batch being read.
        self.batch_from_us = 0
        """The least that `now` can have been for its events."""
        self.ending: list[tuple[Run, Event]] = []
        self.lost: list[tuple[Lease, Event]] = []
        self.revoked: list[tuple[JobId, Event]] = []
        self.edited: set[JobId] = set()

    def broken(self, rule: Rule, event: Event, detail: str) -> None:
        """An event breaks a rule."""
        self.findings.broken(rule, self.partition, event, detail)

    def outcome(self, job: Job, slot_us: int, outcome: str, event: Event) -> None:
        """A slot has its outcome."""
        if slot_us <= event.at_us:
            job.decided_us = max(job.decided_us, slot_us)
        else:
            job.ahead_us = max(job.ahead_us, slot_us)
            job.account.decide_ahead(slot_us, event.at_us)
        self.findings.outcome(outcome, slot_us)

    def doubled(self, job: Job, slot_us: int, outcome: str, event: Event) -> None:
        """A slot that had an outcome has another one."""
        self.findings.double(
            Doubled(
                partition=self.partition,
                job_id=job.job_id,
                slot_us=slot_us,
                outcome=outcome,
                seq=event.seq,
            )
        )

    def run_outcome(self, job: Job, run: Run, outcome: str, event: Event) -> None:
        """The outcome of the slot that a run stands for, if it stands for one."""
        if not run.counts or run.slot_us is None:
            return
        if run.again:
            self.doubled(job, run.slot_us, outcome, event)
        else:
            self.outcome(job, run.slot_us, outcome, event)

    def end(self, job: Job, run: Run) -> None:
        """A run is no longer open."""
        job.runs.pop(run.run_id, None)
        if run.lease is not None:
            job.running_count -= 1
