"""Workers as an operator sees them: who they are, what each holds, and which take nothing new.

Workers over HTTP are known by what they ask: a worker is there while it asks or holds a lease. What
is known of them is of this process only, and so is that one drains: its name is its own and ends
with it. Used in the event loop.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from horolog.api.limits import WORKER_KEPT_US, WORKERS_MAX
from horolog.schemas.records import RunId, TenantId

DRAINING: Final = "Horolog-Draining"
"""Header by which a worker over HTTP is told to lease nothing more."""

Owner = TenantId | None
"""Tenant whose runs a worker takes; None: those of all."""


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """A worker at one instant."""

    worker_id: str
    kind: str
    """`agent`: in the server's process; `sdk`, `http`: it leases over HTTP."""
    tenant: Owner
    pools: tuple[str, ...]
    """Empty: all."""
    handlers: tuple[str, ...] | None
    """Functions it has; None: it executes the other targets."""
    slots: int | None
    """Runs at the same time; None: it did not say."""
    seen_us: int
    runs: tuple[RunId, ...]
    """Those it holds a lease of."""
    is_draining: bool


class _Held(msgspec.Struct):
    run_id: RunId
    term_us: int
    until_us: int


class HttpWorker:
    """What is known of one worker over HTTP."""

    def __init__(self, owner: Owner, worker_id: str) -> None:
        """Nothing yet."""
        self.owner = owner
        self.worker_id = worker_id
        self.kind = "http"
        self.pools: tuple[str, ...] = ()
        self.handlers: tuple[str, ...] | None = None
        self.slots: int | None = None
        self.seen_us = 0
        self.held: dict[str, _Held] = {}
        self.draining = asyncio.Event()
        """Set: it is given no new lease, and who waits for one for it waits no longer."""

    def state(self, now_us: int) -> WorkerState:
        """As it is now; a lease that was not renewed in time is not held."""
        return WorkerState(
            worker_id=self.worker_id,
            kind=self.kind,
            tenant=self.owner,
            pools=self.pools,
            handlers=self.handlers,
            slots=self.slots,
            seen_us=self.seen_us,
            runs=tuple(held.run_id for held in self.held.values() if held.until_us > now_us),
            is_draining=self.draining.is_set(),
        )


class HttpWorkers:
    """All workers over HTTP, by owner and name."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        """None is known. now_us: wall clock, microseconds UTC."""
        self._now_us = now_us
        self._known: OrderedDict[tuple[Owner, str], HttpWorker] = OrderedDict()
        self._by_claim: dict[str, HttpWorker] = {}

    def asks(
        self,
        owner: Owner,
        worker_id: str,
        *,
        kind: str,
        pools: Sequence[str],
        handlers: Sequence[str] | None,
        slots: int | None,
    ) -> HttpWorker:
        """A worker asks for runs."""
        key = owner, worker_id
        worker = self._known.get(key)
        if worker is None:
            worker = self._known[key] = HttpWorker(owner, worker_id)
        worker.kind = kind
        worker.pools = tuple(pools)
        worker.handlers = None if handlers is None else tuple(handlers)
        worker.slots = slots
        self._saw(worker)
        self._forget()
        return worker

    def granted(
        self, worker: HttpWorker, claim_id: str, run_id: RunId, term_us: int, until_us: int
    ) -> None:
        """A worker holds a lease."""
        now_us = self._now_us()
        for old in [old for old, held in worker.held.items() if held.until_us <= now_us]:
            del worker.held[old], self._by_claim[old]
        worker.held[claim_id] = _Held(run_id, term_us, until_us)
        self._by_claim[claim_id] = worker
        self._saw(worker)

    def renewed(self, claim_id: str) -> HttpWorker | None:
        """A lease was renewed; by whom, if that is known."""
        worker = self._by_claim.get(claim_id)
        if worker is not None:
            held = worker.held[claim_id]
            held.until_us = self._now_us() + held.term_us
            self._saw(worker)
        return worker

    def ended(self, claim_id: str) -> None:
        """A lease is over."""
        worker = self._by_claim.pop(claim_id, None)
        if worker is not None:
            del worker.held[claim_id]
            self._saw(worker)

    def states(self) -> Iterator[WorkerState]:
        """Every worker, by owner and name."""
        self._forget()
        now_us = self._now_us()
        for _, worker in sorted(self._known.items(), key=lambda one: (one[0][0] or "", one[0][1])):
            yield worker.state(now_us)

    def drain(self, state: WorkerState) -> None:
        """Give a worker nothing more."""
        worker = self._known.get((state.tenant, state.worker_id))
        if worker is not None:
            worker.draining.set()

    def _saw(self, worker: HttpWorker) -> None:
        worker.seen_us = self._now_us()
        self._known.move_to_end((worker.owner, worker.worker_id))

    def _forget(self) -> None:
        """Forget who has not been seen for long, and the longest unseen of too many."""
        before_us = self._now_us() - WORKER_KEPT_US
        while self._known:
            key, worker = next(iter(self._known.items()))
            if len(self._known) <= WORKERS_MAX and worker.seen_us >= before_us:
                return
            del self._known[key]
            for claim_id in worker.held:
                del self._by_claim[claim_id]
