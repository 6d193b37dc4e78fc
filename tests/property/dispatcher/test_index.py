"""Laws of the dispatcher under any order of states, losses, doubles, delays and takeovers."""

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from horolog.schemas.records import (
    DispatchStatus,
    EpochSuperseded,
    Hint,
    Hints,
    InventoryEnded,
    RepairWanted,
    RunId,
    RunState,
    RunStates,
    TenantId,
    TenantSettings,
    Tier,
)
from horolog.streams.dispatcher import Dispatcher, Outgoing
from horolog.streams.limits import MILLISECOND_US, SECOND_US
from tests.property.dispatcher.ledger_side import Partition, Told, of_tenant

T0 = 1_800_000_000 * SECOND_US
TENANTS = [TenantId(name) for name in ("limited", "other", "free")]
PARTITIONS = 2

numbers = st.integers(0, 1_000)
partitions = st.integers(0, PARTITIONS - 1)
faults = st.sampled_from(["none"] * 6 + ["lost", "doubled", "late"])


class Shadow:
    """What one dispatcher was told: of each run the newest state; what is older than something
    that it read before does not count.
    """

    def __init__(self, index: Dispatcher) -> None:
        self.index = index
        self.told: dict[RunId, RunState] = {}
        self._stamps = [(0, 0)] * PARTITIONS

    def receive(self, message: Told, now_us: int) -> None:
        self.index.receive(message, now_us)
        stamp = message.writer_epoch, message.seq
        if isinstance(message, EpochSuperseded) or stamp < self._stamps[message.partition]:
            return
        self._stamps[message.partition] = stamp
        if isinstance(message, RunStates):
            self.told.update((state.run_id, state) for state in message.runs)


class Laws(RuleBasedStateMachine):
    """Two ledger partitions, a dispatcher and its predecessors, workers that claim at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.now_us = T0
        self.partitions = [Partition(number) for number in range(PARTITIONS)]
        self.late: list[Told] = []
        self.hints: list[Hint] = []
        """Every hint ever sent; any may be claimed at any time."""
        self.quotas: dict[TenantId, int | None] = {TENANTS[0]: 2, TENANTS[1]: 3, TENANTS[2]: None}
        self.names = 0
        self.epoch = 0
        self.shadows: list[Shadow] = []
        self.take_over()
        self.settle()

    # --- the dispatchers

    @rule()
    def take_over(self) -> None:
        """A new dispatcher; the old one does not know yet."""
        self.epoch += 1
        index = Dispatcher(dispatcher=0, epoch=self.epoch, ledger_partitions=PARTITIONS)
        self.shadows = [*self.shadows[-1:], Shadow(index)]
        for tenant in TENANTS:
            self._limit(tenant)

    @rule(number=partitions, told=st.lists(faults, min_size=3, max_size=12))
    def take_over_badly(self, number: int, told: list[str]) -> None:
        """A new dispatcher; of one partition's inventory some messages are lost or doubled."""
        self.take_over()
        self.settle(but=number)
        for fault in told:
            self.go_on(number)
            self.deliver(number, fault)
            self.tick(10, 1_000)

    def _limit(self, tenant: TenantId) -> None:
        limits = TenantSettings(tenant=tenant, concurrency=self.quotas[tenant])
        for shadow in self.shadows:
            shadow.index.receive(limits, self.now_us)

    @rule(tenant=st.sampled_from(TENANTS), quota=st.one_of(st.none(), st.integers(0, 4)))
    def limit(self, tenant: TenantId, quota: int | None) -> None:
        self.quotas[tenant] = quota
        self._limit(tenant)

    @rule(pass_ms=st.sampled_from([0, 10, 100, 1_000, 5_000]), lost=numbers)
    def tick(self, pass_ms: int, lost: int) -> None:
        self.now_us += pass_ms * MILLISECOND_US
        for shadow in self.shadows:
            for number, message in enumerate(shadow.index.tick(self.now_us)):
                is_lost = lost < 200 and number == lost % 4
                self._sent(shadow, message, lost=is_lost)

    def _sent(self, shadow: Shadow, message: Outgoing, *, lost: bool) -> None:
        if isinstance(message, Hints):
            for hint in message.hints:
                self._hinted(shadow, hint)
        elif not lost:
            self.partitions[message.partition].hear(message)

    def _hinted(self, shadow: Shadow, hint: Hint) -> None:
        state = shadow.told[hint.run_id]
        is_new = all(
            (each.run_id, each.plan, each.epoch) != (hint.run_id, hint.plan, hint.epoch)
            for each in self.hints
        )
        self.hints.append(hint)
        if not is_new and hint.partition in shadow.index.missing:
            # Its end may have been told and skipped; it is still known to hold a place.
            return
        assert state.status in (DispatchStatus.WAITING, DispatchStatus.PENDING), (
            f"{hint.run_id} was told to be {state.status}"
        )
        assert state.plan == hint.plan, f"{hint.run_id} was told to have plan {state.plan}"
        assert state.not_before_us <= self.now_us, f"{hint.run_id} was told to be due later"
        quota = self.quotas[state.tenant]
        if is_new and quota is not None and shadow is self.shadows[-1]:
            held = self._held(state.tenant)
            assert len(held) <= quota, f"{sorted(held)} hold places of {quota}"

    def _held(self, tenant: TenantId) -> set[RunId]:
        """Runs that run, or may start by a hint that is out, truly."""
        potent = {
            (hint.run_id, hint.plan)
            for hint in self.hints
            if hint.epoch == self.partitions[hint.partition].epoch
        }
        return {
            state.run_id
            for state in of_tenant(self.partitions, tenant)
            if state.status is DispatchStatus.STARTED or (state.run_id, state.plan) in potent
        }

    # --- lines

    @rule()
    def settle(self, but: int | None = None) -> None:
        """For a moment nothing is lost: inventories that were asked for are told."""
        self.tick(0, 1_000)
        for partition in self.partitions:
            if partition.number != but:
                self._drain(partition)

    @rule(number=partitions, fault=faults)
    def deliver(self, number: int, fault: str) -> None:
        line = self.partitions[number].line
        if not line:
            return
        messages = [line.popleft()]
        if line and isinstance(line[0], InventoryEnded):
            # The digest before an end mark is sent together with it.
            messages.append(line.popleft())
        if fault == "late":
            self.late += messages
        for _ in range({"none": 1, "doubled": 2}.get(fault, 0)):
            for message in messages:
                self._read(message)

    @precondition(lambda self: self.late)
    @rule(pick=numbers)
    def deliver_late(self, pick: int) -> None:
        self._read(self.late.pop(pick % len(self.late)))

    def _read(self, message: Told) -> None:
        for shadow in self.shadows:
            shadow.receive(message, self.now_us)

    # --- the ledger

    @rule(
        number=partitions,
        tenant=st.sampled_from(TENANTS),
        after_s=st.sampled_from([0, 0, 0, 2]),
        tier=st.sampled_from(Tier),
        make_up=st.booleans(),
        status=st.sampled_from([DispatchStatus.WAITING] * 3 + [DispatchStatus.PENDING]),
    )
    def plan(
        self,
        number: int,
        tenant: TenantId,
        after_s: int,
        tier: Tier,
        make_up: bool,
        status: DispatchStatus,
    ) -> None:
        self.names += 1
        self.partitions[number].begin(
            RunState(
                run_id=RunId(f"{tenant}.job@{self.names}"),
                tenant=tenant,
                plan=0,
                status=status,
                not_before_us=self.now_us + after_s * SECOND_US,
                due_us=self.now_us,
                tier=tier,
                make_up=make_up,
            )
        )

    @precondition(lambda self: self.hints)
    @rule(pick=numbers, last=st.booleans())
    def claim(self, pick: int, last: bool) -> None:
        hints = self.hints[-6:] if last else self.hints
        hint = hints[pick % len(hints)]
        self.partitions[hint.partition].claim(hint, self.now_us)

    @rule(number=partitions, pick=numbers, how=st.sampled_from(["end", "end", "retry", "cancel"]))
    def move(self, number: int, pick: int, how: str) -> None:
        partition = self.partitions[number]
        wanted = how == "cancel"
        runs = [
            state
            for state in partition.runs.values()
            if wanted or state.status is DispatchStatus.STARTED
        ]
        if not runs:
            return
        state = runs[pick % len(runs)]
        if how == "retry":
            partition.begin(
                msgspec.structs.replace(
                    state, status=DispatchStatus.WAITING, not_before_us=self.now_us + SECOND_US
                )
            )
        else:
            partition.close(state.run_id)

    @rule(number=partitions, pick=numbers)
    def hold(self, number: int, pick: int) -> None:
        partition = self.partitions[number]
        runs = [s for s in partition.runs.values() if s.status is DispatchStatus.WAITING]
        if runs:
            state = runs[pick % len(runs)]
            partition.close(state.run_id)
            partition.held[state.run_id] = state

    @rule(number=partitions)
    def resume(self, number: int) -> None:
        partition = self.partitions[number]
        for state in partition.held.values():
            partition.begin(state)
        partition.held.clear()

    @rule(number=partitions, resends=st.booleans())
    def new_owner(self, number: int, resends: bool) -> None:
        self.partitions[number].new_owner(resends=resends)

    @rule(number=partitions)
    def go_on(self, number: int) -> None:
        self.partitions[number].go_on()

    @rule(number=partitions)
    def digest(self, number: int) -> None:
        self.partitions[number].send_digest()

    # --- after all faults

    def teardown(self) -> None:
        """Faults are over: every run that waits is released, started and ended in time, and the
        digests agree.
        """
        for tenant, quota in self.quotas.items():
            self.quotas[tenant] = quota or None
            self._limit(tenant)
        self.late.clear()
        for number in range(PARTITIONS):
            self.resume(number)
        seconds = 0
        while any(partition.runs for partition in self.partitions):
            seconds += 1
            assert seconds < 300, [partition.runs for partition in self.partitions]
            self._second(digests=seconds % 60 == 0)
        # An inventory whose end mark was lost is asked for again after ten seconds.
        for _ in range(15):
            self._second(digests=True)
        for partition in self.partitions:
            partition.send_digest()
            self._drain(partition)
        repairs = self.shadows[-1].index.tick(self.now_us)
        assert not any(isinstance(each, RepairWanted) for each in repairs)
        assert self.shadows[-1].index.missing == ()

    def _second(self, *, digests: bool) -> None:
        for partition in self.partitions:
            if digests:
                partition.send_digest()
            self._drain(partition)
        self.tick(1_000, 1_000)
        for hint in [hint for hint in self.hints if hint.valid_until_us >= self.now_us]:
            self.partitions[hint.partition].claim(hint, self.now_us)
        for partition in self.partitions:
            self._drain(partition)
            for state in list(partition.runs.values()):
                if state.status is DispatchStatus.STARTED:
                    partition.close(state.run_id)
            self._drain(partition)

    def _drain(self, partition: Partition) -> None:
        while partition.line or partition.is_telling:
            partition.go_on()
            while partition.line:
                self._read(partition.line.popleft())


TestLaws = Laws.TestCase
TestLaws.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
