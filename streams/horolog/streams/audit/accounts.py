"""The account of a job's slots: which of them have no outcome yet.

Slots up to a frontier are taken (planned, skipped, or in a cursor), but for some holes; those after
it are still to come. A hole remembers the schedule that was in force, so that its slots can be
named at any later time. In a good ledger holes are short-lived: a revoked run, the rest of a
cursor that is given up. What is in a hole when the log ends is unexplained.
"""

import bisect
import enum
from collections.abc import Iterator
from typing import NamedTuple

from horolog.schemas.records import JobId, Schedule
from horolog.streams.calendar import Zones, count_slots, next_slot, slots_between


class Stretch(NamedTuple):
    """The slots of a schedule in (after, to]."""

    after_us: int
    to_us: int
    schedule: Schedule

    def has_slots(self, job_id: JobId, zones: Zones) -> bool:
        """Whether there are any."""
        slot_us = next_slot(self.schedule, job_id, self.after_us, zones)
        return slot_us is not None and slot_us <= self.to_us

    def slots_count(self, job_id: JobId, zones: Zones) -> int:
        """How many there are."""
        return count_slots(self.schedule, job_id, self.after_us, self.to_us, zones)

    def slots(self, job_id: JobId, zones: Zones) -> Iterator[int]:
        """They."""
        return slots_between(self.schedule, job_id, self.after_us, self.to_us, zones)


class Given(enum.Enum):
    """What became of a slot that was asked for."""

    FRESH = "fresh"
    """It was free and is taken now."""
    DECIDED = "decided"
    """It was taken before."""
    NO_SLOT = "no_slot"
    """The schedule has no such slot."""


class Taken(NamedTuple):
    """What became of a range that was asked for."""

    fresh: list[Stretch]
    """Parts that were free, and are taken now."""
    decided: list[Stretch]
    """Parts that were taken before, by the schedule in force."""


def is_slot(schedule: Schedule, job_id: JobId, slot_us: int, zones: Zones) -> bool:
    """Whether an instant is a slot."""
    return next_slot(schedule, job_id, slot_us - 1, zones) == slot_us


class SlotAccount:
    """Which slots of one job are free."""

    __slots__ = ("_ahead", "_holes", "_job_id", "_next", "frontier_us", "schedule", "since_us")

    def __init__(self, job_id: JobId) -> None:
        self._job_id = job_id
        self.schedule: Schedule | None = None
        self.since_us = 0
        """Slots after this instant are the schedule's; those up to it an earlier one's."""
        self.frontier_us = 0
        self._holes: list[Stretch] = []
        self._ahead: list[int] = []
        self._next: tuple[int, Zones, int | None] | None = None

    def free(self, to_us: int, zones: Zones) -> Iterator[Stretch]:
        """The slots that were passed over, and those after the frontier up to an instant."""
        yield from self._holes
        if self._has_next(to_us, zones):
            assert self.schedule is not None, "without a schedule there is no next slot"
            yield from self._apart(Stretch(self.frontier_us, to_us, self.schedule))[0]

    def decide_ahead(self, slot_us: int, now_us: int) -> None:
        """A slot that is still to come has its outcome: no change of the job frees it again."""
        self._ahead = [each for each in self._ahead if each > now_us]
        bisect.insort(self._ahead, slot_us)

    def give(self, slot_us: int, zones: Zones) -> Given:
        """Take one slot."""
        if slot_us > self.frontier_us:
            return self._give_next(slot_us, zones)
        at = bisect.bisect_left(self._holes, slot_us, key=lambda hole: hole.after_us) - 1
        hole = self._holes[at] if at >= 0 else None
        if hole is None or slot_us > hole.to_us:
            return Given.DECIDED
        if not is_slot(hole.schedule, self._job_id, slot_us, zones):
            return Given.NO_SLOT
        parts = (hole._replace(to_us=slot_us - 1), hole._replace(after_us=slot_us))
        self._holes[at : at + 1] = [part for part in parts if part.after_us < part.to_us]
        return Given.FRESH

    def _give_next(self, slot_us: int, zones: Zones) -> Given:
        if self.schedule is None:
            return Given.NO_SLOT
        if self._next_slot(zones) != slot_us:
            if not is_slot(self.schedule, self._job_id, slot_us, zones):
                return Given.NO_SLOT
            self._leave(slot_us - 1)
        self.frontier_us = slot_us
        return Given.DECIDED if slot_us in self._ahead else Given.FRESH

    def _leave(self, to_us: int) -> None:
        """The slots from the frontier up to an instant are passed over."""
        if self.schedule is not None:
            self._holes += self._apart(Stretch(self.frontier_us, to_us, self.schedule))[0]

    def _apart(self, stretch: Stretch) -> tuple[list[Stretch], list[Stretch]]:
        """A stretch without the slots that had their outcome ahead of time, and those."""
        free: list[Stretch] = []
        ahead: list[Stretch] = []
        at_us = stretch.after_us
        for slot_us in self._ahead:
            if at_us < slot_us <= stretch.to_us:
                free.append(stretch._replace(after_us=at_us, to_us=slot_us - 1))
                ahead.append(stretch._replace(after_us=slot_us - 1, to_us=slot_us))
                at_us = slot_us
        free.append(stretch._replace(after_us=at_us))
        return free, ahead

    def give_back(self, slot_us: int) -> None:
        """A taken slot of the schedule in force is free again."""
        if self.schedule is not None:
            self._dig(Stretch(slot_us - 1, slot_us, self.schedule))

    def give_back_range(self, rest: Stretch) -> None:
        """Taken slots are free again."""
        self._dig(rest)

    def _dig(self, hole: Stretch) -> None:
        bisect.insort(self._holes, hole, key=lambda each: each.after_us)

    def take(self, after_us: int, to_us: int, zones: Zones) -> Taken:
        """Take the slots in (after, to]."""
        taken = Taken([], [])
        if after_us < self.frontier_us:
            self._take_behind(after_us, min(to_us, self.frontier_us), taken)
        if to_us > self.frontier_us:
            if after_us > self.frontier_us and self._has_next(after_us, zones):
                self._leave(after_us)
            if self.schedule is not None:
                begin_us = max(after_us, self.frontier_us)
                free, ahead = self._apart(Stretch(begin_us, to_us, self.schedule))
                taken.fresh.extend(free)
                taken.decided.extend(ahead)
            self.frontier_us = to_us
        return taken

    def _take_behind(self, after_us: int, to_us: int, taken: Taken) -> None:
        kept: list[Stretch] = []
        at_us = max(after_us, self.since_us)
        for hole in self._holes:
            low, high = max(hole.after_us, after_us), min(hole.to_us, to_us)
            if low >= high:
                kept.append(hole)
                continue
            taken.fresh.append(hole._replace(after_us=low, to_us=high))
            parts = (hole._replace(to_us=low), hole._replace(after_us=high))
            kept += [part for part in parts if part.after_us < part.to_us]
            self._decided(at_us, low, taken)
            at_us = max(at_us, high)
        self._decided(at_us, to_us, taken)
        self._holes = kept

    def _decided(self, after_us: int, to_us: int, taken: Taken) -> None:
        if self.schedule is not None and after_us < to_us:
            taken.decided.append(Stretch(after_us, to_us, self.schedule))

    def settle(self, accounted_to_us: int, zones: Zones) -> None:
        """Slots up to an instant were for what was in force: those still free stay so for good.
        What was taken beyond is free again.
        """
        self.go_on(accounted_to_us, zones)
        self._holes = [
            hole._replace(to_us=min(hole.to_us, accounted_to_us))
            for hole in self._holes
            if hole.after_us < accounted_to_us
        ]
        self.frontier_us = accounted_to_us

    def go_on(self, accounted_to_us: int, zones: Zones) -> None:
        """Slots up to an instant were to be decided; what is planned beyond stays."""
        if self._has_next(accounted_to_us, zones):
            self._leave(accounted_to_us)
        self.frontier_us = max(self.frontier_us, accounted_to_us)
        self._ahead = [slot_us for slot_us in self._ahead if slot_us > accounted_to_us]

    def change(self, schedule: Schedule | None, since_us: int) -> None:
        """Slots after an instant are those of another schedule; None: there are none."""
        self.schedule = schedule
        self.since_us = since_us
        self._next = None

    def _has_next(self, to_us: int, zones: Zones) -> bool:
        if to_us <= self.frontier_us:
            return False
        slot_us = self._next_slot(zones)
        return slot_us is not None and slot_us <= to_us

    def _next_slot(self, zones: Zones) -> int | None:
        known = self._next
        if known is not None and known[0] == self.frontier_us and known[1] is zones:
            return known[2]
        slot_us = None
        if self.schedule is not None:
            slot_us = next_slot(self.schedule, self._job_id, self.frontier_us, zones)
        self._next = (self.frontier_us, zones, slot_us)
        return slot_us
