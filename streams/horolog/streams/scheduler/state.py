"""State of one ledger partition: what folding its events gives, and nothing else.

Only `evolve` writes it. `decide`, `react`, `wake` and the snapshots read it. What is derived from
it for speed (numbers of jobs, zone timelines) is kept here too and named as such; it is in no
snapshot.
"""

import msgspec

from horolog.schemas.ids import tenant_of
from horolog.schemas.records import (
    CommandMemory,
    Cursor,
    JobDefinition,
    JobId,
    JobStatus,
    RunId,
    RunKey,
    RunOrigin,
    RunStatus,
    SkippedRange,
    TenantId,
    Tier,
    ZoneRules,
)
from horolog.streams.calendar import Zones, next_slot
from horolog.streams.limits import FENCING_GENERATION


class Lease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The right of one worker to execute one attempt."""

    token: int
    worker_id: str
    inbox: str
    claim_id: str
    term_us: int
    granted_us: int
    """Lease time, not wall time, at the grant."""


class Run(msgspec.Struct, kw_only=True):
    """A run that is not at its end."""

    run_id: RunId
    origin: RunOrigin
    status: RunStatus
    due_us: int
    plan: int
    """seq of the event by which it last began to wait; older claims are stale."""
    tier: Tier
    pool: str
    not_before_us: int = 0
    slot_us: int | None = None
    held: bool = False
    """A pause holds it: the dispatcher is told it is closed."""
    gated: bool = False
    """The overlap policy is yet to be judged: the dispatcher does not know of it."""
    attempt: int = 0
    round: int = 0
    failures: int = 0
    losses: int = 0
    version: int = 0
    """Version of the definition it keeps, taken at the first grant of a round; 0 = none yet."""
    lease: Lease | None = None
    cancel_asked: bool = False
    cancel_reason: str = ""
    dead_us: int = 0
    key: str = ""
    payload: bytes | None = None
    requested_by: str = ""
    reply_to: str = ""

    @property
    def is_manual(self) -> bool:
        """Whether somebody triggered it, so that no slot depends on it."""
        return self.origin is RunOrigin.MANUAL

    @property
    def is_unstarted_slot(self) -> bool:
        """Whether it stands for a slot that may still be skipped."""
        return (
            self.origin is not RunOrigin.MANUAL
            and self.version == 0
            and self.round == 0
            and (self.status is RunStatus.PLANNED or self.status is RunStatus.QUEUED)
        )

    @property
    def is_waiting(self) -> bool:
        """Whether a worker may claim it once it is due."""
        # Cost: a set of an enum's members hashes each by a call; this is asked of every open run.
        return (
            not self.held
            and not self.gated
            and (self.status is RunStatus.PLANNED or self.status is RunStatus.QUEUED)
        )

    @property
    def occupies(self) -> bool:
        """Whether it counts for the job's overlap policy: an open attempt, a waiting retry, or a
        run that was let through and waits for a worker.
        """
        return self.status is RunStatus.RUNNING or (
            self.status is RunStatus.QUEUED and not self.gated
        )


class Job(msgspec.Struct, kw_only=True):
    """A job, or the stub of one that was deleted."""

    job_id: JobId
    status: JobStatus
    definition: JobDefinition | None
    version: int = 0
    kept: dict[int, JobDefinition] = {}
    """Older definitions that open runs keep, by version."""
    created_us: int = 0
    accounted_to_us: int = 0
    """Slots up to here are decided for good; never goes back."""
    planned_to_us: int = 0
    """Slots up to here have a run or a decision; an edit takes it back to `accounted_to_us`."""
    paused_until_us: int | None = None
    deleted_us: int | None = None
    trigger_tokens_milli: int = 0
    trigger_at_us: int = 0
    runs: dict[RunId, Run] = {}
    cursors: dict[int, Cursor] = {}
    cursor_next: int = 1
    skipped: list[SkippedRange] = []
    """Ranges of slots that may be backfilled, oldest first."""
    keys: dict[str, RunKey] = {}
    commands: dict[str, CommandMemory] = {}
    ended: dict[int, int] = {}
    """Token of a completion that counted -> its time."""
    rejected: list[int] = []
    requested_by: str = ""
    reply_to: str = ""
    principal: str = ""

    @property
    def exists(self) -> bool:
        """Whether it counts against the tenant's job limit."""
        return self.status is JobStatus.ACTIVE or self.status is JobStatus.PAUSED

    @property
    def in_force(self) -> JobDefinition:
        """The definition in force; only for a job that has one."""
        assert self.definition is not None, f"{self.job_id} is a stub"
        return self.definition

    def definition_of(self, run: Run) -> JobDefinition:
        """The definition that a run keeps, or the one in force if it keeps none yet."""
        return self.kept.get(run.version) or self.in_force


class PartitionState:
    """Everything one ledger partition's events add up to."""

    __slots__ = (
        "at_us",
        "dispatcher_epochs",
        "generation",
        "jobs",
        "lease_time_us",
        "log_id",
        "next_slots",
        "partition",
        "partitions",
        "positions",
        "seq",
        "tenant_jobs",
        "tzdata",
        "writer_epoch",
        "zone_rules",
        "zones",
    )

    def __init__(self, partition: int) -> None:
        """An empty partition, before its first event."""
        self.partition = partition
        self.partitions = 0
        self.log_id = ""
        self.generation = 0
        self.seq = 0
        self.at_us = 0
        self.writer_epoch = 0
        self.lease_time_us = 0
        self.positions: dict[str, int] = {}
        self.dispatcher_epochs: dict[int, int] = {}
        self.tzdata = ""
        self.zone_rules: list[ZoneRules] = []
        self.jobs: dict[JobId, Job] = {}
        # Derived.
        self.zones = Zones()
        self.tenant_jobs: dict[TenantId, int] = {}
        self.next_slots: dict[JobId, tuple[int, int | None]] = {}

    def next_slot_of(self, job: Job) -> int | None:
        """The first slot after `planned_to_us`, in microseconds UTC.

        Remembered, since each run asks for it six times: by the instant it was counted from, and
        forgotten when a definition or zone rules change (`evolve`).
        """
        known = self.next_slots.get(job.job_id)
        if known is not None and known[0] == job.planned_to_us:
            return known[1]
        slot_us = next_slot(job.in_force.schedule, job.job_id, job.planned_to_us, self.zones)
        self.next_slots[job.job_id] = (job.planned_to_us, slot_us)
        return slot_us

    def recount(self) -> None:
        """Derive the numbers of jobs again, after jobs came from snapshots."""
        self.tenant_jobs = {}
        for job in self.jobs.values():
            if job.exists:
                tenant = tenant_of(job.job_id)
                self.tenant_jobs[tenant] = self.tenant_jobs.get(tenant, 0) + 1

    def token_of(self, seq: int) -> int:
        """Fencing token of the attempt whose `RunStarted` has this seq (< 2^53, exact in JSON)."""
        return self.generation * FENCING_GENERATION + seq


class Soft:
    """What an owner knows beside the folded state: lease time as it moves, and the last heartbeat
    of each lease with the inbox it named. In no snapshot; a new owner starts each live lease with
    a full term (`take_over`). It survives an abort. The host writes it, `decide` reads it.
    """

    __slots__ = ("beats", "fresh", "lease_time_us", "mark_us")

    def __init__(self) -> None:
        """Nothing known yet."""
        self.lease_time_us = 0
        self.mark_us: int | None = None
        self.beats: dict[RunId, Beat] = {}
        self.fresh: set[RunId] = set()

    def take_over(self, state: PartitionState) -> None:
        """Count lease time on from the ledger and give each live lease a full term."""
        self.lease_time_us = state.lease_time_us
        for job in state.jobs.values():
            for run in job.runs.values():
                if run.lease is not None:
                    self.begin(run.run_id, run.lease.inbox)

    def mark(self, append_us: int, step_max_us: int) -> None:
        """Move lease time on by the time since the mark before, at least 0, at most the limit.

        Heartbeats read since then count from here: a beat is never counted earlier than it was
        sent, so a lease may end late and never early.
        """
        if self.mark_us is not None:
            self.lease_time_us += min(max(append_us - self.mark_us, 0), step_max_us)
        self.mark_us = append_us
        for run_id in self.fresh:
            beat = self.beats.get(run_id)
            if beat is not None:
                self.beats[run_id] = Beat(self.lease_time_us, beat.inbox)
        self.fresh.clear()

    def begin(self, run_id: RunId, inbox: str) -> None:
        """Note a grant or a heartbeat; it counts from the next mark."""
        self.beats[run_id] = Beat(self.lease_time_us, inbox)
        self.fresh.add(run_id)

    def end(self, run_id: RunId) -> None:
        """Forget a lease."""
        self.beats.pop(run_id, None)
        self.fresh.discard(run_id)


class Beat(msgspec.Struct, frozen=True, gc=False):
    """The last sign of life of a lease."""

    at_us: int
    """Lease time."""
    inbox: str
