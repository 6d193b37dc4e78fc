"""Plausible ledgers of any number of partitions, made event by event.

The builder knows the life of a run but decides nothing by a schedule: so a ledger of any shape is
at hand without a scheduler, and what each run came to is known to compare with.
"""

import msgspec

from horolog.schemas.ids import partition_of, run_id_of_key, run_id_of_slot
from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    CancelRequested,
    EpochStarted,
    Event,
    InputsRead,
    JobCreated,
    JobDefinition,
    JobDeleted,
    JobId,
    JobPaused,
    JobRequested,
    JobResumed,
    JobUpdated,
    LogCreated,
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
    Schedule,
    SkipReason,
    SlotsSkipped,
    Target,
)
from horolog.streams.log import Batch
from horolog.streams.log.memory import MemoryLog

T0 = 1_714_996_800_000_000  # 2024-05-06T12:00:00Z
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
DAY_US = 86_400 * SECOND_US
GENERATION = 1
FENCING_GENERATION = 1 << 40
JOBS = tuple(JobId(name) for name in ("acme.a", "acme.b", "acme-two.a", "other.c"))


def definition(text: str = "", **labels: str) -> JobDefinition:
    """A small job; `text` tells definitions apart."""
    return JobDefinition(
        schedule=Schedule(cron="* * * * *"),
        target=Target(handler="noop"),
        description=text,
        labels=labels,
        payload=b"\x00\xff",
    )


class RunLife:
    """Where a run is, as the ledger so far says."""

    def __init__(self, job_id: JobId, run_id: RunId, at_us: int, status: str) -> None:
        self.job_id = job_id
        self.run_id = run_id
        self.at_us = at_us
        self.status = status
        """As users see it; `revoked` for one that is not shown."""
        self.attempt = 0
        self.round = 0
        self.token = 0
        self.attempts = 0
        """Of all rounds, released ones included."""

    @property
    def is_open(self) -> bool:
        """Whether something may still happen to it."""
        return self.status in ("pending", "planned", "queued", "running", "dead")


class JobLife:
    """Where a job is."""

    def __init__(self, job_id: JobId) -> None:
        self.job_id = job_id
        self.status = ""
        self.version = 0
        self.slot_us = T0
        self.skipped: list[int] = []
        """Single slots that were skipped and may be backfilled."""
        self.cursor = 0
        self.cursor_is_open = False


class Ledger:
    """A log in the making. Events are written by `commit`."""

    def __init__(self, partitions: int = 1, at_us: int = T0, log_id: str = "memory") -> None:
        self.log = MemoryLog(partitions, log_id=log_id)
        self.now_us: int = at_us
        self.jobs: dict[JobId, JobLife] = {}
        self.runs: dict[tuple[RunId, int], RunLife] = {}
        """By ID and place: a key may be used again."""
        self._open: list[list[Event]] = [[] for _ in range(partitions)]
        self._seqs = [0] * partitions
        for partition in range(partitions):
            self._add(
                partition,
                LogCreated(
                    log_id=self.log.log_id,
                    generation=GENERATION,
                    partition=partition,
                    partitions=partitions,
                    tzdata="2026.6",
                ),
            )
            self._add(partition, EpochStarted(last_good_seq=0))
        self.commit()

    # --- the log

    def add(self, job_id: JobId, event: Event) -> int:
        """Append an event of a job to its partition's open batch; its `seq`."""
        return self._add(partition_of(job_id, self.log.partitions), event)

    def _add(self, partition: int, event: Event) -> int:
        batch = self._open[partition]
        self.now_us += 1
        self._seqs[partition] += 1
        seq = self._seqs[partition]
        stamped = msgspec.structs.replace(
            event,
            seq=seq,
            writer_epoch=1,
            at_us=self.now_us,
            batch=batch[0].seq if batch else seq,
        )
        batch.append(stamped)
        return seq

    def commit(self) -> list[Batch]:
        """Write what is open; the batches."""
        batches: list[Batch] = []
        for partition, events in enumerate(self._open):
            if events:
                self._add(partition, InputsRead(records=len(events) + 1))
                batches.append(Batch(partition=partition, events=tuple(events)))
                self._open[partition] = []
        self.log.append(batches)
        return batches

    @property
    def batches(self) -> list[list[Batch]]:
        """All of them, by partition."""
        return [list(self.log.read(partition, 0)) for partition in range(self.log.partitions)]

    # --- jobs

    def job(self, job_id: JobId) -> JobLife:
        """A job, perhaps one that does not exist."""
        return self.jobs.setdefault(job_id, JobLife(job_id))

    def create(self, job_id: JobId, made: JobDefinition | None = None, by: str = "ann") -> None:
        """Ask for a job and admit it."""
        job = self.job(job_id)
        made = made or definition(f"{job.version + 1}")
        self.add(job_id, JobRequested(job_id=job_id, definition=made, principal=by))
        job.version += 1
        job.status = "active"
        self.add(
            job_id,
            JobCreated(
                job_id=job_id,
                version=job.version,
                definition=made,
                accounted_to_us=self.now_us,
                principal=by,
            ),
        )

    def update(self, job_id: JobId, made: JobDefinition, by: str = "bob") -> None:
        """Give a job another definition."""
        job = self.job(job_id)
        job.version += 1
        self.add(
            job_id,
            JobUpdated(
                job_id=job_id,
                version=job.version,
                definition=made,
                accounted_to_us=self.now_us,
                principal=by,
            ),
        )

    def pause(self, job_id: JobId, reason: str = "") -> None:
        """Pause a job."""
        self.job(job_id).status = "paused"
        self.add(job_id, JobPaused(job_id=job_id, accounted_to_us=self.now_us, reason=reason))

    def resume(self, job_id: JobId) -> None:
        """Resume a job."""
        self.job(job_id).status = "active"
        self.add(job_id, JobResumed(job_id=job_id, accounted_to_us=self.now_us))

    def delete(self, job_id: JobId) -> None:
        """End a job, and its runs that have not begun."""
        job = self.job(job_id)
        for run in [run for run in self.runs.values() if run.job_id == job_id]:
            if run.status == "dead":
                self.discard(run)
            elif run.is_open and run.status != "running":
                self.cancel(run)
        job.status = "deleted"
        self.add(job_id, JobDeleted(job_id=job_id, accounted_to_us=self.now_us, principal="ann"))

    # --- runs

    def plan(self, job_id: JobId, slot_us: int, origin: RunOrigin = RunOrigin.SCHEDULE) -> RunLife:
        """Plan the run of a slot."""
        run_id = run_id_of_slot(job_id, slot_us)
        self.add(
            job_id,
            RunPlanned(
                job_id=job_id, run_id=run_id, slot_us=slot_us, due_us=slot_us + 5, origin=origin
            ),
        )
        run = self.runs[run_id, slot_us] = RunLife(job_id, run_id, slot_us, "planned")
        return run

    def request(self, job_id: JobId, key: str, *, admit: bool = True) -> RunLife:
        """Ask for a manual run."""
        run_id = run_id_of_key(job_id, key)
        self.add(job_id, RunRequested(job_id=job_id, run_id=run_id, key=key, principal="ann"))
        run = self.runs[run_id, self.now_us] = RunLife(job_id, run_id, self.now_us, "pending")
        if admit:
            self.move(run, "queued", RunAdmitted(job_id=job_id, run_id=run_id))
        return run

    def start(self, run: RunLife, worker: str = "w1") -> None:
        """A worker begins an attempt."""
        run.attempt += 1
        run.attempts += 1
        run.status = "running"
        seq = self.add(
            run.job_id,
            RunStarted(
                job_id=run.job_id,
                run_id=run.run_id,
                attempt=run.attempt,
                round=run.round,
                worker_id=worker,
                inbox="i",
                claim_id="c",
                generation=GENERATION,
                term_us=30 * SECOND_US,
                version=self.job(run.job_id).version,
                lease_time_us=0,
            ),
        )
        run.token = seq + GENERATION * FENCING_GENERATION

    def succeed(self, run: RunLife, output: bytes = b"", warning: str = "") -> None:
        """The attempt ends well."""
        event = RunSucceeded(
            job_id=run.job_id,
            run_id=run.run_id,
            attempt=run.attempt,
            round=run.round,
            token=run.token,
            exit_code=0,
            output=output,
            warning=warning,
        )
        self.move(run, "succeeded", event)

    def fail(
        self,
        run: RunLife,
        outcome: AttemptOutcome = AttemptOutcome.FAILED,
        *,
        error: str = "boom",
        retry_us: int | None = SECOND_US,
    ) -> None:
        """The attempt ends without success; the run waits again."""
        event = AttemptEnded(
            job_id=run.job_id,
            run_id=run.run_id,
            attempt=run.attempt,
            round=run.round,
            token=run.token,
            outcome=outcome,
            error=error,
            exit_code=1,
            retry_at_us=None if retry_us is None else self.now_us + retry_us,
        )
        self.move(run, "queued", event)
        if outcome is AttemptOutcome.RELEASED:
            run.attempt -= 1

    def die(self, run: RunLife) -> None:
        """The last attempt that was allowed fails."""
        self.fail(run, retry_us=None)
        event = RunDeadLettered(
            job_id=run.job_id, run_id=run.run_id, round=run.round, reason="attempts used up"
        )
        self.move(run, "dead", event)

    def redrive(self, run: RunLife) -> None:
        """A dead run begins anew."""
        run.round += 1
        run.attempt = 0
        event = RunRedriven(job_id=run.job_id, run_id=run.run_id, round=run.round, principal="ann")
        self.move(run, "queued", event)

    def discard(self, run: RunLife) -> None:
        """A dead run is given up."""
        event = RunDiscarded(job_id=run.job_id, run_id=run.run_id, reason="no use")
        self.move(run, "discarded", event)

    def cancel(self, run: RunLife) -> None:
        """End a run by request; one with an attempt by way of its worker."""
        if run.status == "running":
            self.ask_cancel(run)
            self.fail(run, AttemptOutcome.CANCELLED, retry_us=None)
        event = RunCancelled(
            job_id=run.job_id, run_id=run.run_id, reason="not now", principal="ann"
        )
        self.move(run, "cancelled", event)

    def ask_cancel(self, run: RunLife) -> None:
        """The worker is to be told."""
        self.add(
            run.job_id,
            CancelRequested(
                job_id=run.job_id,
                run_id=run.run_id,
                token=run.token,
                reason="not now",
                principal="ann",
            ),
        )

    def skip(self, run: RunLife, reason: SkipReason = SkipReason.OVERLAP) -> None:
        """A planned run does not start."""
        event = RunSkipped(job_id=run.job_id, run_id=run.run_id, slot_us=run.at_us, reason=reason)
        self.move(run, "skipped", event)
        self.job(run.job_id).skipped.append(run.at_us)

    def revoke(self, run: RunLife) -> None:
        """A planned run is taken back."""
        event = RunRevoked(job_id=run.job_id, run_id=run.run_id, slot_us=run.at_us)
        self.move(run, "revoked", event)

    def refuse(self, run: RunLife) -> None:
        """A manual run is not admitted."""
        event = RunRefused(job_id=run.job_id, run_id=run.run_id, code="backlog_full", detail="full")
        self.move(run, "refused", event)

    def queue(self, run: RunLife) -> None:
        """The overlap policy lets a run through."""
        self.move(run, "queued", RunQueued(job_id=run.job_id, run_id=run.run_id))

    def skip_slots(
        self, job_id: JobId, after_us: int, to_us: int, reason: SkipReason = SkipReason.PAUSED
    ) -> None:
        """Slots that were never planned do not run."""
        self.add(
            job_id,
            SlotsSkipped(
                job_id=job_id,
                after_us=after_us,
                to_us=to_us,
                slots_count=(to_us - after_us) // MINUTE_US,
                reason=reason,
            ),
        )

    def move(self, run: RunLife, status: str, event: Event) -> None:
        """An event takes a run to a status."""
        run.status = status
        self.add(run.job_id, event)
