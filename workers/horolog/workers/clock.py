"""The clocks of a worker process."""

import time


def boot_us() -> int:
    """Boot-time clock in microseconds: unlike the monotonic one it goes on during suspend."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


def wall_us() -> int:
    """Wall clock in microseconds UTC."""
    return time.time_ns() // 1_000
