"""Calls a Python function that was registered through the SDK.

Async functions run on an event loop of their own thread, others on a bounded pool of threads, so
user code never holds up heartbeats. Cancel and time-out set `context.cancelled` and, for an async
function, cancel its task; a function in a thread cannot be killed and is waited for no longer than
its kill grace, after which the attempt ends and the thread is left to end by itself.
"""

import asyncio
import contextlib
import inspect
import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec
from typing_extensions import override

from horolog.schemas.records import Grant, RunResult
from horolog.workers.capture import Capture
from horolog.workers.context import Context, NoRetry
from horolog.workers.executors.protocol import StopSignal, stopped
from horolog.workers.leases import Outcome, Why

OUTPUT_BYTES: Final = 4 * 1024
THREADS: Final = 32

Handler = Callable[[Context], Any]
"""Takes the context of a run; what it returns is the run's result, as JSON."""


class HandlerExecutor:
    """Calls functions of this process.

    Beside `execute` it has `begin`, which the agent prefers: a call that costs no task of the
    agent's event loop, since a short function costs less than the task would.
    """

    def __init__(self, handlers: Mapping[str, Handler], threads: int = THREADS) -> None:
        """`handlers`: by the name that a job's target gives; may grow later."""
        self._handlers = handlers
        self._threads = _Threads(threads)
        self._lock = threading.Lock()
        self._async: dict[Handler, bool] = {}
        self._coroutines: deque[_AsyncCall] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="horolog-handlers", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Take no more calls; what runs is left to end."""
        self._threads.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def begin(
        self,
        grant: Grant,
        write: Callable[[bytes], object],
        ended: Callable[[Outcome], None],
    ) -> Callable[[Why], None]:
        """Begin a call. `ended` is told once how it ended, from any thread; `write` takes what it
        logs, from any thread. Returns what asks it to stop.
        """
        handler = self._handlers.get(grant.target.handler or "")
        if handler is None:
            ended(
                Outcome(
                    result=RunResult.FAILED,
                    error=f"no function is registered as {grant.target.handler!r} on this worker",
                )
            )
            return lambda _why: None
        kind = _AsyncCall if self._is_async(handler) else _ThreadCall
        call = kind(handler, Context(grant, write), ended, self._lock, self._loop)
        with self._lock:
            if isinstance(call, _ThreadCall):
                self._threads.put(call)
                return call.stop
            was_idle = not self._coroutines
            self._coroutines.append(call)
        if was_idle:
            self._loop.call_soon_threadsafe(self._begin_coroutines)
        return call.stop

    def _is_async(self, handler: Handler) -> bool:
        known = self._async.get(handler)
        if known is None:
            known = self._async[handler] = inspect.iscoroutinefunction(handler)
        return known

    def _begin_coroutines(self) -> None:
        coroutines = self._coroutines
        while coroutines:
            # Taken out after it has begun: a call that comes meanwhile finds this loop at work, or
            # the queue empty.
            coroutines[0].begin()
            coroutines.popleft()

    async def execute(self, grant: Grant, capture: Capture, stop: StopSignal) -> Outcome:
        """See `Executor`."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Outcome] = loop.create_future()

        def end(outcome: Outcome) -> None:
            loop.call_soon_threadsafe(ended.set_result, outcome)

        ask = self.begin(grant, lambda data: loop.call_soon_threadsafe(capture.write, data), end)
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            ask(stopping.result())
        stopping.cancel()
        return await ended


class _Call:
    """One call from its begin to its end, which is told once."""

    def __init__(
        self,
        handler: Handler,
        context: Context,
        ended: Callable[[Outcome], None],
        lock: threading.Lock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`lock`: one for all calls, since it is held for no time and one a call is dearer."""
        self.handler = handler
        self.context = context
        self._ended = ended
        self._lock = lock
        self._is_told = False
        self._loop = loop
        self._why: Why | None = None

    @property
    def is_told(self) -> bool:
        """Whether its end is told; nobody waits for it."""
        return self._is_told

    def stop(self, why: Why) -> None:
        """Say that it shall stop; cancel it after half its grace; leave it after all of it."""
        self._why = why
        self.context.cancelled.set()
        grace_s = self.context.kill_grace.total_seconds()
        self._loop.call_soon_threadsafe(self._loop.call_later, grace_s / 2, self._cancel)
        self._loop.call_soon_threadsafe(self._loop.call_later, grace_s, self._leave)

    def tell(self, outcome: Outcome | None) -> None:
        """It has ended, `None`: without a result. One that was asked to stop has none."""
        if self._why is not None or outcome is None:
            outcome = stopped(self._why or Why.CANCELLED)
        with self._lock:
            if self._is_told:
                return
            self._is_told = True
        self._ended(outcome)

    def _cancel(self) -> None:
        raise NotImplementedError

    def _leave(self) -> None:
        # A function in a thread cannot be ended from outside; its slot is given up.
        self.tell(None)


class _ThreadCall(_Call):
    """A call of a function that may block, in one of the threads."""

    _has_begun = False

    def run(self) -> None:
        """In the thread that has taken it."""
        self._has_begun = True
        if not self.is_told:
            self.tell(_call(self.handler, self.context))

    @override
    def _cancel(self) -> None:
        if not self._has_begun:
            self.tell(None)


class _AsyncCall(_Call):
    """A call of an async function, on the event loop of all of them."""

    _task: "asyncio.Task[Outcome] | None" = None

    def begin(self) -> None:
        """In the thread of the loop."""
        self._task = self._loop.create_task(_call_async(self.handler, self.context))
        self._task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[Outcome]") -> None:
        self.tell(None if task.cancelled() else task.result())

    @override
    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


class _Threads:
    """Threads that take calls as they come.

    Cost: whoever puts wakes one thread; one that takes a call while more wait wakes the next
    (`SimpleQueue`), so short calls are taken many at a time and long ones side by side.
    """

    def __init__(self, most: int) -> None:
        """`most`: so many threads; they are made as calls come."""
        self._most = most
        self._calls: queue.SimpleQueue[_ThreadCall | None] = queue.SimpleQueue()
        self._count = 0

    def put(self, call: _ThreadCall) -> None:
        """Have a call run. By one thread at a time."""
        self._calls.put(call)
        if self._count < self._most and not self._calls.empty():
            self._count += 1
            name = f"horolog-handler-{self._count}"
            # A daemon: a function that never ends must not keep the process from ending.
            threading.Thread(target=self._run, name=name, daemon=True).start()

    def close(self) -> None:
        """Begin no more calls."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._calls.get_nowait()
        for _ in range(self._count):
            self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()


async def _call_async(
    handler: Callable[[Context], Coroutine[Any, Any, Any]], context: Context
) -> Outcome:
    try:
        return _succeeded(await handler(context))
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever user code raises is its failure
        return _failed(error, context)


def _call(handler: Handler, context: Context) -> Outcome:
    try:
        return _succeeded(handler(context))
    except Exception as error:  # noqa: BLE001 - whatever user code raises is its failure
        return _failed(error, context)


def _succeeded(value: object) -> Outcome:
    if value is None:
        return Outcome(result=RunResult.SUCCEEDED)
    try:
        output = msgspec.json.encode(value)
    except (TypeError, ValueError) as error:
        return Outcome(
            result=RunResult.SUCCEEDED,
            warning=f"what the function returned is no JSON and was left out: {error}",
        )
    if len(output) > OUTPUT_BYTES:
        return Outcome(
            result=RunResult.SUCCEEDED,
            warning=f"the function returned {len(output)} bytes of JSON; the most is "
            f"{OUTPUT_BYTES}, they were left out",
        )
    return Outcome(result=RunResult.SUCCEEDED, output=output)


def _failed(error: Exception, context: Context) -> Outcome:
    context.write("".join(traceback.format_exception(error)))
    return Outcome(
        result=RunResult.FAILED,
        error=f"{type(error).__name__}: {error}",
        retryable=not isinstance(error, NoRetry),
    )
