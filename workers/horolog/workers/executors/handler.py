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
from horolog.workers.executors.protocol import StopSignal
from horolog.workers.leases import Outcome

OUTPUT_BYTES: Final = 4 * 1024
THREADS: Final = 32

Handler = Callable[[Context], Any]
"""Takes the context of a run; what it returns is the run's result, as JSON."""


class HandlerExecutor:
    """Calls functions of this process."""

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

    async def execute(self, grant: Grant, capture: Capture, stop: StopSignal) -> Outcome:
        """See `Executor`."""
        handler = self._handlers.get(grant.target.handler or "")
        if handler is None:
            return Outcome(
                result=RunResult.FAILED,
                error=f"no function is registered as {grant.target.handler!r} on this worker",
            )
        agent_loop = asyncio.get_running_loop()
        context = Context(grant, lambda data: agent_loop.call_soon_threadsafe(capture.write, data))
        if inspect.iscoroutinefunction(handler):
            call = asyncio.run_coroutine_threadsafe(_call_async(handler, context), self._loop)
        else:
            call = self._pool.submit(_call, handler, context)
        return await _ended(call, context, grant, stop)


async def _ended(
    call: "concurrent.futures.Future[Outcome]",
    context: Context,
    grant: Grant,
    stop: StopSignal,
) -> Outcome:
    done = asyncio.wrap_future(call)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((done, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            context.cancelled.set()
            grace_s = grant.kill_grace_us / 1_000_000
            await asyncio.wait((done,), timeout=grace_s / 2)
            # An async function gets CancelledError; one in a thread cannot be ended from outside.
            call.cancel()
            await asyncio.wait((done,), timeout=grace_s / 2)
            done.cancel()
            return stop.outcome()
        return done.result()
    finally:
        stopping.cancel()


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
