"""A dispatcher under test, with a ledger side that tells it states and a pool that claims."""

from collections.abc import Iterable, Sequence

from horolog.schemas.records import (
    AdmissionAnswer,
    DispatchStatus,
    Hint,
    Hints,
    InventoryBegan,
    InventoryEnded,
    InventoryWanted,
    RunId,
    RunState,
    RunStates,
    TenantId,
    TenantSettings,
    Tier,
)
from horolog.streams.dispatcher import Dispatcher
from horolog.streams.dispatcher.index import Outgoing
from horolog.streams.limits import MILLISECOND_US

EPOCH = 1
START_US = 1_000_000_000_000


def waiting(
    name: str,
    tenant: str = "acme",
    *,
    due_us: int = START_US,
    plan: int = 1,
    tier: Tier = Tier.NORMAL,
    make_up: bool = False,
    status: DispatchStatus = DispatchStatus.WAITING,
) -> RunState:
    """The state of a run, waiting unless told."""
    return RunState(
        run_id=RunId(f"{tenant}.job@{name}"),
        tenant=TenantId(tenant),
        plan=plan,
        attempt=0,
        status=status,
        not_before_us=due_us,
        due_us=due_us,
        tier=tier,
        pool="default",
        make_up=make_up,
    )


def moved(state: RunState, status: DispatchStatus) -> RunState:
    """The same run in another status."""
    return RunState(
        run_id=state.run_id,
        tenant=state.tenant,
        plan=state.plan,
        attempt=state.attempt + (status is DispatchStatus.STARTED),
        status=status,
        not_before_us=state.not_before_us,
        due_us=state.due_us,
        tier=state.tier,
        pool=state.pool,
        make_up=state.make_up,
    )


class Desk:
    """A dispatcher of one ledger partition whose inventory was empty at the start."""

    def __init__(self, epoch: int = EPOCH) -> None:
        self.now_us = START_US
        self.seq = 0
        self.dispatcher = Dispatcher(dispatcher=0, epoch=epoch, ledger_partitions=1)
        self.known: dict[RunId, RunState] = {}
        self.sent: list[Outgoing] = []
        self.inventory(())

    def inventory(self, states: Sequence[RunState]) -> None:
        """The partition tells all its open runs."""
        epoch = self.dispatcher.epoch
        marks = {"partition": 0, "writer_epoch": 1, "dispatcher": 0, "epoch": epoch}
        self.seq += 1
        self.dispatcher.receive(InventoryBegan(seq=self.seq, **marks), self.now_us)
        self.tell(states)
        self.dispatcher.receive(
            InventoryEnded(seq=self.seq, runs_count=len(states), **marks), self.now_us
        )

    def tell(self, states: Iterable[RunState], seq: int | None = None) -> None:
        """The partition tells states, with the stamp of now or an older one."""
        if seq is None:
            self.seq += 1
        runs = tuple(states)
        message = RunStates(partition=0, writer_epoch=1, seq=seq or self.seq, runs=runs)
        self.dispatcher.receive(message, self.now_us)
        self.known.update((state.run_id, state) for state in runs)

    def limit(self, tenant: str, **limits: int) -> None:
        """Set a tenant's limits."""
        self.dispatcher.receive(TenantSettings(tenant=TenantId(tenant), **limits), self.now_us)

    def tick(self, pass_us: int = 0) -> list[Hint]:
        """Let time pass; the hints sent."""
        self.now_us += pass_us
        sent = self.dispatcher.tick(self.now_us)
        self.sent += sent
        return [hint for message in sent if isinstance(message, Hints) for hint in message.hints]

    def answers(self) -> list[AdmissionAnswer]:
        """Admission answers sent since the last call."""
        found = [message for message in self.sent if isinstance(message, AdmissionAnswer)]
        self.sent = [each for each in self.sent if not isinstance(each, AdmissionAnswer)]
        return found

    def questions(self) -> list[InventoryWanted]:
        """Inventories asked for so far."""
        return [message for message in self.sent if isinstance(message, InventoryWanted)]

    def start(self, hints: Iterable[Hint]) -> None:
        """Workers claim the hints and the scheduler grants them."""
        self.tell(moved(self.known[hint.run_id], DispatchStatus.STARTED) for hint in hints)

    def end(self, run_ids: Iterable[RunId]) -> None:
        """Runs have ended."""
        self.tell(moved(self.known[run_id], DispatchStatus.CLOSED) for run_id in run_ids)

    def started(self) -> list[RunId]:
        """Runs that are started as far as the partition knows."""
        return [
            state.run_id for state in self.known.values() if state.status is DispatchStatus.STARTED
        ]


TICK_US = 50 * MILLISECOND_US
