"""A shop floor: a dispatcher, a scheduler that grants at once, and workers that take hints from
the product's ready queues, all in virtual time.
"""

import heapq
from collections import Counter
from collections.abc import Sequence

import msgspec

from horolog.schemas.records import RunId, RunState, TenantSettings
from horolog.streams.limits import MILLISECOND_US, SECOND_US
from horolog.workers.ready import ReadyQueues
from tests.unit.dispatcher.rig import T0, Rig, closed, hints_in, started

STEP_US = 10 * MILLISECOND_US


class Start(msgspec.Struct, frozen=True):
    """A run was started: after so many seconds, waiting so long since it was due."""

    run: RunState
    at_s: float
    late_s: float


class Floor:
    """Workers with some slots, all of one pool. States travel to the dispatcher within a step."""

    def __init__(self, slots: int, limits: Sequence[TenantSettings] = ()) -> None:
        self.rig = Rig(limits=limits)
        self.slots = slots
        self.starts: list[Start] = []
        self._ready = ReadyQueues()
        self._waiting: dict[RunId, RunState] = {}
        self._running: list[tuple[int, RunId, RunState]] = []
        self._lasts_us: dict[RunId, int] = {}
        self._told: list[RunState] = []
        self._arrivals: list[tuple[int, int, RunState | None]] = []
        self._count = 0

    @property
    def at_s(self) -> float:
        """Seconds since the start."""
        return (self.rig.now_us - T0) / SECOND_US

    @property
    def running(self) -> Counter[str]:
        """Runs that run, by tenant."""
        return Counter(str(state.tenant) for _, _, state in self._running)

    @property
    def is_done(self) -> bool:
        """Nothing waits, runs, or is to come."""
        return not self._waiting and not self._running and not self._arrivals

    def add(self, *runs: RunState, lasts_s: float, at_s: float | None = None) -> None:
        """Runs that take so long; told at once, or so many seconds after the start."""
        at_us = self.rig.now_us if at_s is None else T0 + int(at_s * SECOND_US)
        for state in runs:
            self._lasts_us[state.run_id] = int(lasts_s * SECOND_US)
            self._push(at_us, state)

    def run_until(self, at_s: float) -> None:
        """Go on until so many seconds after the start."""
        end_us = T0 + int(at_s * SECOND_US)
        self._push(end_us, None)
        while self.at_s < at_s:
            self.step()

    def run_dry(self, at_most_s: float) -> None:
        """Go on until nothing is left."""
        while not self.is_done:
            assert self.at_s < at_most_s, f"{len(self._waiting)} wait after {self.at_s} s"
            self.step()

    def step(self) -> None:
        """What ended is told, hints go out, free slots take them, starts are told. Then time moves
        on by 10 ms, or to when the next thing happens: also by the dispatcher's own word.
        """
        rig = self.rig
        self._end()
        self._arrive()
        self._tell()
        self._ready.offer(hints_in(rig.tick()))
        self._start()
        self._tell()
        self._ready.offer(hints_in(rig.tick()))
        self._start()
        self._tell()
        rig.now_us += STEP_US
        nexts = [each[0] for each in (*self._running[:1], *self._arrivals[:1])]
        wake_us = rig.index.wake_us(rig.now_us)
        if wake_us is not None:
            nexts.append(wake_us)
        skipped = (min(nexts, default=rig.now_us) - rig.now_us) // STEP_US
        rig.now_us += max(skipped, 0) * STEP_US

    def _push(self, at_us: int, state: RunState | None) -> None:
        self._count += 1
        heapq.heappush(self._arrivals, (at_us, self._count, state))

    def _end(self) -> None:
        while self._running and self._running[0][0] <= self.rig.now_us:
            self._told.append(closed(heapq.heappop(self._running)[2]))

    def _arrive(self) -> None:
        while self._arrivals and self._arrivals[0][0] <= self.rig.now_us:
            state = heapq.heappop(self._arrivals)[2]
            if state is None:
                continue
            self._waiting[state.run_id] = state
            self._told.append(state)

    def _tell(self) -> None:
        if self._told:
            self.rig.tell(*self._told)
            self._told = []

    def _start(self) -> None:
        now_us = self.rig.now_us
        for hint in self._ready.take(self.slots - len(self._running), now_us):
            state = self._waiting.get(hint.run_id)
            if state is None or state.plan != hint.plan or state.not_before_us > now_us:
                continue
            del self._waiting[state.run_id]
            late_s = (now_us - state.due_us) / SECOND_US
            self.starts.append(Start(state, self.at_s, late_s))
            ends_us = now_us + self._lasts_us[state.run_id]
            heapq.heappush(self._running, (ends_us, state.run_id, state))
            self._told.append(started(state))
