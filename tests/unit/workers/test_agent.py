"""The agent of a process that stops, while others still have something for it."""

from collections.abc import Sequence

from horolog.schemas.records import Hint, LogChunk, ReportAnswered, ReportKind, RunId, Verdict
from horolog.workers.agent import Agent
from horolog.workers.leases import Report


class Nobody:
    """An exchange with nothing to do."""

    def hints(self, most: int, now_us: int) -> Sequence[Hint]:
        del most, now_us
        return ()

    def report(self, partition: int, report: Report) -> None:
        raise AssertionError(f"{partition}: {report}")

    def log(self, chunk: LogChunk) -> None:
        raise AssertionError(chunk)


def test_agent_that_has_stopped_takes_hints_and_messages_without_a_word() -> None:
    agent = Agent(Nobody(), {}, worker_id="worker", slots=1)
    agent.start()
    agent.stop()
    agent.wake()
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
