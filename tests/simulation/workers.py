"""Worker processes: the real claims, leases and ready queues; and targets that write down what they
did, outside of the system.
"""

import random
from collections.abc import Iterable
from typing import Final

import msgspec

from horolog.schemas.ids import partition_of
from horolog.schemas.records import (
    ClaimRun,
    ClaimRuns,
    CompleteRun,
    CompleteRuns,
    Grant,
    Heartbeat,
    Heartbeats,
    Hints,
    InboxBatch,
    ReleaseRun,
    ReleaseRuns,
    RunResult,
    Tier,
)
from horolog.streams.host.topics import INBOX, REPORTS, ready_topic
from horolog.workers.executors.protocol import stopped
from horolog.workers.inbox import Stamps
from horolog.workers.leases import Leases, Order, Outcome, Report, Send, Start, Why
from horolog.workers.ready import HintPool
from tests.simulation.groups import Member
from tests.simulation.kafka import Cursor
from tests.simulation.nodes import INBOXES, READY, Fleet, FleetNode
from tests.simulation.oracle.observation import Pause, Seen
from tests.simulation.world import SECOND_US

IDLE_US: Final = 10 * SECOND_US
POOLS: Final = ("default", "batch")
READY_TOPICS: Final = tuple(
    ready_topic(pool, tier) for pool in POOLS for tier in (Tier.HIGH, Tier.NORMAL, Tier.LOW)
)
READY_PLACES: Final = tuple((topic, number) for topic in READY_TOPICS for number in range(READY))


class Targets(msgspec.Struct):
    """How the world's targets behave, and all that they wrote down."""

    seen: list[Seen]
    pauses: list[Pause]
    failing: float = 0.1
    hanging: float = 0.0
    longest_us: int = 20 * SECOND_US
    long: float = 0.05
    """Share of the attempts that take long, up to minutes."""


class _Execution:
    def __init__(self, grant: Grant) -> None:
        self.grant = grant
        self.is_over = False
        self.why: Why | None = None


class WorkerNode(FleetNode):
    """A process that executes runs."""

    def __init__(self, fleet: Fleet, name: str, targets: Targets, slots: int) -> None:
        super().__init__(fleet, name)
        self.targets = targets
        self.slots = slots
        self._paused_us = 0

    def boot(self) -> None:
        """Join the group, with an inbox of its own."""
        super().boot()
        self.inbox = f"{self.name}.{self.life}"
        self.chance = self.world.chance(f"worker/{self.inbox}")
        self.leases = Leases(
            worker_id=self.inbox,
            inbox=self.inbox,
            slots=self.slots,
            new_claim_id=lambda: f"{self.inbox}-{self.chance.getrandbits(64):x}",
        )
        self.pool = HintPool()
        self.stamps = Stamps()
        self.executions: dict[str, _Execution] = {}
        self.cursor = Cursor(self.fleet.broker)
        self.hints = Cursor(self.fleet.broker, self.cursor.gate)
        self.cursor.follow(self._inbox_place())
        self.member = Member(self.fleet.working, self, self._rebalanced)
        self.after(0, self.member.start)
        self.spawn(self._work())

    def pause(self) -> None:
        """See `Node`."""
        super().pause()
        self._paused_us = self.world.now_us

    def resume(self) -> None:
        """See `Node`."""
        self._note_pause()
        super().resume()

    def _note_pause(self) -> None:
        if self.is_paused:
            self.targets.pauses.append(Pause(self.inbox, self._paused_us, self.world.now_us))

    def kill(self) -> None:
        """See `Node`; what it executed ends without a word."""
        if self.is_up:
            self._note_pause()
            for execution in self.executions.values():
                self._see("killed", execution.grant, ok=False)
            self.cursor.close()
            self.hints.close()
        super().kill()

    def _inbox_place(self) -> tuple[str, int]:
        return INBOX, partition_of(self.inbox, INBOXES)

    def _rebalanced(self) -> None:
        for number in sorted(self.member.held - self.member.assigned):
            for topic in READY_TOPICS:
                self.hints.leave((topic, number))
        for number in sorted(self.member.assigned - self.member.held):
            for topic in READY_TOPICS:
                self.hints.follow((topic, number))
        self.member.held = set(self.member.assigned)

    async def _work(self) -> None:
        while True:
            self._turn()
            next_us = self.leases.next_us()
            wait_us = IDLE_US if next_us is None else next_us - self.clock.boot_us()
            await self.cursor.gate.wait(min(max(wait_us, 0), IDLE_US))

    def _turn(self) -> None:
        boot_us, wall_us = self.clock.boot_us(), self.clock.wall_us()
        orders: list[Order] = []
        for item in self.cursor.take():
            if isinstance(item.value, InboxBatch):
                for message in self.stamps.open(item.value, self.inbox):
                    orders += self.leases.deliver(message, boot_us, wall_us)
        for item in self.hints.take():
            if isinstance(item.value, Hints):
                self.pool.offer(item.value.hints)
        orders += self.leases.tick(boot_us)
        free = self.leases.free
        if free:
            hints = self.pool.take(lambda _pool, _handler: True, free, wall_us)
            orders += self.leases.claim(hints, boot_us)
        self._do(orders)

    def _do(self, orders: Iterable[Order]) -> None:
        reports: dict[int, list[Report]] = {}
        for order in orders:
            if isinstance(order, Send):
                reports.setdefault(order.partition, []).append(order.report)
            elif isinstance(order, Start):
                self._start(order.grant)
            else:
                self._stop(order.claim_id, order.why)
        for partition, sent in reports.items():
            for record in _grouped(sent):
                self.fleet.broker.send((REPORTS, partition), record, lambda _place: None)

    # --- targets

    def _start(self, grant: Grant) -> None:
        execution = _Execution(grant)
        self.executions[grant.claim_id] = execution
        self._see("start", grant, ok=True)
        chance = self.world.chance(f"target/{grant.run_id}/{grant.round}/{grant.attempt}")
        targets = self.targets
        lasts_us = _lasts_us(chance, targets)
        outcome = Outcome(result=RunResult.SUCCEEDED, output=b"done")
        if chance.random() < targets.failing:
            outcome = Outcome(result=RunResult.FAILED, error="as drawn")
        if chance.random() >= targets.hanging:
            self.after(lasts_us, lambda: self._end(execution, outcome))
        self.after(grant.timeout_us, lambda: self._stop(grant.claim_id, Why.TIMED_OUT))

    def _stop(self, claim_id: str, why: Why) -> None:
        execution = self.executions.get(claim_id)
        if execution is None or execution.why is not None:
            return
        execution.why = why
        grace_us = self.chance.randrange(1_000, max(execution.grant.kill_grace_us, 2_000))
        self.after(grace_us, lambda: self._end(execution, stopped(why)))

    def _end(self, execution: _Execution, outcome: Outcome) -> None:
        if execution.is_over:
            return
        execution.is_over = True
        grant = execution.grant
        del self.executions[grant.claim_id]
        self._see("end", grant, ok=outcome.result is RunResult.SUCCEEDED)
        self._do(self.leases.ended(grant.claim_id, outcome, self.clock.boot_us()))
        self.cursor.gate.open()

    def _see(self, kind: str, grant: Grant, *, ok: bool) -> None:
        now_us = self.world.now_us
        self.world.note(kind, grant.run_id, grant.token)
        self.targets.seen.append(
            Seen(
                kind=kind,
                at_us=now_us,
                run_id=grant.run_id,
                attempt=grant.attempt,
                token=grant.token,
                worker=self.inbox,
                ok=ok,
            )
        )


def _lasts_us(chance: random.Random, targets: Targets) -> int:
    if chance.random() < targets.long:
        return chance.randrange(targets.longest_us, 12 * targets.longest_us)
    return int(chance.random() ** 3 * targets.longest_us) + 5_000


def _grouped(reports: list[Report]) -> list[msgspec.Struct]:
    """Reports of one turn for one partition, as the records of the topic."""
    records: list[msgspec.Struct] = []
    claims = tuple(each for each in reports if isinstance(each, ClaimRun))
    beats = tuple(each for each in reports if isinstance(each, Heartbeat))
    completions = tuple(each for each in reports if isinstance(each, CompleteRun))
    releases = tuple(each for each in reports if isinstance(each, ReleaseRun))
    if claims:
        records.append(ClaimRuns(claims=claims))
    if beats:
        records.append(Heartbeats(heartbeats=beats))
    if completions:
        records.append(CompleteRuns(completions=completions))
    if releases:
        records.append(ReleaseRuns(releases=releases))
    return records
