"""A partition's core under test: inputs in, events and messages out, time in the test's hand."""

from collections.abc import Sequence
from typing import TypeVar

from horolog.schemas.ids import run_id_of_slot
from horolog.schemas.records import (
    AdmissionAnswer,
    CatchUp,
    ClaimRun,
    CompleteRun,
    CreateJob,
    Event,
    Heartbeat,
    InventoryWanted,
    JobDefinition,
    JobId,
    Overlap,
    ReleaseRun,
    RepairWanted,
    RetryPolicy,
    RunId,
    RunResult,
    Schedule,
    Target,
    TriggerJob,
)
from horolog.streams.host.clock import SteadyClock
from horolog.streams.host.owner import Owner, ZoneSource
from horolog.streams.host.tzdata import zone_rules
from horolog.streams.limits import SECOND_US
from horolog.streams.log import Batch
from horolog.streams.log.memory import MemoryLog
from horolog.streams.scheduler import Job, PartitionState, Run
from horolog.streams.scheduler.inputs import Input, LeaseCheck, Wake, ZonesSeen
from horolog.streams.scheduler.messages import Message

T0 = 1_714_996_800_000_000  # 2024-05-06T12:00:00Z, a Monday
JOB = JobId("acme.nightly")
EPOCH = 1
_E = TypeVar("_E")


class HandClock:
    """A clock that the test sets."""

    def __init__(self, at_us: int = T0) -> None:
        self.at_us = at_us
        self.booted_us = 0

    def wall_us(self) -> int:
        """Wall time as set."""
        return self.at_us

    def boot_us(self) -> int:
        """Boot time, moved by `advance`."""
        return self.booted_us

    def advance(self, us: int) -> None:
        """Both clocks go on."""
        self.at_us += us
        self.booted_us += us


class Core:
    """One partition owned by a real `Owner` on a memory log; each call is one step."""

    def __init__(
        self,
        at_us: int = T0,
        log: MemoryLog | None = None,
        *,
        zones: ZoneSource = zone_rules,
        tzdata: str = "2026f",
    ) -> None:
        self.zones = zones
        self.tzdata = tzdata
        self.clock = HandClock(at_us)
        self.steady = SteadyClock(self.clock)
        self.log = log or MemoryLog(partitions=1)
        self.events: list[Event] = []
        self.messages: list[Message] = []
        self.owner = self._take_over()

    def _take_over(self) -> Owner:
        owner = Owner(self.log, 0, name="test", zones=self.zones, tzdata=self.tzdata)
        self._commit(owner, owner.take_over(self.clock.at_us, self.clock.booted_us))
        owner.inbox.answer(InventoryWanted(partition=0, dispatcher=0, epoch=EPOCH))
        self._commit(owner, owner.step(self.clock.at_us, self.clock.booted_us))
        return owner

    def restart(self, down_us: int = 0) -> None:
        """The process dies and another one takes the partition over, some time later."""
        self.clock.advance(down_us)
        self.owner = self._take_over()

    def _commit(self, owner: Owner, batch: Batch | None) -> list[Event]:
        events: list[Event] = []
        if batch is not None:
            self.log.append([batch])
            events = list(batch.events)
        self.events += events
        self.messages += owner.committed()
        return events

    @property
    def state(self) -> PartitionState:
        """The folded state."""
        return self.owner.state

    @property
    def now_us(self) -> int:
        """Time of the test's clock."""
        return self.clock.at_us

    def job(self, job_id: JobId = JOB) -> Job:
        """A job of the state."""
        return self.state.jobs[job_id]

    def run(self, run_id: RunId) -> Run:
        """An open run of the state."""
        return self.state.jobs[JobId(run_id.rpartition("@")[0])].runs[run_id]

    def step(self, *items: Input) -> list[Event]:
        """Read these inputs, and whatever time asks for, in one step; the events it appended."""
        for item in items:
            self._offer(item)
        return self._commit(self.owner, self.owner.step(self.clock.at_us, self.clock.booted_us))

    def _offer(self, item: Input) -> None:
        if isinstance(item, ClaimRun | Heartbeat | CompleteRun | ReleaseRun):
            self.owner.inbox.report(item)
        elif isinstance(item, AdmissionAnswer | InventoryWanted):
            self.owner.inbox.answer(item)
        else:
            assert not isinstance(item, Wake | LeaseCheck | ZonesSeen | RepairWanted)
            self.owner.inbox.command(item)

    def pass_time(self, us: int, step_us: int = SECOND_US) -> list[Event]:
        """Let time pass, a step each second; the events of all steps."""
        events: list[Event] = []
        end_us = self.clock.at_us + us
        while self.clock.at_us < end_us:
            self.clock.advance(min(step_us, end_us - self.clock.at_us))
            events += self.step()
        return events

    def create(self, definition: JobDefinition, job_id: JobId = JOB) -> list[Event]:
        """Register a job and admit it."""
        events = self.step(
            CreateJob(command_id=f"create {job_id}", job_id=job_id, definition=definition)
        )
        return events + self.step(admission(job_id))

    def trigger(self, key: str, job_id: JobId = JOB, payload: bytes | None = None) -> RunId:
        """Ask for a manual run and admit it."""
        self.step(TriggerJob(command_id=f"trigger {key}", job_id=job_id, key=key, payload=payload))
        run_id = self.job(job_id).keys[key].run_id
        self.step(admission(job_id, run_id))
        return run_id

    def claim(self, run_id: RunId, claim_id: str = "c1", worker: str = "w1") -> list[Event]:
        """A worker claims a run by its present plan."""
        return self.step(
            ClaimRun(
                run_id=run_id,
                plan=self.run(run_id).plan,
                dispatcher=0,
                epoch=EPOCH,
                worker_id=worker,
                inbox=worker,
                claim_id=claim_id,
            )
        )

    def token(self, run_id: RunId) -> int:
        """Token of a run's live lease."""
        lease = self.run(run_id).lease
        assert lease is not None
        return lease.token

    def complete(
        self, run_id: RunId, result: RunResult = RunResult.SUCCEEDED, claim_id: str = "c1"
    ) -> list[Event]:
        """The worker that holds the lease says how the attempt ended."""
        return self.step(completion(run_id, self.token(run_id), result, claim_id))

    def sent(self, kind: type[_E]) -> list[_E]:
        """Messages of a kind sent since the last call, in order; the others stay."""
        found: list[_E] = [message for message in self.messages if isinstance(message, kind)]
        self.messages = [message for message in self.messages if not isinstance(message, kind)]
        return found


def completion(
    run_id: RunId, token: int, result: RunResult = RunResult.SUCCEEDED, claim_id: str = "c1"
) -> CompleteRun:
    """A worker's word on an attempt."""
    return CompleteRun(run_id=run_id, token=token, claim_id=claim_id, inbox="w1", result=result)


def admission(
    job_id: JobId, run_id: RunId | None = None, *, admitted: bool = True, code: str = ""
) -> AdmissionAnswer:
    """The dispatcher's answer to what was asked for."""
    return AdmissionAnswer(
        partition=0,
        dispatcher=0,
        epoch=EPOCH,
        job_id=job_id,
        run_id=run_id,
        admitted=admitted,
        code=code,
    )


def definition(
    cron: str | None = "*/5 * * * *",
    *,
    schedule: Schedule | None = None,
    catch_up: CatchUp = CatchUp.ONE,
    overlap: Overlap = Overlap.ALLOW,
    retries: int = 0,
    lost_max: int = 3,
    jitter_us: int = 0,
    starting_deadline_us: int | None = None,
    timeout_us: int = 600 * SECOND_US,
    description: str = "",
    pool: str = "default",
) -> JobDefinition:
    """A small job that calls a handler."""
    return JobDefinition(
        schedule=schedule or Schedule(cron=cron, jitter_us=jitter_us),
        target=Target(handler="noop"),
        retry=RetryPolicy(max=retries, lost_max=lost_max),
        catch_up=catch_up,
        overlap=overlap,
        starting_deadline_us=starting_deadline_us,
        timeout_us=timeout_us,
        description=description,
        pool=pool,
    )


def run_at(slot_us: int, job_id: JobId = JOB) -> RunId:
    """Run ID of a slot."""
    return run_id_of_slot(job_id, slot_us)


def only(events: Sequence[Event], kind: type[_E]) -> list[_E]:
    """The events of one type."""
    return [event for event in events if isinstance(event, kind)]
