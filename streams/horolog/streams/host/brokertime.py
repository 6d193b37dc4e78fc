"""Whether this host's time is the brokers', asked before it decides anything and every 10 s.

A host that disagrees by more than 2 s must not decide: it would start runs early or late, and the
ledger's time, which never runs back, would stay ahead for all owners after it.
"""

from typing import Final, Protocol

from horolog.schemas.errors import CLOCK_DISAGREES, Unavailable
from horolog.streams.host.clock import STEP_US, BrokerTime, SteadyClock
from horolog.streams.limits import SECOND_US

ASK_EVERY_US: Final = 10 * SECOND_US


class Asked(Protocol):
    """Who knows the broker's time (`ports`)."""

    async def broker_us(self) -> int:
        """See `LedgerPort`."""
        ...


class TimeCheck:
    """The check of one loop."""

    def __init__(self, port: Asked, clock: SteadyClock, brokers: BrokerTime) -> None:
        """`brokers`: of the process, which its clock asks before it accepts a step."""
        self._port = port
        self._clock = clock
        self._brokers = brokers
        self._next_us: int | None = None

    async def check(self) -> None:
        """Ask, if it is time. Raises Unavailable when the clocks disagree: decide nothing, and
        leave what this host owns to others.
        """
        asked_us = self._clock.boot_us()
        if self._next_us is not None and asked_us < self._next_us:
            return
        broker_us = await self._port.broker_us()
        self._brokers.note(asked_us, self._clock.boot_us(), broker_us)
        off_us = self._clock.now_us() - broker_us
        if not self._brokers.agrees(self._clock.offset_us):
            raise Unavailable(
                CLOCK_DISAGREES,
                f"this host's time is {off_us / SECOND_US:+.1f} s from the broker's; at most 2 s",
            )
        if self._clock.ahead_us > STEP_US:
            # It began under a wrong clock: all it gave since was refused here. To wait until true
            # time has come there could take hours.
            self._clock.go_back()
        self._next_us = self._clock.boot_us() + ASK_EVERY_US
