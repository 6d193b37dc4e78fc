"""Rates as the dispatcher measures them, by the time it is given."""

from typing import Final

from horolog.streams.limits import MILLISECOND_US, SECOND_US

MAKE_UP_LEAST_PER_S: Final = 20
"""Make-up runs go on at this rate at least, also when nothing else is claimed: 500 of them after
an outage take 25 s, and the first second has less than 25 (case Q07)."""

_PART_US: Final = 100 * MILLISECOND_US
_PARTS: Final = 10
_KEPT: Final = 2 * _PARTS


class ClaimRate:
    """Claims of the last two seconds, in twenty parts."""

    __slots__ = ("_counts", "_part")

    def __init__(self) -> None:
        """None yet."""
        self._counts = [0] * _KEPT
        self._part = 0

    def add(self, now_us: int) -> None:
        """One more claim."""
        part = now_us // _PART_US
        if part - self._part >= _KEPT:
            self._counts = [0] * _KEPT
            self._part = part
        while self._part < part:
            self._part += 1
            self._counts[self._part % _KEPT] = 0
        self._counts[self._part % _KEPT] += 1

    def per_s(self, now_us: int) -> int:
        """Claims of the last second. Changes nothing; may be called from another thread."""
        return self._sum(now_us, _PARTS)

    def peak(self, now_us: int) -> int:
        """Claims of the last second or of the one before, whichever had more: workers that end
        their runs together claim in bursts, and a burst must not be missed for being a little
        late.
        """
        last = self._sum(now_us, _PARTS)
        return max(last, self._sum(now_us, _KEPT) - last)

    def _sum(self, now_us: int, parts: int) -> int:
        latest = self._part
        idle = max(now_us // _PART_US - latest, 0)
        return sum(self._counts[(latest - back) % _KEPT] for back in range(parts - idle))


class MakeUpRate:
    """How many make-up runs a pool may release: half its measured claim rate, or the least rate.

    Each one that is claimed counts as a claim itself, so beside f fresh claims a second they settle
    at f: half of all.
    """

    __slots__ = ("_at_us", "_room")

    def __init__(self) -> None:
        """Room for a tenth of a second at the least rate."""
        self._room = MAKE_UP_LEAST_PER_S / 10
        self._at_us: int | None = None

    def has_room(self, claims_per_s: int, now_us: int) -> bool:
        """Whether one more may be released now."""
        rate = max(float(MAKE_UP_LEAST_PER_S), claims_per_s / 2)
        if self._at_us is not None and now_us > self._at_us:
            gained = (now_us - self._at_us) / SECOND_US * rate
            self._room = min(self._room + gained, max(rate / 10, 1.0))
        if self._at_us is None or now_us > self._at_us:
            self._at_us = now_us
        return self._room >= 1

    def take(self) -> None:
        """One is released."""
        self._room -= 1

    def next_us(self, claims_per_s: int, now_us: int) -> int:
        """When there will be room for one more."""
        if self.has_room(claims_per_s, now_us):
            return now_us
        rate = max(float(MAKE_UP_LEAST_PER_S), claims_per_s / 2)
        return now_us + max(int((1 - self._room) / rate * SECOND_US) + 1, 1)
