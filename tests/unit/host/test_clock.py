"""Time of a host whose wall clock is set, before or while it decides."""

from horolog.streams.host.clock import STEADY_US, SteadyClock
from horolog.streams.limits import HOUR_US, SECOND_US

T0 = 1_714_996_800_000_000


class Clocks:
    """Clocks in the test's hand."""

    def __init__(self) -> None:
        self.wall = T0
        self.boot = 5 * HOUR_US

    def wall_us(self) -> int:
        return self.wall

    def boot_us(self) -> int:
        return self.boot

    def wait(self, us: int) -> None:
        self.wall += us
        self.boot += us


def test_clock_that_was_set_is_believed_by_all_threads_only_once_it_has_been_steady() -> None:
    clocks = Clocks()
    clock = SteadyClock(clocks)
    clocks.wall += HOUR_US
    clocks.wait(SECOND_US)
    assert clock.now_us() == clock.believed_us() == T0 + SECOND_US
    assert clock.skew_us == HOUR_US
    clocks.wait(STEADY_US)
    assert clock.believed_us() == T0 + SECOND_US + STEADY_US
    assert clock.now_us() == clock.believed_us() == T0 + SECOND_US + STEADY_US + HOUR_US
    assert clock.skew_us == 0


def test_clock_behind_what_was_decided_stands_until_it_has_come_there_and_says_so() -> None:
    clocks = Clocks()
    clock = SteadyClock(clocks)
    clock.start_at(T0 + HOUR_US)
    clocks.wait(SECOND_US)
    assert clock.now_us() == clock.believed_us() == T0 + HOUR_US
    assert clock.ahead_us == HOUR_US - SECOND_US
    clocks.wait(HOUR_US)
    assert clock.now_us() == clock.believed_us() == T0 + HOUR_US + SECOND_US
    assert clock.ahead_us == 0
