"""The agent of a process that stops, while others still have something for it."""

import threading
from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from horolog.schemas.records import (
    ClaimRun,
    CompleteRun,
    Hint,
    LogChunk,
    ReportAnswered,
    ReportKind,
    RunId,
    Target,
    Verdict,
)
from horolog.workers.agent import Agent
from horolog.workers.executors.handler import HandlerExecutor
from horolog.workers.leases import Report
from tests.builders.grants import grant

R = TypeVar("R", bound=Report)


class Deaf:
    """An exchange that gives some hints and answers nothing."""

    def __init__(self, *hints: Hint) -> None:
        self._hints = list(hints)
        self.reports: list[Report] = []
        self.was_woken = threading.Event()

    def hints(self, most: int, now_us: int) -> Sequence[Hint]:
        del most, now_us
        given, self._hints = self._hints, []
        return given

    def report(self, partition: int, report: Report) -> None:
        del partition
        self.reports.append(report)

    def log(self, chunk: LogChunk) -> None:
        raise AssertionError(chunk)

    def wake(self) -> None:
        self.was_woken.set()

    def first(self, kind: type[R]) -> R:
        """The first report of a kind."""
        return next(one for one in self.reports if isinstance(one, kind))


def test_agent_that_has_stopped_takes_hints_and_messages_without_a_word() -> None:
    agent = Agent(Deaf(), {}, worker_id="worker", slots=1)
    agent.start()
    agent.gone()
    agent.stop()
    agent.deliver(
        ReportAnswered(
            run_id=RunId("acme.job@20240506T120000Z"),
            token=1,
            claim_id="claim",
            inbox="worker",
            kind=ReportKind.COMPLETE,
            verdict=Verdict.ACCEPTED,
        )
    )
    agent.turn()


def test_agent_that_stops_waits_no_longer_than_its_limit_for_an_answer_to_a_report() -> None:
    run_id = RunId("acme.job@20240506T120000Z")
    hint = Hint(run_id=run_id, partition=0, plan=5, dispatcher=0, epoch=2, valid_until_us=1 << 60)
    exchange = Deaf(hint)
    executor = HandlerExecutor({"work": lambda _: None})
    agent = Agent(
        exchange, {"handler": executor}, worker_id="worker", slots=1, drain_s=600, report_s=0.1
    )
    agent.start()
    agent.turn()
    claim = exchange.first(ClaimRun)
    given = grant(Target(handler="work"), claim_id=claim.claim_id)
    agent.deliver(replace(given, run_id=claim.run_id))
    agent.turn()
    assert exchange.was_woken.wait(30)
    agent.turn()
    assert exchange.first(CompleteRun).claim_id == claim.claim_id
    agent.stop()
    executor.close()
