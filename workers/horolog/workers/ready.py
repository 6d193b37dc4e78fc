"""Ready queues: hints by tier, drained 70/20/10, with idle share lent on; in a tier tenants take
turns.

Each take goes to the tier that is furthest behind its share among those that have hints, so over
any stretch with all tiers waiting the shares hold to within one take, and a tier without hints
leaves its share to the others at once. A tier that was idle saves nothing up.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from horolog.schemas.ids import tenant_of
from horolog.schemas.records import Hint, TenantId, Tier

WEIGHTS: Final[Mapping[Tier, int]] = {Tier.HIGH: 70, Tier.NORMAL: 20, Tier.LOW: 10}


class _Turns:
    """Hints of one tier, by tenant."""

    def __init__(self) -> None:
        self._by_tenant: dict[TenantId, deque[Hint]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, hint: Hint) -> None:
        self._by_tenant.setdefault(tenant_of(hint.run_id), deque()).append(hint)
        self._count += 1

    def take(self) -> Hint:
        """The oldest hint of the tenant whose turn it is; it comes last the next time."""
        tenant = next(iter(self._by_tenant))
        hints = self._by_tenant.pop(tenant)
        hint = hints.popleft()
        if hints:
            self._by_tenant[tenant] = hints
        self._count -= 1
        return hint


class ReadyQueues:
    """Hints that wait for a free slot of this process."""

    def __init__(self, weights: Mapping[Tier, int] = WEIGHTS) -> None:
        """Nothing waits."""
        self._queues: dict[Tier, _Turns] = {tier: _Turns() for tier in weights}
        self._strides = {tier: 1.0 / weight for tier, weight in weights.items()}
        self._passes = dict.fromkeys(weights, 0.0)
        self._now = 0.0

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def offer(self, hints: Iterable[Hint]) -> None:
        """Keep hints, in the order they came, each in its tier."""
        for hint in hints:
            queue = self._queues.get(hint.tier)
            if queue is None:
                # A tier of a newer release: better late than not at all.
                queue = self._queues[Tier.LOW]
            queue.put(hint)

    def take(self, most: int, now_us: int) -> list[Hint]:
        """At most so many hints that are still valid at `now_us` (microseconds UTC)."""
        taken: list[Hint] = []
        while len(taken) < most:
            waiting = [tier for tier, queue in self._queues.items() if queue]
            if not waiting:
                break
            tier = waiting[0]
            if len(waiting) > 1:
                tier = min(waiting, key=lambda each: max(self._passes[each], self._now))
            hint = self._queues[tier].take()
            if hint.valid_until_us < now_us:
                continue
            # Stride scheduling (Waldspurger, Weihl 1995): the lowest pass goes next.
            self._now = max(self._passes[tier], self._now)
            self._passes[tier] = self._now + self._strides[tier]
            taken.append(hint)
        return taken


Lane = tuple[str, str]
"""Pool and function (empty for other targets)."""


class HintPool:
    """All hints of a process, by lane, for whoever in it executes or passes them on.

    Any thread may offer and take.
    """

    def __init__(self) -> None:
        """Nothing waits, nobody listens."""
        self._lock = threading.Lock()
        self._lanes: dict[Lane, ReadyQueues] = {}
        self._listeners: list[Callable[[], None]] = []

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Be told that hints came, from any thread; the call must not block. Returns what ends
        it.
        """
        with self._lock:
            self._listeners = [*self._listeners, wake]

        def end() -> None:
            with self._lock:
                self._listeners = [other for other in self._listeners if other is not wake]

        return end

    def offer(self, hints: Iterable[Hint]) -> None:
        """Keep hints and tell everybody."""
        with self._lock:
            for hint in hints:
                lane = (hint.pool, hint.handler)
                queues = self._lanes.get(lane)
                if queues is None:
                    queues = self._lanes[lane] = ReadyQueues()
                queues.offer((hint,))
        for wake in self._listeners:
            wake()

    def take(self, wants: Callable[[str, str], bool], most: int, now_us: int) -> list[Hint]:
        """At most so many valid hints of the lanes that are wanted (`wants(pool, function)`).
        Lanes take turns: the one that gave last comes last the next time.
        """
        taken: list[Hint] = []
        with self._lock:
            for lane in list(self._lanes):
                if len(taken) >= most:
                    break
                queues = self._lanes[lane]
                if len(queues) and wants(*lane):
                    taken += queues.take(most - len(taken), now_us)
                    self._lanes[lane] = self._lanes.pop(lane)
        return taken
