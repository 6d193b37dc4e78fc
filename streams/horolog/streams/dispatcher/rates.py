"""Rates as the dispatcher measures them, by the time it is given."""

from collections import deque
from typing import Final

from horolog.streams.limits import SECOND_US

MAKE_UP_LEAST_PER_S: Final = 20
"""Made-up runs go on at this rate at least, also when nothing else is claimed."""


class ClaimRate:
    """Claims of the last second, in ten parts."""

    PARTS: Final = 10
    PART_US: Final = SECOND_US // PARTS

    def __init__(self) -> None:
        """None yet."""
        self._parts: deque[list[int]] = deque()

    def add(self, now_us: int) -> None:
        """One more claim."""
        part = now_us // self.PART_US
        if self._parts and self._parts[-1][0] == part:
            self._parts[-1][1] += 1
        else:
            self._parts.append([part, 1])
            self._drop(part)

    def per_s(self, now_us: int) -> int:
        """Claims of the last second."""
        self._drop(now_us // self.PART_US)
        return sum(count for _, count in self._parts)

    def _drop(self, part: int) -> None:
        while self._parts and self._parts[0][0] <= part - self.PARTS:
            self._parts.popleft()


class Trickle:
    """Room for made-up runs: half the measured claim rate, or the least rate."""

    def __init__(self) -> None:
        """Room for a tenth of a second at first."""
        self._room = MAKE_UP_LEAST_PER_S / 10
        self._at_us: int | None = None

    def take(self, claims_per_s: int, now_us: int) -> bool:
        """Whether one more may be released now; if so it is counted."""
        rate = max(MAKE_UP_LEAST_PER_S, claims_per_s / 2)
        if self._at_us is not None:
            elapsed_s = max(now_us - self._at_us, 0) / SECOND_US
            self._room = min(self._room + elapsed_s * rate, rate / 2)
        self._at_us = now_us
        if self._room < 1:
            return False
        self._room -= 1
        return True
