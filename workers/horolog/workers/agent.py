"""The agent of a worker process: a thread with an event loop around `leases`.

Hints and messages may come from any thread; everything else happens in the agent's own, which runs
no user code, so heartbeats leave in time whatever a job does.
"""

import asyncio
import contextlib
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from horolog.schemas.records import Grant, Hint, LogChunk, RunResult
from horolog.workers.capture import FLUSH_S, Capture
from horolog.workers.clock import boot_us, wall_us
from horolog.workers.executors.handler import HandlerExecutor
from horolog.workers.executors.protocol import Executor, StopSignal
from horolog.workers.leases import (
    SECOND_US,
    Delivered,
    Leases,
    Order,
    Outcome,
    Report,
    Send,
    Start,
    Stop,
    Why,
)

IDLE_S: Final = 1.0
DRAIN_S: Final = 30.0
REPORT_S: Final = 10.0
"""When everything has ended, a stopping agent waits so long for the answers to its reports."""


class Exchange(Protocol):
    """How an agent reaches its scheduler and its logs. Called from the agent's thread; must not
    block.
    """

    def hints(self, most: int, now_us: int) -> Sequence[Hint]:
        """Take at most so many hints that are valid at `now_us`."""
        ...

    def report(self, partition: int, report: Report) -> None:
        """Send a report to the owner of a ledger partition."""
        ...

    def log(self, chunk: LogChunk) -> None:
        """Keep a piece of a run's output."""
        ...


class _Ended(NamedTuple):
    """A call that an executor ran outside the agent's event loop has ended."""

    grant: Grant
    capture: Capture
    outcome: Outcome


class Agent:
    """Claims runs for this process, executes them, keeps their leases, reports their ends."""

    def __init__(
        self,
        exchange: Exchange,
        executors: Mapping[str, Executor],
        *,
        worker_id: str,
        slots: int,
        drain_s: float = DRAIN_S,
        report_s: float = REPORT_S,
        now_us: Callable[[], int] = wall_us,
    ) -> None:
        """`executors`: by field of the target (`handler`, `command`, `http`, `container`).
        `now_us`: the scheduler's time, as far as this process knows it; microseconds UTC.
        """
        self._exchange = exchange
        self._executors = executors
        self._drain_s = drain_s
        self._report_s = report_s
        self._now_us = now_us
        self._leases = Leases(
            worker_id=worker_id,
            inbox=worker_id,
            slots=slots,
            new_claim_id=lambda: secrets.token_urlsafe(16),
        )
        self._inbound: deque[Delivered | _Ended] = deque()
        self._stops: dict[str, Callable[[Why], None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._captures: set[Capture] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake_armed = False
        self._stopping = False
        self._loop = asyncio.new_event_loop()
        self._awake = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="horolog-agent", daemon=True)

    # --- called from other threads

    def start(self) -> None:
        """Begin to claim."""
        self._thread.start()

    def wake(self) -> None:
        """There may be hints to take."""
        # One wake-up for all that comes before the agent looks.
        if not self._wake_armed:
            self._wake_armed = True
            with contextlib.suppress(RuntimeError):
                # The loop is closed: this process stops, and claims no more.
                self._loop.call_soon_threadsafe(self._awake.set)

    def deliver(self, message: Delivered) -> None:
        """A message came to the inbox."""
        self._inbound.append(message)
        self.wake()

    def stop(self) -> None:
        """Drain: claim nothing more, let what runs end within the grace, stop and give back the
        rest. Returns when everything is reported, or nobody answers the reports: those runs are
        started again when their leases end.
        """
        self._stopping = True
        self._loop.call_soon_threadsafe(self._awake.set)
        self._thread.join()

    @property
    def executing(self) -> int:
        """Runs being executed."""
        return self._leases.executing

    # --- the agent's thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        flushing = asyncio.create_task(self._flush_captures())
        drain_until = report_until = 0.0
        while True:
            self._turn()
            if self._stopping:
                now = self._loop.time()
                if not drain_until:
                    self._leases.drain()
                    drain_until = now + self._drain_s
                elif now >= drain_until:
                    self._do(self._leases.stop_all())
                if self._leases.executing or self._tasks or not report_until:
                    report_until = now + self._report_s
                if not self._tasks and (self._leases.is_idle or now >= report_until):
                    break
            await self._sleep()
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)

    def _turn(self) -> None:
        self._awake.clear()
        self._wake_armed = False
        now_us = self._now_us()
        booted_us = boot_us()
        inbound = self._inbound
        for _ in range(len(inbound)):
            item = inbound.popleft()
            if isinstance(item, _Ended):
                self._end(item, booted_us)
            else:
                self._do(self._leases.deliver(item, booted_us, now_us))
        self._do(self._leases.tick(booted_us))
        free = self._leases.free
        if free:
            self._do(self._leases.claim(self._exchange.hints(free, now_us), booted_us))

    async def _sleep(self) -> None:
        next_us = self._leases.next_us()
        wait_s = IDLE_S
        if next_us is not None:
            wait_s = min(max(next_us - boot_us(), 0) / SECOND_US, IDLE_S)
        try:
            async with asyncio.timeout(wait_s):
                await self._awake.wait()
        except TimeoutError:
            pass

    def _do(self, orders: Iterable[Order]) -> None:
        for order in orders:
            if isinstance(order, Send):
                self._exchange.report(order.partition, order.report)
            elif isinstance(order, Start):
                self._start(order.grant)
            else:
                self._stop(order)

    def _start(self, grant: Grant) -> None:
        capture = Capture(grant, self._exchange.log)
        self._captures.add(capture)
        self._timers[grant.claim_id] = self._loop.call_later(
            grant.timeout_us / SECOND_US, self._stop, Stop(grant.claim_id, Why.TIMED_OUT)
        )
        executor = self._executors.get(kind_of(grant))
        if isinstance(executor, HandlerExecutor):
            self._stops[grant.claim_id] = executor.begin(
                grant,
                lambda data: self._loop.call_soon_threadsafe(capture.write, data),
                lambda outcome: self._has_ended(_Ended(grant, capture, outcome)),
            )
            return
        signal = StopSignal()
        self._stops[grant.claim_id] = signal.ask
        task = self._loop.create_task(self._execute(grant, capture, signal))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stop(self, order: Stop) -> None:
        ask = self._stops.get(order.claim_id)
        if ask is not None:
            ask(order.why)

    def _has_ended(self, ended: _Ended) -> None:
        """From any thread."""
        self._inbound.append(ended)
        self.wake()

    def _end(self, ended: _Ended, booted_us: int) -> None:
        claim_id = ended.grant.claim_id
        self._timers.pop(claim_id).cancel()
        del self._stops[claim_id]
        self._captures.discard(ended.capture)
        ended.capture.close()
        self._do(self._leases.ended(claim_id, ended.outcome, booted_us))

    async def _execute(self, grant: Grant, capture: Capture, signal: StopSignal) -> None:
        outcome = await self._outcome(grant, capture, signal)
        self._has_ended(_Ended(grant, capture, outcome))

    async def _outcome(self, grant: Grant, capture: Capture, signal: StopSignal) -> Outcome:
        kind = kind_of(grant)
        executor = self._executors.get(kind)
        if executor is None:
            return Outcome(
                result=RunResult.FAILED,
                error=f"this worker executes no {kind} targets, only "
                f"{', '.join(sorted(self._executors))}",
            )
        try:
            return await executor.execute(grant, capture, signal)
        except Exception as error:  # noqa: BLE001 - the executor boundary
            # A bug in an executor fails the attempt and not the worker.
            return Outcome(
                result=RunResult.FAILED,
                error=f"the {kind} executor failed: {type(error).__name__}: {error}",
            )

    async def _flush_captures(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            for capture in list(self._captures):
                capture.flush()


def kind_of(grant: Grant) -> str:
    """Which field of the target is set; `nothing` for a kind this version does not know."""
    target = grant.target
    for kind in ("handler", "command", "http", "container"):
        if getattr(target, kind) is not None:
            return kind
    return "nothing"
