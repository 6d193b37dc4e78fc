"""What every executor does, whichever kind of target it executes."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

import pytest

from horolog.schemas.records import RunResult, Target
from horolog.workers.capture import Capture
from horolog.workers.context import Context
from horolog.workers.executors import Executor, StopSignal
from horolog.workers.executors.command import CommandExecutor
from horolog.workers.executors.handler import HandlerExecutor
from horolog.workers.executors.http import HttpExecutor
from horolog.workers.leases import Outcome, Why
from tests.builders.grants import Printed, grant, shell, url
from tests.builders.target import answer, serving


class Kind(NamedTuple):
    """An executor and targets for it that behave as named."""

    executor: Executor
    targets: dict[str, Target]
    started: threading.Event


@pytest.fixture(params=["command", "handler", "http"])
def kind(request: pytest.FixtureRequest) -> Iterator[Kind]:
    """One of the executors."""
    started = threading.Event()
    if request.param == "command":
        read, write = os.pipe()
        # The script says that it has begun by closing nothing and writing a byte to its output.
        os.close(read)
        os.close(write)
        yield Kind(
            CommandExecutor(),
            {
                "well": shell("echo done"),
                "badly": shell("echo oops; exit 3"),
                "long": shell("echo begun; exec sleep 60"),
                "echo": shell("cat"),
                "deaf": shell("trap '' TERM; echo begun; while :; do sleep 0.05; done"),
            },
            started,
        )
    elif request.param == "handler":
        yield from _handlers(started)
    else:
        yield from _http(started)


def _handlers(started: threading.Event) -> Iterator[Kind]:
    async def well(context: Context) -> str:
        context.log("done")
        return "done"

    def badly(context: Context) -> None:
        context.log("oops")
        raise ValueError("exit 3")

    async def long(context: Context) -> None:
        context.log("begun")
        await asyncio.sleep(60)

    def echo(context: Context) -> None:
        context.write(context.payload.decode())

    ended = threading.Event()

    def deaf(context: Context) -> None:
        context.log("begun")
        ended.wait(60)

    executor = HandlerExecutor(
        {"well": well, "badly": badly, "long": long, "echo": echo, "deaf": deaf}
    )
    names = ("well", "badly", "long", "echo", "deaf")
    yield Kind(executor, {name: Target(handler=name) for name in names}, started)
    ended.set()
    executor.close()


def _http(started: threading.Event) -> Iterator[Kind]:
    with serving() as server:
        ended = threading.Event()

        def long(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            request.end_headers()
            request.wfile.write(b"begun\n")
            request.wfile.flush()
            ended.wait(60)

        def echo(request: BaseHTTPRequestHandler) -> None:
            answer(200, server.received[-1].body)(request)

        server.answers |= {
            "/well": answer(200, b"done\n"),
            "/badly": answer(503, b"oops\n"),
            "/long": long,
            "/deaf": long,
            "/echo": echo,
        }
        names = ("well", "badly", "long", "echo", "deaf")
        yield Kind(
            HttpExecutor(allow_private=True),
            {name: url(f"{server.url}/{name}") for name in names},
            started,
        )
        ended.set()


class Watched(Printed):
    """Output that says when the target has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.capture: Capture | None = None


async def begun(capture: Capture, task: "asyncio.Task[Outcome]") -> None:
    """Return when a target has printed something, or ended."""
    while not capture.is_dirty and not task.done():  # noqa: ASYNC110 - a pipe tells nobody
        await asyncio.sleep(0.005)


def execute(
    kind: Kind, name: str, *, payload: bytes = b"", why: Why | None = None, grace_us: int = 300_000
) -> tuple[Outcome, Printed]:
    """Execute a target to its end; with `why`, stop it once it has printed something."""
    printed = Printed()
    given = grant(kind.targets[name], payload=payload, kill_grace_us=grace_us)

    async def run() -> Outcome:
        capture = Capture(given, printed.emit)
        signal = StopSignal()
        task = asyncio.create_task(kind.executor.execute(given, capture, signal))
        if why is not None:
            await begun(capture, task)
            signal.ask(why)
        outcome = await task
        await asyncio.sleep(0)
        capture.close()
        return outcome

    return asyncio.run(run()), printed


def test_target_that_does_well_succeeds_and_its_output_is_kept(kind: Kind) -> None:
    outcome, printed = execute(kind, "well")
    assert outcome.result is RunResult.SUCCEEDED
    assert printed.data == b"done\n"


def test_target_that_fails_says_how(kind: Kind) -> None:
    outcome, printed = execute(kind, "badly")
    assert outcome.result is RunResult.FAILED
    assert "3" in outcome.error
    assert printed.data.startswith(b"oops\n")


def test_payload_is_handed_over_as_it_is(kind: Kind) -> None:
    payload = '{"region": "eu", "größe": 3}'.encode()
    outcome, printed = execute(kind, "echo", payload=payload)
    assert outcome.result is RunResult.SUCCEEDED
    assert printed.data == payload


@pytest.mark.parametrize(
    "why, result",
    [
        (Why.CANCELLED, RunResult.CANCELLED),
        (Why.TIMED_OUT, RunResult.TIMED_OUT),
        (Why.DRAINED, RunResult.CANCELLED),
    ],
)
def test_target_that_is_stopped_ends_as_what_it_was_stopped_for(
    kind: Kind, why: Why, result: RunResult
) -> None:
    outcome, printed = execute(kind, "long", why=why)
    assert outcome.result is result
    assert printed.data == b"begun\n"


def test_target_that_ignores_the_stop_is_ended_after_its_grace(kind: Kind) -> None:
    begun = time.monotonic()
    outcome, _ = execute(kind, "deaf", why=Why.CANCELLED)
    assert outcome.result is RunResult.CANCELLED
    assert time.monotonic() - begun < 30
