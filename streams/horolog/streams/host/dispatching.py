"""The loop of a dispatcher partition on a log that several processes share.

It keeps no log: it takes the next epoch, asks every ledger partition for its open runs, and goes
on. A dispatcher that hears of a newer epoch stops; if the partition is still its own, it takes one
above that.
"""

from typing import Final

from horolog.schemas.ids import partition_of
from horolog.schemas.records import (
    DigestSent,
    EpochSuperseded,
    Hint,
    Hints,
    InventoryBegan,
    InventoryEnded,
    RunStates,
    TenantSettings,
    Tier,
)
from horolog.streams.dispatcher import Dispatcher
from horolog.streams.host.brokertime import TimeCheck
from horolog.streams.host.clock import BrokerTime, SteadyClock
from horolog.streams.host.ports import IDLE_MOST_US, DispatcherPort, Item, Outcome, Undecodable
from horolog.streams.host.topics import ANSWERS, RECORDS, ready_topic
from horolog.streams.limits import SECOND_US

ALL: Final = range(1 << 10)
REST_US: Final = SECOND_US
REST_MOST_US: Final = 16 * SECOND_US
"""Longer than a group takes to tell a lost member."""


class DispatcherLoop:
    """Owns one dispatcher partition for as long as it can."""

    def __init__(
        self,
        port: DispatcherPort,
        clock: SteadyClock,
        brokers: BrokerTime,
        *,
        dispatcher: int,
        ledger_partitions: int,
        ready_partitions: int,
    ) -> None:
        """`ready_partitions`: of each ready topic."""
        self._port = port
        self._clock = clock
        self._time = TimeCheck(port, clock, brokers)
        self._number = dispatcher
        self._ledger_partitions = ledger_partitions
        self._ready_partitions = ready_partitions

    async def run(self) -> None:
        """Take epochs and dispatch by them. Ends by Fenced when the partition is another's,
        by Unavailable when this host's clock is wrong.
        """
        newer = 0
        rest_us = REST_US
        while True:
            await self._time.check()
            epoch = max(await self._port.open(), newer) + 1
            # Whatever became of it, a higher one is taken if this one does not hold.
            outcome = await self._port.record(epoch)
            if outcome is Outcome.WRITTEN or outcome is Outcome.DOUBTED:
                begun_us = self._clock.boot_us()
                newer = await self._dispatch(epoch)
                if self._clock.boot_us() - begun_us > REST_MOST_US:
                    rest_us = REST_US
                await self._rest(rest_us)
                rest_us = min(2 * rest_us, REST_MOST_US)

    async def _dispatch(self, epoch: int) -> int:
        """Until there is a newer epoch: which."""
        dispatcher = Dispatcher(
            dispatcher=self._number, epoch=epoch, ledger_partitions=self._ledger_partitions
        )
        clock = self._clock
        for settings in await self._port.settings():
            dispatcher.receive(settings, clock.now_us())
        while dispatcher.superseded_by is None:
            self._send(dispatcher, clock.now_us())
            reads = await self._port.read(self._wait_us(dispatcher))
            await self._time.check()
            now_us = clock.now_us()
            for item in reads.items:
                self._receive(dispatcher, item, now_us)
        return dispatcher.superseded_by

    async def _rest(self, rest_us: int) -> None:
        """Read and drop for a while: whoever lost the partition has to learn it here and not by
        superseding the one that has it, over and over.
        """
        clock = self._clock
        until_us = clock.boot_us() + rest_us
        while (left_us := until_us - clock.boot_us()) > 0:
            await self._port.read(left_us)

    def _receive(self, dispatcher: Dispatcher, item: Item, now_us: int) -> None:
        value = item.value
        if isinstance(value, Undecodable):
            self._port.set_aside(item, value.why)
        elif (
            isinstance(
                value,
                RunStates
                | InventoryBegan
                | InventoryEnded
                | DigestSent
                | EpochSuperseded
                | TenantSettings,
            )
            and type(value) in RECORDS[item.topic]
        ):
            dispatcher.receive(value, now_us)
        else:
            self._port.set_aside(item, f"a {type(value).__name__} has no place in {item.topic}")

    def _send(self, dispatcher: Dispatcher, now_us: int) -> None:
        for message in dispatcher.tick(now_us):
            if isinstance(message, Hints):
                self._hint(message)
            else:
                self._port.send(ANSWERS, message.partition, message)

    def _hint(self, message: Hints) -> None:
        """Hints of one queue, over the partitions of its topic. The first goes to one partition,
        the second to the next two, a later one to all: a busy worker may own a partition for long,
        and must not delay what an idle one could take.
        """
        count = self._ready_partitions
        by_place: dict[tuple[str, Tier, int], list[Hint]] = {}
        for hint in message.hints:
            first = partition_of(hint.run_id, count)
            reached = range(1) if hint.offer <= 1 else range(1, 3) if hint.offer == 2 else ALL
            for step in reached[:count]:
                place = hint.pool, hint.tier, (first + step) % count
                by_place.setdefault(place, []).append(hint)
        for (pool, tier, partition), hints in by_place.items():
            self._port.send(ready_topic(pool, tier), partition, Hints(hints=tuple(hints)))

    def _wait_us(self, dispatcher: Dispatcher) -> int:
        now_us = self._clock.now_us()
        wake_us = dispatcher.wake_us(now_us)
        return IDLE_MOST_US if wake_us is None else min(max(wake_us - now_us, 0), IDLE_MOST_US)
