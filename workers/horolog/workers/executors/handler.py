"""Calls a Python function that was registered through the SDK.

Async functions run on an event loop of their own thread, others on a bounded pool of threads, so
user code never holds up heartbeats. Cancel and time-out set `context.cancelled` and, for an async
function, cancel its task; a function in a thread cannot be killed and is waited for no longer than
its kill grace, after which the attempt ends and the thread is left to end by itself.
"""

import asyncio
import concurrent.futures
import inspect
import threading
import traceback
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec

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
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, "horolog-handler")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="horolog-handlers", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Take no more calls; what runs is left to end."""
        self._pool.shutdown(wait=False, cancel_futures=True)
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
        call = _Call(grant, Context(grant, write), ended, self._loop)
        if inspect.iscoroutinefunction(handler):
            call.future = asyncio.run_coroutine_threadsafe(
                _call_async(handler, call.context), self._loop
            )
            call.future.add_done_callback(call.done)
        else:
            call.future = self._pool.submit(_call, handler, call.context)
            call.future.add_done_callback(call.done)
        return call.stop

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
        grant: Grant,
        context: Context,
        ended: Callable[[Outcome], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.context = context
        self.future: concurrent.futures.Future[Outcome] | None = None
        self._grace_s = grant.kill_grace_us / 1_000_000
        self._ended = ended
        self._loop = loop
        self._lock = threading.Lock()
        self._told = False
        self._why: Why | None = None

    def done(self, future: "concurrent.futures.Future[Outcome]") -> None:
        """The function has returned, raised or been cancelled."""
        if future.cancelled():
            self._tell(stopped(self._why or Why.CANCELLED))
        elif self._why is None:
            self._tell(future.result())
        else:
            self._tell(stopped(self._why))

    def stop(self, why: Why) -> None:
        """Say that it shall stop; cancel it after half its grace; leave it after all of it."""
        self._why = why
        self.context.cancelled.set()
        self._loop.call_soon_threadsafe(self._loop.call_later, self._grace_s / 2, self._cancel)
        self._loop.call_soon_threadsafe(self._loop.call_later, self._grace_s, self._leave)

    def _cancel(self) -> None:
        if self.future is not None:
            self.future.cancel()

    def _leave(self) -> None:
        # A function in a thread cannot be ended from outside; its slot is given up.
        assert self._why is not None
        self._tell(stopped(self._why))

    def _tell(self, outcome: Outcome) -> None:
        with self._lock:
            if self._told:
                return
            self._told = True
        self._ended(outcome)


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
