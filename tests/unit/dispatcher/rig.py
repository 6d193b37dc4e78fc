"""A dispatcher on a bench: what its schedulers tell it and what it sends, time set by hand."""

from collections.abc import Iterable, Sequence

import msgspec

from horolog.schemas.records import (
    AdmissionAnswer,
    DigestSent,
    DispatchStatus,
    EpochSuperseded,
    Hint,
    Hints,
    InventoryBegan,
    InventoryEnded,
    InventoryWanted,
    JobAsk,
    JobId,
    RepairWanted,
    RunId,
    RunState,
    RunStates,
    TenantId,
    TenantJobs,
    TenantSettings,
    Tier,
)
from horolog.streams.dispatcher import Dispatcher, Incoming, Outgoing
from horolog.streams.dispatcher.digest import Digest
from horolog.streams.limits import MILLISECOND_US, SECOND_US

T0 = 1_800_000_000 * SECOND_US
EPOCH = 3
WRITER = 7


def a_run(
    name: str | int = 0,
    tenant: str = "acme",
    *,
    plan: int = 10,
    at_us: int = T0,
    due_us: int | None = None,
    tier: Tier = Tier.NORMAL,
    pool: str = "default",
    make_up: bool = False,
    status: DispatchStatus = DispatchStatus.WAITING,
) -> RunState:
    """A run that waits and is due."""
    return RunState(
        run_id=RunId(f"{tenant}.job-{name}@manual-1"),
        tenant=TenantId(tenant),
        plan=plan,
        status=status,
        not_before_us=at_us,
        due_us=at_us if due_us is None else due_us,
        tier=tier,
        pool=pool,
        make_up=make_up,
    )


def pending(state: RunState) -> RunState:
    """The run, asked for and not admitted."""
    return msgspec.structs.replace(state, status=DispatchStatus.PENDING)


def started(state: RunState) -> RunState:
    """The run, held by a worker."""
    return msgspec.structs.replace(state, status=DispatchStatus.STARTED, attempt=state.attempt + 1)


def again(state: RunState, plan: int, at_us: int | None = None) -> RunState:
    """The run, waiting anew."""
    return msgspec.structs.replace(
        state,
        status=DispatchStatus.WAITING,
        plan=plan,
        not_before_us=state.not_before_us if at_us is None else at_us,
    )


def closed(state: RunState) -> RunState:
    """The run, ended or held."""
    return msgspec.structs.replace(state, status=DispatchStatus.CLOSED, plan=0, pool="")


def settings(
    tenant: str = "acme",
    concurrency: int | None = None,
    backlog: int | None = None,
    jobs: int | None = None,
) -> TenantSettings:
    """Limits of a tenant."""
    return TenantSettings(
        tenant=TenantId(tenant), concurrency=concurrency, backlog=backlog, jobs=jobs
    )


def digest_of(states: Iterable[RunState]) -> tuple[int, ...]:
    """The scheduler's digest over its open runs."""
    digest = Digest()
    for state in states:
        digest.add(state)
    return digest.buckets()


class Rig:
    """A dispatcher of which every ledger partition has told that nothing is open."""

    def __init__(
        self, partitions: int = 1, *, limits: Sequence[TenantSettings] = (), ready: bool = True
    ) -> None:
        self.now_us = T0
        self.index = Dispatcher(dispatcher=0, epoch=EPOCH, ledger_partitions=partitions)
        self.seqs = [100] * partitions
        self.writers = [WRITER] * partitions
        for each in limits:
            self.receive(each)
        if ready:
            self.index.tick(self.now_us)
            for partition in range(partitions):
                self.inventory(partition)

    def receive(self, message: Incoming) -> None:
        self.index.receive(message, self.now_us)

    def tell(
        self,
        *states: RunState,
        partition: int = 0,
        seq: int | None = None,
        asks: Sequence[JobAsk] = (),
        jobs: Sequence[TenantJobs] = (),
    ) -> RunStates:
        """One step's states; the message, to be told again. `seq` None: one more than before."""
        if seq is None:
            self.seqs[partition] += 1
            seq = self.seqs[partition]
        message = RunStates(
            partition=partition,
            writer_epoch=self.writers[partition],
            seq=seq,
            runs=states,
            asks=tuple(asks),
            tenants=tuple(jobs),
        )
        self.receive(message)
        return message

    def began(self, partition: int = 0, epoch: int = EPOCH) -> None:
        self.receive(
            InventoryBegan(
                partition=partition,
                writer_epoch=self.writers[partition],
                seq=self.seqs[partition],
                dispatcher=0,
                epoch=epoch,
            )
        )

    def ended(self, count: int, partition: int = 0) -> None:
        self.receive(
            InventoryEnded(
                partition=partition,
                writer_epoch=self.writers[partition],
                seq=self.seqs[partition],
                dispatcher=0,
                epoch=EPOCH,
                runs_count=count,
            )
        )

    def inventory(self, partition: int = 0, *states: RunState) -> None:
        """A whole inventory of the partition."""
        self.began(partition)
        if states:
            self.tell(*states, partition=partition)
        self.ended(len(states), partition)

    def digest(self, *states: RunState, partition: int = 0) -> None:
        """The scheduler's digest, over its open runs."""
        self.receive(
            DigestSent(
                partition=partition,
                writer_epoch=self.writers[partition],
                seq=self.seqs[partition],
                dispatcher=0,
                buckets=digest_of(states),
            )
        )

    def supersede(self, epoch: int) -> None:
        self.receive(
            EpochSuperseded(partition=0, writer_epoch=WRITER, seq=0, dispatcher=0, epoch=epoch)
        )

    def ask_job(self, name: str, tenant: str = "acme", partition: int = 0) -> JobAsk:
        """A job waits for admission."""
        ask = JobAsk(tenant=TenantId(tenant), job_id=JobId(f"{tenant}.{name}"))
        self.tell(asks=[ask], partition=partition)
        return ask

    def tick(self, after_ms: int = 0) -> list[Outgoing]:
        """What is sent, so many milliseconds later."""
        self.now_us += after_ms * MILLISECOND_US
        return self.index.tick(self.now_us)

    def hints(self, after_ms: int = 0) -> list[Hint]:
        """The hints sent, so many milliseconds later."""
        return hints_in(self.tick(after_ms))

    def hinted(self, after_ms: int = 0) -> list[RunId]:
        """The runs hinted, so many milliseconds later."""
        return [hint.run_id for hint in self.hints(after_ms)]

    def answers(self, after_ms: int = 0) -> list[AdmissionAnswer]:
        """The answers sent, so many milliseconds later."""
        return [each for each in self.tick(after_ms) if isinstance(each, AdmissionAnswer)]

    def wanted(self, after_ms: int = 0) -> list[int]:
        """Partitions asked for an inventory, so many milliseconds later."""
        return [each.partition for each in self.tick(after_ms) if isinstance(each, InventoryWanted)]

    def repairs(self, after_ms: int = 0) -> list[RepairWanted]:
        """Repairs asked for, so many milliseconds later."""
        return [each for each in self.tick(after_ms) if isinstance(each, RepairWanted)]

    def missing(self) -> tuple[int, ...]:
        """Partitions for which tenants with limits wait."""
        return self.index.missing

    def holding(self, run_id: RunId) -> int:
        """Places of its tenant's quota that are held."""
        return self.index.explain(run_id, self.now_us).holding


def hints_in(sent: Iterable[Outgoing]) -> list[Hint]:
    """All hints of some messages."""
    return [hint for each in sent if isinstance(each, Hints) for hint in each.hints]


def ids(states: Iterable[RunState]) -> list[RunId]:
    """IDs of runs."""
    return [state.run_id for state in states]
