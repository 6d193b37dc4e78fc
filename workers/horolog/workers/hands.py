"""Executes the attempts of one process, watches their time-outs and passes their output on.

Who grants and reports (`agent`) runs in another thread and meets this one in two places: `begin`
and `stop` may be called from there, and what has ended waits in a queue of its own. A function that
neither prints nor overruns is called and ended without a turn of this module's event loop: a short
function costs less than the turn would.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from horolog.schemas.records import Grant, LogChunk, RunResult
from horolog.workers.capture import FLUSH_S, Capture
from horolog.workers.clock import boot_us
from horolog.workers.executors.handler import HandlerExecutor
from horolog.workers.executors.protocol import Executor, StopSignal
from horolog.workers.leases import Outcome, Why

CLOSE_S: Final = 10.0


class Hands:
    """Attempts under way, and a thread with an event loop for those that need one."""

    def __init__(
        self,
        executors: Mapping[str, Executor],
        *,
        log: Callable[[LogChunk], None],
        wake: Callable[[], None],
    ) -> None:
        """`executors`: by field of the target (`handler`, `command`, `http`, `container`). `log`
        takes output, from this module's thread; `wake` says that something has ended, from any.
        """
        self._executors = executors
        self.log = log
        self._wake = wake
        self._attempts: dict[str, _Attempt] = {}
        self._ended: deque[tuple[str, Outcome]] = deque()
        self._is_watching = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self.loop.run_forever, name="horolog-hands", daemon=True
        )

    # --- called from other threads

    def start(self) -> None:
        """Be ready."""
        self._thread.start()

    def close(self) -> None:
        """Stop what still runs and end, once nothing does or after 10 s."""
        if not self._thread.is_alive():
            return
        self.soon(self._close)
        self._thread.join()
        self.loop.close()

    def begin(self, grant: Grant) -> None:
        """Execute an attempt."""
        attempt = _Attempt(self, grant)
        self._attempts[grant.claim_id] = attempt
        executor = self._executors.get(kind_of(grant))
        if isinstance(executor, HandlerExecutor):
            attempt.ask = executor.begin(grant, attempt.write, attempt.end)
        else:
            self.soon(self._spawn, attempt, executor)
        if not self._is_watching:
            self._is_watching = True
            self.soon(self.loop.call_later, FLUSH_S, self._watch)

    def stop(self, claim_id: str, why: Why) -> None:
        """Ask an attempt to stop."""
        attempt = self._attempts.get(claim_id)
        if attempt is not None:
            self.soon(attempt.stop, why)

    def stop_all(self) -> None:
        """Ask everything to stop, to be given back."""
        for claim_id in list(self._attempts):
            self.stop(claim_id, Why.DRAINED)

    @property
    def is_busy(self) -> bool:
        """Whether anything runs."""
        return bool(self._attempts)

    def ended(self) -> Iterator[tuple[str, Outcome]]:
        """Take what has ended: claim and outcome."""
        ended = self._ended
        while ended:
            yield ended.popleft()

    def soon(self, call: Callable[..., object], *args: object) -> None:
        """Have something called in this module's thread."""
        with contextlib.suppress(RuntimeError):
            # The loop is closed: a function that was left behind has ended, or has printed.
            self.loop.call_soon_threadsafe(call, *args)

    def forget(self, claim_id: str, outcome: Outcome) -> None:
        """An attempt has ended. From any thread."""
        del self._attempts[claim_id]
        self._ended.append((claim_id, outcome))
        self._wake()

    # --- this module's thread

    def _watch(self) -> None:
        """Pass output on and look at time-outs, each 100 ms while something runs."""
        now_us = boot_us()
        for attempt in list(self._attempts.values()):
            attempt.watch(now_us)
        self._is_watching = False
        # Looked at after the flag: what began meanwhile has seen it set, or is seen here.
        if self._attempts and not self._is_watching:
            self._is_watching = True
            self.loop.call_later(FLUSH_S, self._watch)

    def _spawn(self, attempt: "_Attempt", executor: Executor | None) -> None:
        signal = StopSignal()
        attempt.ask = signal.ask
        task = self.loop.create_task(self._execute(attempt, executor, signal))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _execute(
        self, attempt: "_Attempt", executor: Executor | None, signal: StopSignal
    ) -> None:
        grant = attempt.grant
        kind = kind_of(grant)
        if executor is None:
            known = ", ".join(sorted(self._executors))
            error = f"this worker executes no {kind} targets, only {known}"
            attempt.finish(Outcome(result=RunResult.FAILED, error=error))
            return
        try:
            outcome = await executor.execute(grant, attempt.output(), signal)
        except Exception as error:  # noqa: BLE001 - the executor boundary
            # A bug in an executor fails the attempt and not the worker.
            text = f"the {kind} executor failed: {type(error).__name__}: {error}"
            outcome = Outcome(result=RunResult.FAILED, error=text)
        attempt.finish(outcome)

    def _close(self) -> None:
        for attempt in list(self._attempts.values()):
            attempt.stop(Why.DRAINED)
        closing = self.loop.create_task(self._end_tasks())
        closing.add_done_callback(lambda _: self.loop.stop())

    async def _end_tasks(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_S)


class _Attempt:
    """One attempt, from its begin to its end."""

    __slots__ = ("_capture", "_deadline_us", "_hands", "_has_ended", "_has_output", "ask", "grant")

    def __init__(self, hands: Hands, grant: Grant) -> None:
        self._hands = hands
        self.grant = grant
        self._deadline_us: int | None = boot_us() + grant.timeout_us
        self._capture: Capture | None = None
        self._has_output = False
        self._has_ended = False
        self.ask: Callable[[Why], None] = _ask_nobody
        """Asks the executor to stop it."""

    # --- from any thread

    def write(self, data: bytes) -> None:
        """It has printed something."""
        self._has_output = True
        self._hands.soon(self._take, data)

    def end(self, outcome: Outcome) -> None:
        """It has ended; what it printed goes first."""
        if self._has_output:
            self._hands.soon(self.finish, outcome)
        else:
            self.finish(outcome)

    # --- in the thread of the hands

    def output(self) -> Capture:
        """What takes its output."""
        if self._capture is None:
            self._capture = Capture(self.grant, self._hands.log)
        return self._capture

    def finish(self, outcome: Outcome) -> None:
        """It has ended and prints no more."""
        self._has_ended = True
        if self._capture is not None:
            self._capture.close()
        self._hands.forget(self.grant.claim_id, outcome)

    def stop(self, why: Why) -> None:
        """Ask it to stop."""
        self.ask(why)

    def watch(self, now_us: int) -> None:
        """Pass on what it has printed; stop it once its time is over."""
        if self._capture is not None:
            self._capture.flush()
        if self._deadline_us is not None and now_us >= self._deadline_us:
            self._deadline_us = None
            self.ask(Why.TIMED_OUT)

    def _take(self, data: bytes) -> None:
        if not self._has_ended:
            self.output().write(data)


def _ask_nobody(_why: Why) -> None:
    """It has not begun, or has ended at once."""


def kind_of(grant: Grant) -> str:
    """Which field of the target is set; `nothing` for a kind this version does not know."""
    target = grant.target
    for kind in ("handler", "command", "http", "container"):
        if getattr(target, kind) is not None:
            return kind
    return "nothing"
