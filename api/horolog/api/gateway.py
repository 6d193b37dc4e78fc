"""Leases over HTTP: consumes hints and an inbox for workers that speak neither.

    lease      takes hints, claims each, answers with what was granted; waits for more if it is told
    heartbeat  passes the report on and waits until the scheduler has read it
    complete   the same

Only the scheduler grants and judges; here nothing is decided, only remembered for repeats: a
request ID that comes again gets the runs and tokens it got before, so an answer that was lost on
the way strands no run. Runs in one event loop; `deliver` may be called from any thread.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol, assert_never

import msgspec

from horolog.api.limits import (
    CLAIM_WAIT_S,
    GRANTS_REMEMBERED_MAX,
    LEASE_CALLS_MAX,
    REPORT_REPEAT_S,
    REPORT_WAIT_S,
    REQUESTS_REMEMBERED_MAX,
)
from horolog.schemas.errors import RATE_LIMITED, UNAVAILABLE, Unavailable
from horolog.schemas.ids import job_of, partition_of
from horolog.schemas.records import (
    ClaimRefused,
    ClaimRun,
    CompleteRun,
    Grant,
    Heartbeat,
    Hint,
    LogChunk,
    RefusalReason,
    ReleaseRun,
    ReportAnswered,
    ReportKind,
    RunId,
    StopRun,
    Verdict,
)

Report = ClaimRun | Heartbeat | CompleteRun | ReleaseRun
WorkerMessage = Grant | ClaimRefused | ReportAnswered | StopRun

_US_PER_S: Final = 1_000_000
_OLDEST_PART: Final = 3
"""A grant whose claim is older than this part of its term is given back, not executed."""


class Exchange(Protocol):
    """What a pool's workers need of their host."""

    def hints(self, free: int) -> Sequence[Hint]:
        """Take at most `free` hints."""
        ...

    async def wait_for_hints(self) -> None:
        """Return when there may be hints."""
        ...

    def report(self, partition: int, report: Report) -> None:
        """Pass a report on; thread-safe, never blocks."""
        ...

    def log(self, chunk: LogChunk) -> None:
        """Pass output on."""
        ...


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A grant and when its claim was sent, from which its term counts."""

    grant: Grant
    sent_us: int

    @property
    def until_us(self) -> int:
        """End of the term, unless it is renewed."""
        return self.sent_us + self.grant.term_us


class _Request(NamedTuple):
    worker_id: str
    request_id: str


class _Asked(NamedTuple):
    run_id: RunId
    token: int
    claim_id: str
    kind: ReportKind


class Gateway:
    """The inbox of all workers that work over HTTP."""

    def __init__(
        self,
        exchange: Callable[[str], Exchange],
        *,
        partitions: int,
        now_us: Callable[[], int],
        inbox: str | None = None,
    ) -> None:
        """exchange: that of a pool. inbox: random when None, so that a restart gets no answers
        meant for the gateway before it.
        """
        self._exchange = exchange
        self._partitions = partitions
        self._now_us = now_us
        self.inbox = inbox or f"gateway-{secrets.token_hex(8)}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._claims: dict[str, asyncio.Future[Grant | ClaimRefused]] = {}
        self._asked: dict[_Asked, list[asyncio.Future[Verdict]]] = {}
        self._granted: OrderedDict[str, int] = OrderedDict()
        self._requests: OrderedDict[_Request, asyncio.Task[list[Lease]]] = OrderedDict()
        self._calls = 0

    # --- called by routes, in the event loop

    async def lease(
        self,
        worker_id: str,
        *,
        pools: Sequence[str],
        max_runs: int,
        wait_s: float,
        request_id: str | None,
        stop: asyncio.Event | None = None,
    ) -> list[Lease]:
        """At most `max_runs` leases; none when there was nothing for `wait_s`.

        stop: once it is set, nothing new is leased. Raises Unavailable when too many calls wait
        already.
        """
        stop = stop or asyncio.Event()
        if request_id is None:
            return await self._lease(worker_id, pools, max_runs, wait_s, stop)
        asked = _Request(worker_id, request_id)
        task = self._requests.get(asked)
        if task is None or self._is_over(task):
            task = asyncio.ensure_future(self._lease(worker_id, pools, max_runs, wait_s, stop))
            self._requests[asked] = task
            self._forget_requests()
        # The work goes on when the caller is gone: the same request will come again for it.
        leases = await asyncio.shield(task)
        if not leases:
            self._requests.pop(asked, None)
        return leases

    async def heartbeat(self, run_id: RunId, token: int, claim_id: str) -> Verdict:
        """Renew a lease; what the scheduler says. Raises Unavailable if it says nothing."""
        report = Heartbeat(run_id=run_id, token=token, claim_id=claim_id, inbox=self.inbox)
        return await self._ask(report, ReportKind.HEARTBEAT)

    async def complete(self, report: CompleteRun) -> Verdict:
        """Report how an attempt ended; what the scheduler says. Raises Unavailable."""
        return await self._ask(report, ReportKind.COMPLETE)

    def log(self, chunk: LogChunk) -> None:
        """Pass output on."""
        self._exchange("default").log(chunk)

    def term_us_of(self, claim_id: str) -> int | None:
        """Term of a lease that went through here; None if it is not remembered."""
        return self._granted.get(claim_id)

    # --- called by the host, from any thread

    def deliver(self, message: WorkerMessage) -> None:
        """Take what is addressed to this gateway's inbox."""
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self._deliver, message)
        except RuntimeError:
            # The loop is closed: the process stops, and whoever repeats asks the next one.
            return

    def attach(self) -> None:
        """Take deliveries in the running event loop from now on."""
        self._loop = asyncio.get_running_loop()

    # --- in the event loop

    def _deliver(self, message: WorkerMessage) -> None:
        match message:
            case Grant() | ClaimRefused():
                claim = self._claims.get(message.claim_id)
                if claim is not None and not claim.done():
                    claim.set_result(message)
                elif isinstance(message, Grant) and message.claim_id not in self._granted:
                    self._release(message)
            case ReportAnswered():
                asked = _Asked(message.run_id, message.token, message.claim_id, message.kind)
                for waiter in self._asked.get(asked, ()):
                    if not waiter.done():
                        waiter.set_result(message.verdict)
            case StopRun():
                # The next heartbeat is answered with the same, however often it is asked.
                return
            case _:
                assert_never(message)

    def _is_over(self, task: asyncio.Task[list[Lease]]) -> bool:
        """Whether a request's answer is of no use any more: it failed, or its leases ended."""
        if not task.done():
            return False
        if task.cancelled() or task.exception() is not None:
            return True
        now_us = self._now_us()
        return all(lease.until_us <= now_us for lease in task.result())

    def _forget_requests(self) -> None:
        while len(self._requests) > REQUESTS_REMEMBERED_MAX:
            self._requests.popitem(last=False)

    async def _lease(
        self,
        worker_id: str,
        pools: Sequence[str],
        max_runs: int,
        wait_s: float,
        stop: asyncio.Event,
    ) -> list[Lease]:
        if self._calls >= LEASE_CALLS_MAX:
            raise Unavailable(RATE_LIMITED, f"{LEASE_CALLS_MAX} calls wait for runs already")
        self._calls += 1
        try:
            return await self._take_until(worker_id, pools, max_runs, wait_s, stop)
        finally:
            self._calls -= 1

    async def _take_until(
        self,
        worker_id: str,
        pools: Sequence[str],
        max_runs: int,
        wait_s: float,
        stop: asyncio.Event,
    ) -> list[Lease]:
        if stop.is_set():
            # Not at once: who does not understand that it drains would ask without a pause.
            await asyncio.sleep(wait_s)
            return []
        loop = asyncio.get_running_loop()
        end = loop.time() + wait_s
        while not stop.is_set():
            taken = self._take(pools, max_runs)
            if taken:
                claims = (self._claim(worker_id, hint, exchange) for hint, exchange in taken)
                leases = [one for one in await asyncio.gather(*claims) if one is not None]
                if leases:
                    return leases
            left_s = end - loop.time()
            if left_s <= 0:
                return []
            if not taken:
                await self._wait(pools, left_s, stop)
        return []

    def _take(self, pools: Iterable[str], max_runs: int) -> list[tuple[Hint, Exchange]]:
        taken: list[tuple[Hint, Exchange]] = []
        for pool in pools:
            exchange = self._exchange(pool)
            free = max_runs - len(taken)
            if free > 0:
                taken.extend((hint, exchange) for hint in exchange.hints(free))
        return taken

    async def _wait(self, pools: Iterable[str], left_s: float, stop: asyncio.Event) -> None:
        hints = [asyncio.ensure_future(self._exchange(pool).wait_for_hints()) for pool in pools]
        waits = (asyncio.ensure_future(stop.wait()), *hints)
        try:
            await asyncio.wait(waits, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _claim(self, worker_id: str, hint: Hint, exchange: Exchange) -> Lease | None:
        """Claim one run until it is answered; None: it is not ours."""
        loop = asyncio.get_running_loop()
        claim = ClaimRun(
            run_id=hint.run_id,
            plan=hint.plan,
            dispatcher=hint.dispatcher,
            epoch=hint.epoch,
            worker_id=worker_id,
            inbox=self.inbox,
            claim_id=secrets.token_hex(16),
        )
        end = loop.time() + CLAIM_WAIT_S
        sent_us = self._now_us()
        try:
            while (left_s := end - loop.time()) > 0:
                answer: asyncio.Future[Grant | ClaimRefused] = loop.create_future()
                self._claims[claim.claim_id] = answer
                exchange.report(hint.partition, claim)
                done, _ = await asyncio.wait([answer], timeout=min(REPORT_REPEAT_S, left_s))
                if not done:
                    continue
                told = answer.result()
                if isinstance(told, Grant):
                    return self._lease_of(told, sent_us)
                if told.reason is not RefusalReason.NOT_YET or told.retry_at_us is None:
                    return None
                early_s = (told.retry_at_us - self._now_us()) / _US_PER_S
                await asyncio.sleep(min(max(early_s, 0), left_s))
                sent_us = self._now_us()
            return None
        finally:
            del self._claims[claim.claim_id]

    def _lease_of(self, grant: Grant, sent_us: int) -> Lease | None:
        if self._now_us() - sent_us > grant.term_us // _OLDEST_PART:
            self._release(grant)
            return None
        self._granted[grant.claim_id] = grant.term_us
        while len(self._granted) > GRANTS_REMEMBERED_MAX:
            self._granted.popitem(last=False)
        return Lease(grant=grant, sent_us=sent_us)

    def _release(self, grant: Grant) -> None:
        release = ReleaseRun(
            run_id=grant.run_id, token=grant.token, claim_id=grant.claim_id, inbox=self.inbox
        )
        self._exchange("default").report(grant.partition, release)

    async def _ask(self, report: Heartbeat | CompleteRun, kind: ReportKind) -> Verdict:
        """Report, each second again, until the scheduler has said what it makes of it."""
        loop = asyncio.get_running_loop()
        partition = partition_of(job_of(report.run_id), self._partitions)
        asked = _Asked(report.run_id, report.token, report.claim_id, kind)
        verdict: asyncio.Future[Verdict] = loop.create_future()
        waiters = self._asked.setdefault(asked, [])
        waiters.append(verdict)
        end = loop.time() + REPORT_WAIT_S
        try:
            while (left_s := end - loop.time()) > 0:
                self._exchange("default").report(partition, report)
                await asyncio.wait([verdict], timeout=min(REPORT_REPEAT_S, left_s))
                if verdict.done():
                    return verdict.result()
        finally:
            waiters.remove(verdict)
            if not waiters:
                self._asked.pop(asked, None)
        raise Unavailable(
            UNAVAILABLE, f"the scheduler has not answered for {report.run_id} in {REPORT_WAIT_S} s"
        )
