"""Where a dispatcher's hints go: each offer of a run reaches more of its topic's partitions."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import msgspec
import pytest

from horolog.schemas.errors import FENCED, Fenced
from horolog.schemas.records import (
    Hints,
    InventoryBegan,
    InventoryEnded,
    RunStates,
    TenantSettings,
)
from horolog.streams.host.clock import BrokerTime, SteadyClock
from horolog.streams.host.dispatching import DispatcherLoop
from horolog.streams.host.ports import Item, Outcome, Reads
from horolog.streams.host.topics import RUN_STATES
from horolog.streams.limits import SECOND_US
from tests.builders.core import T0, HandClock
from tests.unit.dispatcher.rig import a_run

READY = 4
TURNS = 60


class Port:
    """A broker with one run that nobody claims, for some turns of a second."""

    def __init__(self) -> None:
        self.hand = HandClock(T0)
        self.turns = 0
        self.offers: dict[int, set[int]] = defaultdict(set)

    async def open(self) -> int:
        """Nobody was before."""
        return 0

    async def record(self, epoch: int) -> Outcome:
        """It is recorded."""
        assert epoch == 1
        return Outcome.WRITTEN

    async def settings(self) -> Sequence[TenantSettings]:
        """No limits."""
        return ()

    async def broker_us(self) -> int:
        """As the host's clock."""
        return self.hand.at_us

    async def read(self, wait_us: int) -> Reads:
        """The inventory at first, then time."""
        assert wait_us >= 0
        self.turns += 1
        if self.turns > TURNS:
            raise Fenced(FENCED, "the test is over")
        if self.turns == 1:
            told = (
                InventoryBegan(partition=0, writer_epoch=1, seq=1, dispatcher=0, epoch=1),
                RunStates(partition=0, writer_epoch=1, seq=1, runs=(a_run(1, at_us=T0),)),
                InventoryEnded(
                    partition=0, writer_epoch=1, seq=1, dispatcher=0, epoch=1, runs_count=1
                ),
            )
            return Reads(items=[item(offset, value) for offset, value in enumerate(told)])
        self.hand.advance(SECOND_US)
        return Reads()

    def send(self, topic: str, to: int | str, record: msgspec.Struct) -> None:
        """Note the hints."""
        if isinstance(record, Hints):
            assert topic == "run-ready.default.normal"
            assert isinstance(to, int)
            for hint in record.hints:
                self.offers[hint.offer].add(to)

    def set_aside(self, item: Item, why: str) -> None:
        """Nothing is wrong here."""
        raise AssertionError((item, why))


def item(offset: int, value: msgspec.Struct) -> Item:
    """A record of the dispatcher's topic."""
    return Item(topic=RUN_STATES, partition=0, offset=offset, append_us=T0, value=value)


def test_hint_offered_again_reaches_more_partitions() -> None:
    port = Port()
    loop = DispatcherLoop(
        port,
        SteadyClock(port.hand),
        BrokerTime(),
        dispatcher=0,
        ledger_partitions=1,
        ready_partitions=READY,
    )
    with pytest.raises(Fenced, match="the test is over"):
        asyncio.run(loop.run())
    assert len(port.offers[1]) == 1
    assert len(port.offers[2]) == 2
    assert not port.offers[1] & port.offers[2]
    assert port.offers[3] == set(range(READY))
