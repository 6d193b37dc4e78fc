"""A ready queue's side in the dispatcher: whose turn it is, how many hints are out, who is offered
again.

    Pool ── Lane ── ReadyQueue ── Line
    workers of a name; of them those that serve one function; a tier; a tenant in it

**Turns.** Tenants with due runs stand in a ring by ticket; the one that is served takes a new one.
A tenant comes with its fresh runs first, by due time; with make-up runs when it has no fresh one.
Those who come with make-up runs stand in a ring of their own with tickets of the same roll, so they
keep their turn, and are passed over while the make-up rate leaves no room. A tenant without room in
its quota leaves the ring and is parked; it comes back when it has room.

**Window.** It bounds the hints out, so that the backlog stays here, ordered and cancellable. It
doubles when as many hints in a row as it holds were claimed within 0.5 s. When one was not, it is
the claims of the last second; it never stays above twice those. A tier gets no fewer than another
one of its lane has out, and when all its hints were taken as many as its pool's workers hold: else
the windows, and not the workers' 70/20/10, would settle how the tiers share a full pool.

**Offers.** A hint is valid for 1.5 s and then sent again. If others that were sent after it have
been claimed meanwhile, somebody is stuck with it: it is then valid for 3 s, 6 s ... up to 30 s. If
nothing of its lane has been claimed since it was sent, all workers are busy, or there are none, or
all hints were lost: the run rests, and only four hints are kept valid, 3 s each, in turn. When one
of them is claimed there are workers, and all that rest are sent again.
"""

import heapq
from collections import deque
from typing import Final

from horolog.schemas.records import RunId, TenantId, Tier
from horolog.streams.dispatcher.entries import OUT, READY, RESTING, Entry, LaneKey
from horolog.streams.dispatcher.rates import ClaimRate, MakeUpRate
from horolog.streams.dispatcher.tenants import Tenant
from horolog.streams.limits import MILLISECOND_US, SECOND_US

WINDOW_FIRST: Final = 16
WINDOW_LEAST: Final = 4
WINDOW_MOST: Final = 1 << 16
FAST_US: Final = 500 * MILLISECOND_US
VALID_US: Final = (*(1_500 * MILLISECOND_US << n for n in range(5)), 30 * SECOND_US)
"""How long the first, second ... hint of a plan is valid."""
PROBES: Final = 4
"""Hints of a queue kept valid while nothing of its lane is claimed."""
PROBE_STEP: Final = 1
"""Index of their validity: 3 s, so that a worker that becomes free is never long without one."""
MAKE_UP_OUT_LEAST: Final = 2
"""Make-up hints out at least: with one, a lost hint would hold up all others for 1.5 s."""
STALE_MOST: Final = 64

_HIGH: Final = Tier.HIGH
_LOW: Final = Tier.LOW

Turn = tuple[int, RunId, int, Entry]
"""Order within a tenant: due time, then ID; then the place, which makes each different."""


class Line:
    """A tenant's due runs in one ready queue."""

    __slots__ = ("fresh", "live", "made_up", "ring", "tenant", "ticket")

    def __init__(self, tenant: Tenant) -> None:
        """Nobody waits."""
        self.tenant = tenant
        self.fresh: list[Turn] = []
        self.made_up: list[Turn] = []
        self.live = 0
        """Runs that wait in it; the heaps hold stale ones besides."""
        self.ring: list[tuple[int, Line]] | None = None
        """The ring it stands in; None = none, or parked."""
        self.ticket = 0

    def put(self, entry: Entry) -> None:
        """A run waits in the line."""
        state = entry.state
        heap = self.made_up if state.make_up else self.fresh
        heapq.heappush(heap, (state.due_us, state.run_id, entry.place, entry))
        self.live += 1

    def drop(self) -> None:
        """A run waits no longer. Cost: constant on average; the heaps are swept when most is stale,
        else a job edited over and over while its tenant is at its quota would fill them.
        """
        self.live -= 1
        if len(self.fresh) + len(self.made_up) > 2 * self.live + STALE_MOST:
            for heap in (self.fresh, self.made_up):
                heap[:] = [turn for turn in heap if _is_live(turn)]
                heapq.heapify(heap)

    def top(self, heap: list[Turn]) -> Entry | None:
        """The first run of one of its heaps; what is stale before it is dropped."""
        while heap:
            _, _, place, entry = heap[0]
            if entry.stage is READY and entry.place == place:
                return entry
            heapq.heappop(heap)
        return None

    def ahead_of(self, entry: Entry) -> int:
        """Runs that come before this one. May be called from another thread. Cost: one pass."""
        state = entry.state
        mine = (state.make_up, state.due_us, state.run_id)
        turns = [*self.fresh, *self.made_up]
        return sum(
            (turn[3].state.make_up, turn[0], turn[1]) < mine for turn in turns if _is_live(turn)
        )

    def oldest_us(self) -> int | None:
        """Due time of the run that waits longest; None = nobody waits."""
        turns = [*self.fresh, *self.made_up]
        return min((turn[0] for turn in turns if _is_live(turn)), default=None)


def _is_live(turn: Turn) -> bool:
    return turn[3].stage is READY and turn[3].place == turn[2]


class Pool:
    """What all lanes of a pool share."""

    def __init__(self) -> None:
        """Nothing was claimed yet."""
        self.started = 0
        """Runs that workers hold."""
        self.rate = ClaimRate()
        self.make_up = MakeUpRate()


class Lane:
    """The queues of one kind of worker, by tier."""

    def __init__(self, key: LaneKey, pool: Pool) -> None:
        """Nothing waits."""
        self.key = key
        self.pool = pool
        self.claimed_us = -1
        """When something of it was last claimed; negative = never yet."""
        self.passed_us = -1
        """When the latest of the hints was sent that have been claimed."""
        self.high = ReadyQueue(self, Tier.HIGH)
        self.normal = ReadyQueue(self, Tier.NORMAL)
        self.low = ReadyQueue(self, Tier.LOW)

    def queue(self, tier: Tier) -> "ReadyQueue":
        """The queue of a tier."""
        return self.high if tier is _HIGH else self.low if tier is _LOW else self.normal

    @property
    def queues(self) -> tuple["ReadyQueue", ...]:
        """Its queues, highest first."""
        return self.high, self.normal, self.low


class ReadyQueue:
    """Due runs of one lane and tier, and the hints out for them."""

    def __init__(self, lane: Lane, tier: Tier) -> None:
        """Nothing waits, nothing is out."""
        self.lane = lane
        self.tier = tier
        self.lines: dict[TenantId, Line] = {}
        self.out = 0
        """Hints out, valid or not."""
        self.window = WINDOW_FIRST
        self.rate = ClaimRate()
        self._fresh: list[tuple[int, Line]] = []
        self._made_up: list[tuple[int, Line]] = []
        self._tickets = 0
        self._fast = 0
        """Hints claimed fast in a row, the last one at most 0.5 s ago."""
        self._claimed_us = 0
        self._is_drained = False
        """Its last hint out was claimed, not withdrawn."""
        self._made_up_out = 0
        self._resting_count = 0
        self._sent: tuple[deque[tuple[int, Entry]], ...] = tuple(deque() for _ in VALID_US)
        """Valid hints by validity, oldest first; stale ones besides."""
        self._resting: deque[Entry] = deque()

    # --- who waits

    def put(self, entry: Entry, tenant: Tenant) -> None:
        """A run is due and may be released when it is its turn."""
        line = self.lines.get(tenant.name)
        if line is None:
            line = self.lines[tenant.name] = Line(tenant)
        entry.stage = READY
        line.put(entry)
        if line.ring is self._made_up and not entry.state.make_up:
            # It keeps its ticket: a fresh run does not cost the tenant its turn.
            self._stand(line, self._fresh)
        elif line.ring is None and line not in tenant.parked:
            self.enter(line)

    def enter(self, line: Line) -> None:
        """A line takes part in the turns (again), behind all that stand there."""
        self._tickets += 1
        line.ticket = self._tickets
        self._return(line)

    def drop(self, entry: Entry) -> None:
        """A run that waited for its turn waits no longer."""
        line = self.lines.get(entry.state.tenant)
        assert line is not None, f"{entry.state.run_id} waits in no line"
        line.drop()

    def _stand(self, line: Line, ring: list[tuple[int, Line]]) -> None:
        line.ring = ring
        heapq.heappush(ring, (line.ticket, line))

    def _return(self, line: Line) -> None:
        if line.top(line.fresh) is not None:
            self._stand(line, self._fresh)
        elif line.top(line.made_up) is not None:
            self._stand(line, self._made_up)
        else:
            line.ring = None
            line.tenant.parked.pop(line, None)
            del self.lines[line.tenant.name]

    # --- whose turn it is

    def take(self, *, known: bool, now_us: int) -> list[Entry]:
        """Runs to release now, until the window is full. `known`: every partition has told its open
        runs; until then tenants with a quota are parked.
        """
        self._fit(now_us)
        taken: list[Entry] = []
        while self.out < self.window:
            line = self._next(now_us)
            if line is None:
                break
            tenant = line.tenant
            made_up = line.ring is self._made_up
            entry = line.top(line.made_up if made_up else line.fresh)
            if entry is None:
                self._return(line)
            elif not tenant.has_room(known):
                line.ring = None
                tenant.parked[line] = self
            else:
                heapq.heappop(line.made_up if made_up else line.fresh)
                line.live -= 1
                tenant.holding.add(entry.state.run_id)
                self.out += 1
                if made_up:
                    self._made_up_out += 1
                    self.lane.pool.make_up.take()
                taken.append(entry)
                self.enter(line)
        return taken

    def _next(self, now_us: int) -> Line | None:
        """The line whose turn it is, out of its ring."""
        fresh = _first(self._fresh)
        made_up = _first(self._made_up)
        is_turn = made_up is not None and (fresh is None or made_up.ticket < fresh.ticket)
        if is_turn and self._may_make_up(now_us):
            heapq.heappop(self._made_up)
            return made_up
        if fresh is not None:
            heapq.heappop(self._fresh)
        return fresh

    def _may_make_up(self, now_us: int) -> bool:
        pool = self.lane.pool
        return self._has_make_up_room(now_us) and pool.make_up.has_room(
            pool.rate.per_s(now_us), now_us
        )

    def _has_make_up_room(self, now_us: int) -> bool:
        # A make-up hint that is out stands before fresh ones at the worker: as few as keep it busy.
        return self._made_up_out < max(MAKE_UP_OUT_LEAST, self.rate.per_s(now_us) // 2)

    # --- hints out

    def offer(self, entry: Entry, now_us: int) -> int:
        """A hint goes out, for the first time or again; until when it is valid."""
        return self._send(entry, entry.step, now_us)

    def _send(self, entry: Entry, step: int, now_us: int) -> int:
        entry.stage = OUT
        entry.offers += 1
        entry.offered_us = now_us
        self._sent[step].append((now_us, entry))
        return now_us + VALID_US[step]

    def withdraw(self, entry: Entry) -> None:
        """The hint of a run is worthless; the run was not claimed by it as far as is known."""
        self.out -= 1
        if entry.state.make_up:
            self._made_up_out -= 1
        if entry.stage is RESTING:
            self._resting_count -= 1

    def claimed(self, entry: Entry, now_us: int) -> None:
        """A run was claimed by its hint."""
        self.withdraw(entry)
        lane = self.lane
        lane.claimed_us = now_us
        lane.passed_us = max(lane.passed_us, entry.offered_us)
        lane.pool.rate.add(now_us)
        self.rate.add(now_us)
        if now_us - self._claimed_us > FAST_US:
            self._fast = 0
        self._claimed_us = now_us
        self._is_drained = not self.out
        if now_us - entry.offered_us > FAST_US:
            self._fast = 0
            return
        self._fast += 1
        if self._fast >= self.window:
            self._fast = 0
            self.window = min(self.window * 2, WINDOW_MOST)

    def offer_again(self, now_us: int) -> list[tuple[Entry, int]]:
        """Runs to offer again now, with the end of validity. Cost: what has ended, and one look at
        each validity.
        """
        again: list[tuple[Entry, int]] = []
        claimed_us, passed_us = self.lane.claimed_us, self.lane.passed_us
        for valid_us, sent in zip(VALID_US, self._sent, strict=True):
            while sent and (not _is_sent(sent[0]) or sent[0][0] + valid_us <= now_us):
                sent_us, entry = item = sent.popleft()
                if not _is_sent(item):
                    continue
                if passed_us > sent_us:
                    entry.step = min(entry.step + 1, len(VALID_US) - 1)
                if claimed_us >= sent_us:
                    again.append((entry, self.offer(entry, now_us)))
                else:
                    entry.stage = RESTING
                    self._resting.append(entry)
                    self._resting_count += 1
        while self._resting:
            entry = self._resting[0]
            if entry.stage is RESTING:
                if claimed_us >= entry.offered_us:
                    valid_until_us = self.offer(entry, now_us)
                elif self.out - self._resting_count < PROBES:
                    valid_until_us = self._send(entry, PROBE_STEP, now_us)
                else:
                    break
                self._resting_count -= 1
                again.append((entry, valid_until_us))
            self._resting.popleft()
        return again

    def _fit(self, now_us: int) -> None:
        """Bring the window to what is claimed."""
        oldest_us = self._oldest_us(0)
        if self._resting_count or (oldest_us is not None and oldest_us < now_us - FAST_US):
            self._fast = 0
            self.window = max(WINDOW_LEAST, self.rate.peak(now_us))
        elif self.window > WINDOW_FIRST:
            self.window = max(WINDOW_FIRST, min(self.window, 2 * self.rate.peak(now_us)))
        others = [queue for queue in self.lane.queues if queue is not self and not queue.is_idle]
        if others:
            if self._is_drained:
                self.window = max(self.window, self.lane.pool.started)
            self.window = max(self.window, *(queue.out for queue in others))
        self._is_drained = False

    def _oldest_us(self, step: int) -> int | None:
        sent = self._sent[step]
        while sent and not _is_sent(sent[0]):
            sent.popleft()
        return sent[0][0] if sent else None

    # --- when, and for operators

    @property
    def is_idle(self) -> bool:
        """Nothing waits for a turn and nothing is out."""
        return not self.out and not self._fresh and not self._made_up

    def wake_us(self, now_us: int) -> int | None:
        """When something is to be done without new input; None = never."""
        if self.out < self.window and _first(self._fresh) is not None:
            return now_us
        instants = [
            oldest_us + valid_us
            for step, valid_us in enumerate(VALID_US)
            if (oldest_us := self._oldest_us(step)) is not None
        ]
        waits = self.out < self.window and _first(self._made_up) is not None
        if waits and self._has_make_up_room(now_us):
            pool = self.lane.pool
            instants.append(pool.make_up.next_us(pool.rate.per_s(now_us), now_us))
        return min(instants, default=None)

    def waiting(self) -> int:
        """Runs that are due and have no hint out."""
        return sum(line.live for line in list(self.lines.values()))

    def oldest_us(self) -> int | None:
        """Due time of the run that waits longest, with a hint out or not. Cost: one pass."""
        out = [entry for sent in self._sent for _, entry in [*sent] if entry.stage is OUT]
        out += [entry for entry in [*self._resting] if entry.stage is RESTING]
        dues = [entry.state.due_us for entry in out]
        dues += [
            due_us for line in list(self.lines.values()) if (due_us := line.oldest_us()) is not None
        ]
        return min(dues, default=None)


def _first(ring: list[tuple[int, Line]]) -> Line | None:
    """The line in front; those that left the ring meanwhile are dropped on the way."""
    while ring:
        ticket, line = ring[0]
        if line.ticket == ticket and line.ring is ring:
            return line
        heapq.heappop(ring)
    return None


def _is_sent(item: tuple[int, Entry]) -> bool:
    return item[1].stage is OUT and item[1].offered_us == item[0]
