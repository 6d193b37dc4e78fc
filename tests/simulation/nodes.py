"""Processes of the fleet: the real loops, on ports of the model."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from horolog.schemas.errors import FENCED, Fenced, Unavailable
from horolog.schemas.ids import partition_of
from horolog.schemas.records import TenantId, TenantSettings, ZoneRules
from horolog.streams.host.clock import BrokerTime, SteadyClock
from horolog.streams.host.dispatching import DispatcherLoop
from horolog.streams.host.partition import PartitionLoop
from horolog.streams.host.ports import Item, Outcome, Reads, Tail
from horolog.streams.host.topics import (
    ANSWERS,
    COMMANDS,
    INBOX,
    REPLIES,
    REPORTS,
    RUN_STATES,
    TENANT_SETTINGS,
)
from horolog.streams.host.tzdata import tzdata_version, zone_rules
from horolog.streams.log import Batch
from tests.simulation.groups import Group, Member
from tests.simulation.kafka import Broker, Cursor, LedgerView, Place, TransactionGone
from tests.simulation.world import SECOND_US, Node, World, sleep

INBOXES: Final = 4
READY: Final = 4
"""Partitions of each ready topic; those of one number go to the same worker."""
AGAIN_US: Final = SECOND_US // 2
ASIDE_US: Final = 10 * SECOND_US
CLIENT_TIMEOUT_US: Final = 3 * SECOND_US


class Fleet(msgspec.Struct):
    """Sizes of a cluster, and what all its nodes share."""

    world: World
    broker: Broker
    ledger_partitions: int
    dispatchers: int
    schedulers: Group
    dispatching: Group
    working: Group
    settings: dict[TenantId, TenantSettings]
    """The compacted topic of tenants' limits."""
    epochs: dict[int, int]
    """The compacted topic of dispatcher epochs."""
    dispatch_producers: dict[int, int]


class _Sender:
    """What both kinds of ports do with messages."""

    def __init__(
        self, fleet: Fleet, node: Node, member: Member, partition: int, cursor: Cursor
    ) -> None:
        self.fleet = fleet
        self.node = node
        self.member = member
        self.partition = partition
        self.cursor = cursor
        self._undelivered: set[Place] = set()
        self.producer = 0

    def place_of(self, topic: str, to: int | str) -> Place:
        if isinstance(to, int):
            return topic, to
        return topic, partition_of(to, INBOXES)

    def send(self, topic: str, to: int | str, record: msgspec.Struct) -> None:
        """See `LedgerPort`."""
        self.fleet.broker.send(self.place_of(topic, to), record, self._failed)

    def _failed(self, place: Place) -> None:
        self._undelivered.add(place)
        self.cursor.gate.open()

    async def broker_us(self) -> int:
        """See `LedgerPort`."""
        await sleep(self.fleet.broker.delay_us())
        broker_us = self.fleet.world.now_us
        await sleep(self.fleet.broker.delay_us())
        return broker_us

    def set_aside(self, item: Item, why: str) -> None:
        """See `LedgerPort`."""
        self.fleet.world.note("quarantine", item.topic, item.partition, item.offset, why)

    async def read(self, wait_us: int) -> Reads:
        """See `LedgerPort`."""
        self._check_assigned()
        items = self.cursor.take()
        if not items and not self._undelivered:
            await self.cursor.gate.wait(wait_us)
            self._check_assigned()
            items = self.cursor.take()
        else:
            await sleep(self.fleet.broker.delay_us())
        undelivered, self._undelivered = self._undelivered, set()
        return Reads(items=items, undelivered=frozenset(undelivered))

    def _check_assigned(self) -> None:
        if self.partition not in self.member.assigned:
            raise Fenced(FENCED, f"{self.node.name} should not own {self.partition} any more")


class LedgerPort(_Sender):
    """A ledger partition as a scheduler process reaches it."""

    def __init__(
        self, fleet: Fleet, node: Node, member: Member, partition: int, cursor: Cursor
    ) -> None:
        super().__init__(fleet, node, member, partition, cursor)
        self.chance = fleet.world.chance(f"ledger/{node.name}/{partition}/{fleet.world.now_us}")

    @property
    def log(self) -> LedgerView:
        """See `LedgerPort`."""
        return LedgerView(self.fleet.broker.ledgers)

    async def open(self) -> None:
        """See `LedgerPort`."""
        await sleep(self.fleet.broker.delay_us())
        self.producer = self.fleet.broker.ledgers[self.partition].init()
        await sleep(self.fleet.broker.delay_us())

    async def tail(self, after_seq: int) -> Tail:
        """See `LedgerPort`."""
        await sleep(self.fleet.broker.delay_us())
        return Tail(records=self.fleet.broker.ledgers[self.partition].tail(after_seq))

    async def seek(self, positions: Mapping[str, int]) -> None:
        """See `LedgerPort`."""
        for topic in (ANSWERS, REPORTS, COMMANDS):
            self.cursor.follow((topic, self.partition), positions.get(topic, 0))

    async def append(self, batch: Batch) -> Outcome:
        """See `LedgerPort`."""
        broker = self.fleet.broker
        ledger = broker.ledgers[self.partition]
        chance = self.chance
        ledger.begin(self.producer)
        cut = chance.randrange(len(batch.events) + 1)
        await sleep(broker.delay_us())
        try:
            ledger.produce(self.producer, batch.events[:cut], batch.snapshots)
            await sleep(broker.delay_us())
            ledger.produce(self.producer, batch.events[cut:], ())
        except TransactionGone:
            # The client calls it abortable, though a part may be committed.
            return Outcome.ABORTED
        return await self._end(chance.random())

    async def _end(self, fate: float) -> Outcome:
        broker = self.fleet.broker
        ledger = broker.ledgers[self.partition]
        producer = self.producer
        endings = broker.endings
        # Mostly soon: what matters is what comes within the next transaction.
        late_us = 1_000 + int(self.chance.random() ** 4 * 8 * SECOND_US)

        def end() -> None:
            if producer == ledger.producer:
                ledger.end(producer, commit=True)

        await sleep(broker.delay_us())
        fate -= endings.aborted
        if fate < 0:
            ledger.end(producer, commit=False)
            return Outcome.ABORTED
        fate -= endings.request_lost
        if fate < 0:
            await sleep(CLIENT_TIMEOUT_US)
            return Outcome.UNKNOWN
        fate -= endings.request_late
        if fate < 0:
            self.fleet.world.after(late_us, end)
            await sleep(CLIENT_TIMEOUT_US)
            return Outcome.UNKNOWN
        ledger.end(producer, commit=True)
        fate -= endings.answer_lost
        if fate < 0:
            await sleep(CLIENT_TIMEOUT_US)
            return Outcome.UNKNOWN
        await sleep(broker.delay_us())
        fate -= endings.ghost
        if fate < 0:
            self.fleet.world.after(late_us, end)
            return Outcome.DOUBTED
        return Outcome.WRITTEN


class DispatcherPort(_Sender):
    """A dispatcher partition as a dispatcher process reaches it."""

    async def open(self) -> int:
        """See `DispatcherPort`."""
        await sleep(self.fleet.broker.delay_us())
        producers = self.fleet.dispatch_producers
        self.producer = producers[self.partition] = producers.get(self.partition, 0) + 1
        self.cursor.follow((RUN_STATES, self.partition))
        await sleep(self.fleet.broker.delay_us())
        return self.fleet.epochs.get(self.partition, 0)

    async def record(self, epoch: int) -> Outcome:
        """See `DispatcherPort`."""
        await sleep(self.fleet.broker.delay_us())
        if self.fleet.dispatch_producers[self.partition] != self.producer:
            raise Fenced(FENCED, f"dispatcher {self.partition} was opened by another")
        self.fleet.epochs[self.partition] = epoch
        await sleep(self.fleet.broker.delay_us())
        return Outcome.WRITTEN

    async def settings(self) -> Sequence[TenantSettings]:
        """See `DispatcherPort`."""
        await sleep(self.fleet.broker.delay_us())
        self.cursor.follow((TENANT_SETTINGS, 0))
        return tuple(self.fleet.settings.values())


def zones(name: str) -> ZoneRules | None:
    """Rules of the packaged tz database."""
    return zone_rules(name)


class FleetNode(Node):
    """A process with a place in a group."""

    member: Member

    def __init__(self, fleet: Fleet, name: str) -> None:
        super().__init__(fleet.world, name)
        self.fleet = fleet


class OwningNode(FleetNode):
    """A process that owns partitions of the group it is in."""

    group: Group

    def boot(self) -> None:
        """Join the group."""
        super().boot()
        self.brokers = BrokerTime()
        self.steady = SteadyClock(self.clock, self.brokers.agrees)
        self.member = Member(self.group, self, self._rebalanced)
        self.after(0, self.member.start)

    def _rebalanced(self) -> None:
        for partition in sorted(self.member.assigned - self.member.held):
            self.member.held.add(partition)
            self.spawn(self._own(partition))

    async def _own(self, partition: int) -> None:
        while partition in self.member.assigned:
            cursor = Cursor(self.fleet.broker)
            try:
                await self._run(partition, cursor)
            except Fenced:
                await sleep(AGAIN_US)
            except Unavailable:
                # Its clock is wrong: others are to do its work, until it agrees again.
                self.member.leave(ASIDE_US)
            finally:
                cursor.close()
        self.member.held.discard(partition)

    async def _run(self, partition: int, cursor: Cursor) -> None:
        raise NotImplementedError


class SchedulerNode(OwningNode):
    """A process that owns ledger partitions."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        super().__init__(fleet, name)
        self.group = fleet.schedulers

    async def _run(self, partition: int, cursor: Cursor) -> None:
        await PartitionLoop(
            LedgerPort(self.fleet, self, self.member, partition, cursor),
            self.steady,
            self.brokers,
            partition=partition,
            dispatchers=self.fleet.dispatchers,
            name=f"{self.name}.{self.life}",
            zones=zones,
            tzdata=tzdata_version(),
        ).run()


class DispatcherNode(OwningNode):
    """A process that owns dispatcher partitions."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        super().__init__(fleet, name)
        self.group = fleet.dispatching

    async def _run(self, partition: int, cursor: Cursor) -> None:
        await DispatcherLoop(
            DispatcherPort(self.fleet, self, self.member, partition, cursor),
            self.steady,
            self.brokers,
            dispatcher=partition,
            ledger_partitions=self.fleet.ledger_partitions,
            ready_partitions=READY,
        ).run()


REPLY_PLACES: Final = tuple((REPLIES, number) for number in range(INBOXES))
INBOX_PLACES: Final = tuple((INBOX, number) for number in range(INBOXES))
