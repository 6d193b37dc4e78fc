"""Whether a host may decide by its clock."""

import asyncio

import pytest

from horolog.schemas.errors import Unavailable
from horolog.streams.host.brokertime import ASK_EVERY_US, TimeCheck
from horolog.streams.host.clock import BrokerTime, SteadyClock
from horolog.streams.limits import MINUTE_US, SECOND_US
from tests.builders.core import T0, HandClock


class Broker:
    """A broker that answers at once."""

    def __init__(self) -> None:
        self.at_us = T0
        self.asked = 0

    async def broker_us(self) -> int:
        """Its clock."""
        self.asked += 1
        return self.at_us


class Rig:
    """A host's clock, a broker's, and the check between them."""

    def __init__(self, off_us: int = 0) -> None:
        self.hand = HandClock(T0 + off_us)
        self.broker = Broker()
        brokers = BrokerTime()
        self.clock = SteadyClock(self.hand, brokers.agrees)
        self.time = TimeCheck(self.broker, self.clock, brokers)

    def check(self) -> None:
        """Ask if it is time."""
        asyncio.run(self.time.check())

    def advance(self, us: int) -> None:
        """Time passes for both."""
        self.hand.advance(us)
        self.broker.at_us += us


def test_host_that_agrees_asks_again_after_ten_seconds() -> None:
    rig = Rig(off_us=SECOND_US)
    rig.check()
    rig.check()
    assert rig.broker.asked == 1
    rig.advance(ASK_EVERY_US)
    rig.check()
    assert rig.broker.asked == 2


@pytest.mark.parametrize("off_s", [-3_600, -3, 3, 315_360_000])
def test_host_that_was_started_with_a_wrong_clock_may_not_decide(off_s: int) -> None:
    with pytest.raises(Unavailable, match=r"from the broker's; at most 2 s"):
        Rig(off_us=off_s * SECOND_US).check()


def test_step_of_the_clock_that_the_broker_denies_is_never_believed() -> None:
    rig = Rig()
    rig.check()
    rig.hand.at_us += 3_600 * SECOND_US
    for _ in range(12):
        rig.advance(ASK_EVERY_US)
        rig.check()
        assert abs(rig.clock.now_us() - rig.broker.at_us) < SECOND_US


def test_step_of_the_clock_that_the_broker_confirms_is_believed_after_a_minute() -> None:
    rig = Rig(off_us=SECOND_US)
    rig.check()
    rig.hand.at_us -= 2 * SECOND_US + 1
    for _ in range(8):
        rig.advance(ASK_EVERY_US)
        rig.check()
        rig.clock.now_us()
    rig.advance(MINUTE_US)
    assert rig.clock.offset_us == rig.hand.at_us - rig.hand.booted_us


def test_host_that_began_under_a_clock_ahead_decides_by_true_time_once_the_clock_is_right() -> None:
    rig = Rig(off_us=3_600 * SECOND_US)
    with pytest.raises(Unavailable):
        rig.check()
    rig.hand.at_us -= 3_600 * SECOND_US
    rig.clock.now_us()
    rig.advance(MINUTE_US)
    rig.clock.now_us()
    rig.check()
    assert abs(rig.clock.now_us() - rig.broker.at_us) < SECOND_US
