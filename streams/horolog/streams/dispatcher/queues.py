"""A ready queue's side in the dispatcher: whose turn it is, how many hints are out, who is offered
again.

One `ReadyQueue` stands for a pool, function and tier: for one kind of worker that takes from it.
Tenants with work and room in their quota take turns.
The window bounds the hints out, so that the backlog stays here, ordered and cancellable: it doubles
while hints are claimed within 0.5 s and falls to the last second's claims when they are not.
"""

import heapq
from collections import deque
from typing import Final

from horolog.schemas.records import RunId, TenantId
from horolog.streams.dispatcher.entries import Entry, Turn, key_of, turn_of
from horolog.streams.dispatcher.rates import ClaimRate, Trickle
from horolog.streams.dispatcher.tenants import Tenant
from horolog.streams.limits import MILLISECOND_US, SECOND_US

WINDOW_FIRST: Final = 64
WINDOW_LEAST: Final = 16
WINDOW_MOST: Final = 1 << 16
FAST_US: Final = 500 * MILLISECOND_US
OFFER_FIRST_US: Final = 1_500 * MILLISECOND_US
OFFER_MOST_US: Final = 30 * SECOND_US


class ReadyQueue:
    """Waiting runs that are due, of one pool and tier, and the hints out for them."""

    def __init__(self) -> None:
        """Nothing waits, nothing is out."""
        self._heaps: dict[TenantId, list[tuple[Turn, int, Entry]]] = {}
        self._turns: deque[TenantId] = deque()
        self._in_turn: set[TenantId] = set()
        self._tie = 0
        self.out: dict[RunId, Entry] = {}
        """Hints out, oldest offer first."""
        self._out_of: dict[TenantId, int] = {}
        """Number of hints out by tenant."""
        self.window = WINDOW_FIRST
        self._fast = 0
        self._cut_us = 0
        self.rate = ClaimRate()
        self._make_up = Trickle()

    def put(self, entry: Entry) -> None:
        """A run is due and may be released when it is its turn."""
        tenant = entry.state.tenant
        heap = self._heaps.setdefault(tenant, [])
        self._tie += 1
        heapq.heappush(heap, (turn_of(entry), self._tie, entry))
        self.enter(tenant)

    def enter(self, tenant: TenantId) -> None:
        """The tenant takes part in the turns again, if it has work."""
        if tenant not in self._in_turn and self._heaps.get(tenant):
            self._in_turn.add(tenant)
            self._turns.append(tenant)

    def take(self, tenants: dict[TenantId, Tenant], *, known: bool, now_us: int) -> list[Entry]:
        """Runs to release now. `known`: every partition has told its runs, so quotas are exact;
        until then tenants with a quota wait. A tenant without room is parked.
        """
        taken: list[Entry] = []
        passed = 0
        while self._turns and len(self.out) < 2 * self.window and passed < len(self._turns):
            name = self._turns.popleft()
            tenant = tenants[name]
            # A full window holds back those that fill it: whoever has nothing out gets one hint,
            # so that a small tenant does not wait for the hints of a flood to be worked off.
            is_full = len(self.out) >= self.window and self._out_of.get(name, 0) > 0
            if is_full or (tenant.is_limited and not known):
                self._turns.append(name)
                passed += 1
                continue
            entry = self._top(name)
            if entry is None or not tenant.has_room:
                self._in_turn.discard(name)
                if entry is not None:
                    tenant.parked.add(key_of(entry.state))
                continue
            self._turns.append(name)
            if entry.state.make_up and not self._make_up.take(self.rate.per_s(now_us), now_us):
                passed += 1
                continue
            passed = 0
            heapq.heappop(self._heaps[name])
            tenant.holding.add(entry.state.run_id)
            self.offer(entry, now_us)
            taken.append(entry)
        return taken

    def _top(self, tenant: TenantId) -> Entry | None:
        """The tenant's next run; what is stale is dropped on the way."""
        heap = self._heaps.get(tenant)
        while heap:
            turn, _, entry = heap[0]
            if not entry.gone and not entry.released and turn == turn_of(entry):
                return entry
            heapq.heappop(heap)
        self._heaps.pop(tenant, None)
        return None

    def offer(self, entry: Entry, now_us: int) -> None:
        """A hint goes out, for the first time or again."""
        entry.released = True
        entry.offered_us = now_us
        entry.offers += 1
        self.withdraw(entry)
        self.out[entry.state.run_id] = entry
        tenant = entry.state.tenant
        self._out_of[tenant] = self._out_of.get(tenant, 0) + 1

    def withdraw(self, entry: Entry) -> bool:
        """The hint of a run is no longer out; False: none was."""
        if self.out.pop(entry.state.run_id, None) is None:
            return False
        tenant = entry.state.tenant
        left = self._out_of[tenant] - 1
        if left:
            self._out_of[tenant] = left
        else:
            del self._out_of[tenant]
        return True

    def claimed(self, entry: Entry, now_us: int) -> None:
        """A run of this queue was claimed."""
        self.rate.add(now_us)
        if not self.withdraw(entry):
            return
        if now_us - entry.offered_us <= FAST_US:
            self._fast += 1
            if self._fast >= self.window // 2:
                self._fast = 0
                self.window = min(self.window * 2, WINDOW_MOST)

    def unclaimed(self, now_us: int) -> list[Entry]:
        """Hints whose validity has ended, to be offered again; also narrows the window when hints
        are not claimed fast. Cost: looks at the oldest offers only.
        """
        if self._oldest_us(now_us) <= now_us - FAST_US and self._cut_us <= now_us - SECOND_US:
            self._cut_us = now_us
            self._fast = 0
            self.window = max(WINDOW_LEAST, min(self.window, self.rate.per_s(now_us)))
        ended: list[Entry] = []
        for entry in self.out.values():
            if entry.offered_us + OFFER_FIRST_US > now_us:
                break
            if valid_until_us(entry) <= now_us:
                ended.append(entry)
        return ended

    def _oldest_us(self, now_us: int) -> int:
        oldest = next(iter(self.out.values()), None)
        return now_us if oldest is None else oldest.offered_us

    def wake_us(self, now_us: int) -> int | None:
        """When something is to be done without new input."""
        instants = []
        oldest = next(iter(self.out.values()), None)
        if oldest is not None:
            instants.append(now_us + FAST_US)
        if self._turns and len(self.out) < 2 * self.window:
            instants.append(now_us + FAST_US // 10)
        return min(instants, default=None)

    def waiting(self) -> int:
        """Runs that are due and not released, stale ones included."""
        return sum(len(heap) for heap in self._heaps.values())

    def ahead_of(self, entry: Entry) -> int:
        """Runs of the same tenant that come before this one. Cost: one pass over its heap."""
        turn = turn_of(entry)
        return sum(
            other[0] < turn and not other[2].gone and not other[2].released
            for other in self._heaps.get(entry.state.tenant, ())
        )


def valid_until_us(entry: Entry) -> int:
    """Until when the hint that is out may be claimed: 1.5 s, 3 s, 6 s ... after it was offered."""
    return entry.offered_us + min(OFFER_FIRST_US << min(entry.offers - 1, 10), OFFER_MOST_US)
