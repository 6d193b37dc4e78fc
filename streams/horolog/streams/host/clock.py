"""Time of a host: wall clock, boot-time clock, and what to believe when they disagree.

The only module of the streams package that reads a clock.
"""

import time
from collections.abc import Callable
from typing import Final, Protocol

from horolog.streams.limits import MINUTE_US, SECOND_US

STEP_US: Final = 2 * SECOND_US
STEADY_US: Final = MINUTE_US


class Clock(Protocol):
    """Two readings of time, in microseconds."""

    def wall_us(self) -> int:
        """Microseconds since the epoch, UTC; may be set forward and back."""
        ...

    def boot_us(self) -> int:
        """Microseconds since the machine started, suspended time included; never set."""
        ...


class SystemClock:
    """The machine's clocks. CLOCK_BOOTTIME and not CLOCK_MONOTONIC, which stops while the machine
    is suspended: a lease does not.
    """

    def wall_us(self) -> int:
        """See `Clock`."""
        return time.time_ns() // 1_000

    def boot_us(self) -> int:
        """See `Clock`."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


class SteadyClock:
    """Wall time that does not believe a step at once.

    After the wall clock has moved by more than 2 s against the boot-time clock, time goes on by the
    old wall clock carried on by boot time, until the new one has been steady for 60 s; then it is
    accepted. Slots jumped over by then are missed ones, slots decided stay decided. Time given
    never runs back.
    """

    def __init__(self, clock: Clock, agrees: Callable[[int], bool] = lambda _: True) -> None:
        """Believe the clock as it is now. `agrees`: whether others' clocks allow a step to be
        accepted, by what wall time then is beyond boot time, in microseconds.
        """
        self._clock = clock
        self._agrees = agrees
        self._offset_us = clock.wall_us() - clock.boot_us()
        self._doubted_us: int | None = None
        self._since_us = 0
        self._last_us = 0
        self.skew_us = 0
        """What the wall clock shows beyond the time believed; 0 unless it was set."""

    def start_at(self, at_us: int) -> None:
        """Give no time before this one: what was decided by then stays decided."""
        self._last_us = max(self._last_us, at_us)

    def boot_us(self) -> int:
        """The boot-time clock."""
        return self._clock.boot_us()

    @property
    def ahead_us(self) -> int:
        """How long time stands still, until the clock has come to what was given; 0: it moves."""
        return max(self._last_us - self._clock.boot_us() - self._offset_us, 0)

    def go_back(self) -> None:
        """Give the time believed, though a later one was given: nobody decided by that one."""
        self._last_us = 0

    @property
    def offset_us(self) -> int:
        """What the time believed is beyond boot time."""
        return self._offset_us

    def believed_us(self) -> int:
        """The same, as it was believed at the last `now_us`; for other threads than its own."""
        return max(self._last_us, self._clock.boot_us() + self._offset_us)

    def now_us(self) -> int:
        """Time to decide by, in microseconds UTC."""
        boot_us = self._clock.boot_us()
        seen_us = self._clock.wall_us() - boot_us
        self._consider(seen_us, boot_us)
        self._last_us = max(self._last_us, boot_us + self._offset_us)
        return self._last_us

    def _consider(self, seen_us: int, boot_us: int) -> None:
        if abs(seen_us - self._offset_us) <= STEP_US:
            # Slewing and drift are followed; only steps are doubted.
            self._offset_us = seen_us
            self._doubted_us = None
            self.skew_us = 0
            return
        self.skew_us = seen_us - self._offset_us
        if self._doubted_us is None or abs(seen_us - self._doubted_us) > STEP_US:
            self._doubted_us = seen_us
            self._since_us = boot_us
        elif boot_us - self._since_us >= STEADY_US and self._agrees(seen_us):
            self._offset_us = seen_us
            self._doubted_us = None
            self.skew_us = 0


class BrokerTime:
    """What a broker's clock showed, beside this host's boot-time clock."""

    def __init__(self) -> None:
        """Not asked yet."""
        self._low_us: int | None = None
        self._high_us = 0

    def note(self, asked_us: int, answered_us: int, broker_us: int) -> None:
        """The broker showed this between two instants of the boot-time clock."""
        self._low_us = broker_us - answered_us
        self._high_us = broker_us - asked_us

    def agrees(self, offset_us: int) -> bool:
        """Whether wall time that is so much beyond boot time is the broker's, to within 2 s."""
        if self._low_us is None:
            return False
        return self._low_us - STEP_US <= offset_us <= self._high_us + STEP_US
