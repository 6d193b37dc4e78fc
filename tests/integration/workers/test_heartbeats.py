"""Heartbeats of runs whose work leaves the processor to nobody else (case L03)."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from horolog.schemas.records import (
    ClaimRun,
    CompleteRun,
    Heartbeat,
    Hint,
    LogChunk,
    RunId,
    RunResult,
    Target,
)
from horolog.workers.agent import Agent
from horolog.workers.context import Context
from horolog.workers.executors.command import CommandExecutor
from horolog.workers.executors.handler import HandlerExecutor
from horolog.workers.executors.protocol import Executor
from horolog.workers.leases import Report
from tests.builders.grants import grant, shell
from tests.waiting import until

R = TypeVar("R", ClaimRun, Heartbeat, CompleteRun)
WITHIN_S = 60


class Silent:
    """An exchange that gives hints, answers nothing and remembers what was reported."""

    def __init__(self, runs: Sequence[RunId]) -> None:
        self._hints = [
            Hint(run_id=run, partition=0, plan=5, dispatcher=0, epoch=2, valid_until_us=1 << 60)
            for run in runs
        ]
        self.reports: list[Report] = []

    def hints(self, most: int, now_us: int) -> Sequence[Hint]:
        del now_us
        given, self._hints = self._hints[:most], self._hints[most:]
        return given

    def report(self, partition: int, report: Report) -> None:
        del partition
        self.reports.append(report)

    def log(self, chunk: LogChunk) -> None:
        raise AssertionError(chunk)

    def wake(self) -> None:
        """The test gives turns all the time, as a host does."""


def reported(agent: Agent, exchange: Silent, kind: type[R], runs: Sequence[RunId]) -> list[R]:
    """The first report of a kind for each run, once there is one for all; the agent has its turns
    meanwhile.
    """

    def look() -> list[R] | None:
        agent.turn()
        found = [one for one in exchange.reports if isinstance(one, kind)]
        first = [next((one for one in found if one.run_id == run), None) for run in runs]
        there = [one for one in first if one is not None]
        return there if len(there) == len(runs) else None

    return until(look, kind.__name__)


def test_l03_heartbeats_leave_while_loops_blocked_event_loops_and_programs_use_the_processor(
    tmp_path: Path,
) -> None:
    seen = threading.Event()

    def spin(_: Context) -> None:
        # A loop of Python that never waits: it ends only once the heartbeats have been seen.
        while not seen.is_set():
            pass

    async def block(_: Context) -> None:
        # Holds the only event loop of async functions, as a blocking call by mistake does.
        assert seen.wait(WITHIN_S)

    flag = tmp_path / "seen"
    targets = (
        Target(handler="spin"),
        Target(handler="block"),
        shell(f"until [ -e {flag} ]; do :; done"),
    )
    runs = [RunId(f"acme.job@manual-{number}") for number in range(len(targets))]
    exchange = Silent(runs)
    handlers = HandlerExecutor({"spin": spin, "block": block})
    executors: dict[str, Executor] = {"handler": handlers, "command": CommandExecutor()}
    agent = Agent(exchange, executors, worker_id="worker", slots=len(runs), report_s=0.1)
    agent.start()
    try:
        for number, claim in enumerate(reported(agent, exchange, ClaimRun, runs)):
            given = grant(
                targets[number],
                token=number + 1,
                claim_id=claim.claim_id,
                term_us=9_000_000,
                kill_grace_us=1_000_000,
            )
            agent.deliver(replace(given, run_id=claim.run_id))
        beats = reported(agent, exchange, Heartbeat, runs)
        assert [beat.token for beat in beats] == [1, 2, 3]
    finally:
        seen.set()
        flag.touch()
    ends = reported(agent, exchange, CompleteRun, runs)
    assert [end.result for end in ends] == [RunResult.SUCCEEDED] * len(runs)
    agent.gone()
    agent.stop()
    handlers.close()
