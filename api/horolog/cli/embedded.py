"""One process that is everything: host, projections, workers, on one data directory.

This is the wiring and nothing else: every part is made here, and told about the others here.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from horolog.api.backend import Health, Lag
from horolog.api.metrics import Gauges, Metrics
from horolog.api.workers import WorkerState
from horolog.cli.history_process import HistoryProcess
from horolog.cli.history_writer import HISTORY_FILE, held
from horolog.cli.measured import MeasuredLog, gauges_of
from horolog.projections.logs import LogStore
from horolog.projections.queries import Queries
from horolog.projections.stores.logs_sqlite import SqliteLogs
from horolog.projections.stores.sqlite import SqliteHistory, SqliteReading
from horolog.schemas.errors import UNAVAILABLE, Unavailable
from horolog.schemas.records import Command, Event, Hint, Reply, RunId
from horolog.streams.host.clock import SteadyClock, SystemClock
from horolog.streams.host.embedded import EmbeddedHost
from horolog.streams.host.preview import Preview
from horolog.streams.host.tenants import TenantLimits
from horolog.streams.host.tzdata import tzdata_version, zone_rules
from horolog.streams.log import Batch, check_not_behind
from horolog.streams.log.datadir import DataDir
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.scheduler.messages import WorkerMessage
from horolog.workers.agent import Agent
from horolog.workers.clock import wall_us
from horolog.workers.executors.command import CommandExecutor
from horolog.workers.executors.handler import Handler, HandlerExecutor
from horolog.workers.executors.http import HttpExecutor
from horolog.workers.executors.leftovers import Leftovers
from horolog.workers.logs import LogWriter
from horolog.workers.ready import HintPool

LOGS_FILE: Final = "logs.db"
REPEAT_S: Final = 1.0
REPLY_WAIT_S: Final = 5.0
RETENTION_US: Final = 90 * 86_400 * 1_000_000
FORGET_AT_ONCE: Final = 1_000
SECOND_US: Final = 1_000_000
CLOCK_STANDS_US: Final = 2 * SECOND_US


class Embedded:
    """Everything of one data directory. Also the `Backend` that the API talks to."""

    def __init__(
        self,
        directory: Path,
        *,
        partitions: int | None,
        slots: int,
        handlers: Mapping[str, Handler],
        retention_us: int = RETENTION_US,
        webhook_secret: str | None = None,
    ) -> None:
        """Open and recover; nothing runs before `start`. Raises Unavailable, Corrupt or
        InvalidInput, each naming what to do.
        """
        self._dir = DataDir(directory)
        self.log = SqliteLog(directory, partitions=partitions)
        positions = _positions(directory, self.log)
        self.history = SqliteReading(directory / HISTORY_FILE)
        self.output = SqliteLogs(directory / LOGS_FILE, now_us=wall_us)
        self.clock = SteadyClock(SystemClock())
        self.pool = HintPool()
        self._replies: dict[str, list[_Asked]] = {}
        self._replied: deque[Reply] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inboxes: dict[str, Callable[[WorkerMessage], None]] = {}
        name = f"{socket.gethostname()}:{os.getpid()}"
        self.metrics = Metrics(self._gauges)
        begun = time.perf_counter()
        self.host = EmbeddedHost(
            MeasuredLog(self.log, self.metrics.committed_in),
            self.clock,
            self,
            name=name,
            zones=zone_rules,
            tzdata=tzdata_version(),
        )
        took_s = (time.perf_counter() - begun) / self.log.partitions
        self._recovery_s = dict.fromkeys(range(self.log.partitions), took_s)
        self.limits = TenantLimits(directory, self.host.limit)
        self.projector = HistoryProcess(
            directory, self.history, positions=positions, retention_us=retention_us
        )
        self.projector.on_moved = lambda _: self.metrics.fold()
        self._retention_us = retention_us
        self._writer = LogWriter(self.output.append)
        self.write_output = self._writer.write
        self._handlers = handlers
        self._handler_executor = HandlerExecutor(handlers)
        self._http = HttpExecutor(allow_private=True, secret=webhook_secret)
        self._worker_id = f"{name}:agent"
        self.agent = Agent(
            _AgentExchange(self.host, self.pool, handlers, self._writer),
            {
                "command": CommandExecutor(),
                "http": self._http,
                "handler": self._handler_executor,
            },
            worker_id=self._worker_id,
            slots=slots,
            now_us=self.clock.believed_us,
        )
        self._inboxes[self._worker_id] = self.agent.deliver
        self.host.attach(self.agent)
        self.pool.listen(self.host.wake)
        self._leftovers = Leftovers(self.host.live_claims())

    def start(self) -> None:
        """Begin to decide, project and execute. Raises Unavailable: the log cannot be written."""
        self._leftovers.end()
        self.host.start()
        self.projector.start()
        self._writer.start()
        self.agent.start()

    def stop(self) -> None:
        """Drain: finish or give back what runs, then commit and close everything."""
        self.agent.stop()
        self.host.stop()
        self.projector.stop()
        self._writer.stop()
        self._leftovers.close()
        self._handler_executor.close()
        self.limits.close()
        self.log.close()
        self.history.close()
        self.output.close()
        self._dir.release()

    def forget_output(self) -> None:
        """Forget output older than the history. Cost: some at a time, each hour."""
        before_us = wall_us() - self._retention_us
        while self.output.forget(before_us, FORGET_AT_ONCE) == FORGET_AT_ONCE:
            continue

    # --- what the host tells (`Listener`), in its thread

    def committed(self, batches: Sequence[Batch]) -> None:
        """See `Listener`."""
        self.projector.offer(batches)
        self.metrics.offer(batches)

    def reply(self, reply: Reply) -> None:
        """See `Listener`."""
        self.metrics.replied(reply)
        loop = self._loop
        if loop is not None and reply.command_id in self._replies:
            self._replied.append(reply)
            # Cost: a wake-up for all replies that come before the loop looks, since with each one
            # the host's thread gives up the interpreter.
            if len(self._replied) == 1:
                with contextlib.suppress(RuntimeError):
                    # The loop is closed: whoever asked repeats the command to the next process.
                    loop.call_soon_threadsafe(self._resolve)

    def hints(self, hints: Sequence[Hint]) -> None:
        """See `Listener`."""
        self.metrics.hints(hints, self.clock.believed_us())
        self.pool.offer(hints)

    def worker(self, message: WorkerMessage) -> None:
        """See `Listener`."""
        deliver = self._inboxes.get(message.inbox)
        if deliver is not None:
            deliver(message)

    def connect(self, inbox: str, deliver: Callable[[WorkerMessage], None]) -> None:
        """Let somebody in this process be answered under an inbox; `deliver` must not block."""
        self._inboxes[inbox] = deliver

    # --- what the API needs (`Backend`)

    async def submit(self, command: Command) -> Reply:
        """Have a command decided. Repeats it until it is answered; raises Unavailable if it is not
        within 5 s: it may still be decided, so the same command may be sent again.
        """
        loop = self._loop = asyncio.get_running_loop()
        asked = _Asked(command, loop.create_future(), loop.time() + REPLY_WAIT_S)
        waiting = self._replies.setdefault(command.command_id, [])
        waiting.append(asked)
        self._ask(asked)
        try:
            return await asked.future
        finally:
            asked.cancel()
            waiting.remove(asked)
            if not waiting:
                self._replies.pop(command.command_id, None)

    async def preview(self, command: Command) -> Preview:
        """See `Backend`. Raises Unavailable if the host is not at work within 5 s."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Preview] = loop.create_future()

        def told(preview: Preview) -> None:
            with contextlib.suppress(RuntimeError):
                # The loop is closed, with whoever asked.
                loop.call_soon_threadsafe(_settle, future, preview)

        self.host.preview(command, told)
        try:
            async with asyncio.timeout(REPLY_WAIT_S):
                return await future
        except TimeoutError as error:
            raise self.host.unavailable or Unavailable(
                UNAVAILABLE, "not decided within 5 s"
            ) from error

    def _ask(self, asked: "_Asked") -> None:
        """Offer a command, and again each second until it is answered or the time is over."""
        if asked.future.done():
            return
        loop = asked.future.get_loop()
        if loop.time() >= asked.until_s:
            detail = "not decided within 5 s; send it again with the same ID"
            asked.future.set_exception(self.host.unavailable or Unavailable(UNAVAILABLE, detail))
            return
        asked.again = loop.call_later(REPEAT_S, self._ask, asked)
        self.host.submit(asked.command)

    def _resolve(self) -> None:
        while self._replied:
            # Taken out last: a reply that comes meanwhile finds the loop at work.
            reply = self._replied[0]
            for asked in self._replies.get(reply.command_id, ()):
                if not asked.future.done():
                    asked.future.set_result(reply)
            self._replied.popleft()

    async def wait_for(self, partition: int, seq: int, timeout_s: float) -> bool:
        """Wait until the tables have got to a position; False if they have not in time."""
        if self.projector.position(partition) >= seq:
            return True
        return await asyncio.to_thread(self.projector.wait_for, partition, seq, timeout_s)

    @property
    def queries(self) -> Queries:
        """See `Backend`."""
        return self.history

    @property
    def logs(self) -> LogStore:
        """See `Backend`."""
        return self.output

    @property
    def partitions(self) -> int:
        """See `Backend`."""
        return self.log.partitions

    def standing(self, run_id: RunId) -> str:
        """See `Backend`: as the dispatcher sees it."""
        return self.host.dispatcher.explain(run_id, self.now_us()).reason

    def exchange(self, pool: str, handlers: frozenset[str] | None) -> "_GatewayExchange":
        """See `Backend`."""
        return _GatewayExchange(self, pool, handlers)

    def positions(self) -> Mapping[int, int]:
        """See `Backend`."""
        return self.projector.positions()

    def projection_lags(self) -> Sequence[Lag]:
        """See `Backend`."""
        return [self._lag(partition) for partition in range(self.partitions)]

    def _lag(self, partition: int) -> Lag:
        position, end = self.projector.position(partition), self.log.last_seq(partition)
        oldest = next(self.events(partition, position), None) if position < end else None
        late_us = 0 if oldest is None else max(self.now_us() - oldest.at_us, 0)
        return Lag(partition=partition, position=position, end=end, seconds=late_us / SECOND_US)

    def rebuild_projections(self) -> int:
        """See `Backend`."""
        folded: list[int] = [0]
        self.projector.rebuild(lambda progress: folded.append(progress.events))
        return folded[-1]

    def events(self, partition: int, after_seq: int) -> Iterator[Event]:
        """See `Backend`."""
        for batch in self.log.read(partition, after_seq):
            yield from batch.events

    def metrics_text(self) -> bytes:
        """See `Backend`."""
        return self.metrics.text()

    def _gauges(self) -> Gauges:
        return gauges_of(self.host, self.projector, self._recovery_s, self.clock.believed_us())

    def workers(self) -> Sequence[WorkerState]:
        """See `Backend`: the agent."""
        leases = self.agent.leases
        return (
            WorkerState(
                worker_id=self._worker_id,
                kind="agent",
                tenant=None,
                pools=(),
                handlers=None,
                slots=leases.slots,
                seen_us=self.now_us(),
                runs=leases.runs,
                is_draining=leases.is_draining,
            ),
        )

    def drain(self, worker_id: str) -> bool:
        """See `Backend`."""
        if worker_id != self._worker_id:
            return False
        self.agent.drain()
        return True

    def health(self) -> Health:
        """See `Backend`."""
        failure = self.host.failure or self.projector.failure
        if failure is not None:
            return Health(ready=False, detail=f"stopped: {failure}")
        reason = self.host.unavailable
        if reason is not None:
            return Health(ready=False, detail=str(reason))
        return Health(ready=True, detail=clock_told(self.clock))

    def now_us(self) -> int:
        """See `Backend`."""
        return self.clock.believed_us()


def _positions(directory: Path, log: SqliteLog) -> Mapping[int, int]:
    """How far the history is, once nobody writes it any more. Makes it, if there is none."""
    with held(directory), contextlib.closing(SqliteHistory(directory / HISTORY_FILE)) as history:
        if history.generation(log.log_id) not in {None, log.generation}:
            # Tables of an older generation say nothing of this one; they are folded anew.
            return {}
        positions = history.positions()
        check_not_behind(log, positions, HISTORY_FILE)
        return positions


def clock_told(clock: SteadyClock) -> str:
    """What is odd about this machine's clock, and what is done about it; empty: nothing."""
    if clock.skew_us:
        return (
            f"the clock of this machine was set by {clock.skew_us / SECOND_US:+.0f} s; time goes "
            "on by the old one until the new one has been steady for 60 s"
        )
    if clock.ahead_us > CLOCK_STANDS_US:
        return (
            f"the clock of this machine is {clock.ahead_us / SECOND_US:.0f} s behind what was "
            "decided by; nothing new becomes due until it has come there"
        )
    return ""


def _settle(future: "asyncio.Future[Preview]", preview: Preview) -> None:
    if not future.done():
        future.set_result(preview)


class _Asked:
    """A command that waits for its answer."""

    def __init__(self, command: Command, future: asyncio.Future[Reply], until_s: float) -> None:
        self.command = command
        self.future = future
        self.until_s = until_s
        self.again: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """Ask no more."""
        if self.again is not None:
            self.again.cancel()


class _AgentExchange:
    """What the agent needs of the others (`Exchange`)."""

    def __init__(
        self,
        host: EmbeddedHost,
        pool: HintPool,
        handlers: Mapping[str, Handler],
        writer: LogWriter,
    ) -> None:
        self._handlers = handlers
        self._pool = pool
        self.report = host.report
        self.wake = host.wake
        self.log = writer.write

    def hints(self, most: int, now_us: int) -> Sequence[Hint]:
        """Hints of any pool, but of functions only those that are here."""
        return self._pool.take(self._can_execute, most, now_us)

    def _can_execute(self, _pool: str, handler: str) -> bool:
        return not handler or handler in self._handlers


class _GatewayExchange:
    """What a gateway needs for the workers of one pool that have some functions."""

    def __init__(self, server: Embedded, name: str, handlers: frozenset[str] | None) -> None:
        self._pool = server.pool
        self._now_us = server.now_us
        self._name = name
        self._handlers = handlers
        self.report = server.host.report
        self.log = server.write_output

    def hints(self, free: int) -> Sequence[Hint]:
        """At most so many hints."""
        return self._pool.take(self._wants, free, self._now_us())

    async def wait_for_hints(self) -> None:
        """Return when hints have come to the process."""
        loop = asyncio.get_running_loop()
        came = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):
                # The loop is closed, with whoever waited.
                loop.call_soon_threadsafe(came.set)

        end = self._pool.listen(wake)
        try:
            await came.wait()
        finally:
            end()

    def _wants(self, pool: str, handler: str) -> bool:
        if pool != self._name:
            return False
        return not handler if self._handlers is None else handler in self._handlers
