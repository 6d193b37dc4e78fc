"""Schedulers as a dispatcher meets them: true states of runs, told over lines that lose, double and
delay.
"""

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from horolog.schemas.records import (
    AdmissionAnswer,
    DigestSent,
    DispatchStatus,
    EpochSuperseded,
    Hint,
    InventoryBegan,
    InventoryEnded,
    InventoryWanted,
    RepairWanted,
    RunId,
    RunState,
    RunStates,
    TenantId,
    Tier,
)
from horolog.streams.dispatcher import Outgoing
from horolog.streams.dispatcher.digest import Digest, bucket_of

Told = RunStates | InventoryBegan | InventoryEnded | DigestSent | EpochSuperseded
PART = 2
"""Run states in one message of an inventory."""


class Inventory:
    """How far an inventory has got."""

    def __init__(self, run_ids: list[RunId]) -> None:
        self.run_ids = run_ids
        self.sent = 0


class Partition:
    """The owner of one ledger partition."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.writer_epoch = 1
        self.seq = 10
        self.epoch = 0
        """Dispatcher epoch in its ledger."""
        self.runs: dict[RunId, RunState] = {}
        self.held: dict[RunId, RunState] = {}
        self.line: deque[Told] = deque()
        """Sent and not read yet."""
        self._recent: dict[RunId, None] = {}
        self._inventory: Inventory | None = None

    # --- what happens in the ledger

    def put(self, state: RunState) -> None:
        """A run is in a new state, and the dispatcher is told."""
        self.seq += 1
        self.runs[state.run_id] = state
        self._tell([state])

    def begin(self, state: RunState) -> None:
        """A run begins to wait: its plan is the event's seq."""
        self.put(msgspec.structs.replace(state, plan=self.seq + 1))

    def close(self, run_id: RunId) -> None:
        """A run ends, or is held."""
        self.seq += 1
        state = self.runs.pop(run_id)
        self._tell([msgspec.structs.replace(state, status=DispatchStatus.CLOSED, plan=0)])

    def claim(self, hint: Hint, now_us: int) -> bool:
        """A worker claims; whether it is granted."""
        if hint.epoch != self.epoch:
            return False
        state = self.runs.get(hint.run_id)
        may_start = state is not None and (
            state.status in (DispatchStatus.WAITING, DispatchStatus.PENDING)
            and state.plan == hint.plan
            and state.not_before_us <= now_us
        )
        if state is None or not may_start:
            # A refusal sends the run's present state.
            self._tell([state or _closed(hint.run_id)])
            return False
        self.put(
            msgspec.structs.replace(state, status=DispatchStatus.STARTED, attempt=state.attempt + 1)
        )
        return True

    def new_owner(self, *, resends: bool) -> None:
        """Another owner takes over: what the first had still to send is lost, and the states that
        changed lately are sent again, unless that is lost too.
        """
        self.writer_epoch += 1
        self.seq += 1
        self._inventory = None
        if resends:
            self._tell([self.runs.get(run_id, _closed(run_id)) for run_id in self._recent])
        self._recent.clear()

    # --- what the dispatcher asks

    def hear(self, message: Outgoing) -> None:
        """A dispatcher's question or answer."""
        if isinstance(message, InventoryWanted):
            if message.epoch < self.epoch:
                self.line.append(EpochSuperseded(**self._stamp(), dispatcher=0, epoch=self.epoch))
                return
            self.seq += message.epoch > self.epoch
            self.epoch = message.epoch
            self._inventory = Inventory(sorted(self.runs))
            self.line.append(InventoryBegan(**self._stamp(), dispatcher=0, epoch=self.epoch))
        elif isinstance(message, RepairWanted) and message.epoch == self.epoch:
            wanted = [s for s in self.runs.values() if bucket_of(s.run_id) in message.buckets]
            for first in range(0, len(wanted), PART):
                self._tell(wanted[first : first + PART])
            self.send_digest()
        elif isinstance(message, AdmissionAnswer) and message.epoch == self.epoch:
            state = self.runs.get(message.run_id) if message.run_id is not None else None
            if state is not None and state.status is DispatchStatus.PENDING:
                if message.admitted:
                    self.put(msgspec.structs.replace(state, status=DispatchStatus.WAITING))
                else:
                    self.close(state.run_id)

    def go_on(self) -> None:
        """Send the next part of an inventory, read from the state as it is now."""
        inventory = self._inventory
        if inventory is None:
            return
        part, inventory.run_ids = inventory.run_ids[:PART], inventory.run_ids[PART:]
        states = [self.runs[run_id] for run_id in part if run_id in self.runs]
        if states:
            self._tell(states)
        if not inventory.run_ids:
            self.line.append(self._digest())
            self.line.append(
                InventoryEnded(
                    **self._stamp(), dispatcher=0, epoch=self.epoch, runs_count=inventory.sent
                )
            )
            self._inventory = None

    @property
    def is_telling(self) -> bool:
        """Whether an inventory is under way."""
        return self._inventory is not None

    def send_digest(self) -> None:
        """The minute's digest, in the stream."""
        if self.epoch and self._inventory is None:
            self.line.append(self._digest())

    def _digest(self) -> DigestSent:
        digest = Digest()
        for state in self.runs.values():
            digest.add(state)
        return DigestSent(**self._stamp(), dispatcher=0, buckets=digest.buckets())

    def _tell(self, states: Sequence[RunState]) -> None:
        self._recent.update(dict.fromkeys(state.run_id for state in states))
        if self._inventory is not None:
            self._inventory.sent += len(states)
        self.line.append(
            RunStates(
                partition=self.number,
                writer_epoch=self.writer_epoch,
                seq=self.seq,
                runs=tuple(states),
            )
        )

    def _stamp(self) -> dict[str, int]:
        return {"partition": self.number, "writer_epoch": self.writer_epoch, "seq": self.seq}


def of_tenant(partitions: Sequence[Partition], tenant: TenantId) -> Iterator[RunState]:
    """Open runs of a tenant, truly."""
    for partition in partitions:
        yield from (state for state in partition.runs.values() if state.tenant == tenant)


def _closed(run_id: RunId) -> RunState:
    return RunState(
        run_id=run_id,
        tenant=TenantId(run_id.partition(".")[0]),
        plan=0,
        status=DispatchStatus.CLOSED,
        tier=Tier.NORMAL,
        pool="",
    )
