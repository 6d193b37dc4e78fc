"""What an executor does, whichever it is."""

import asyncio
from typing import Final, Protocol

from horolog.schemas.ids import slot_text
from horolog.schemas.records import Grant, RunResult
from horolog.workers.capture import Capture
from horolog.workers.leases import Outcome, Why


class StopSignal:
    """Whether an attempt shall stop, and why; the first reason counts."""

    def __init__(self) -> None:
        """Not asked yet. Belongs to the running event loop."""
        self.why: Why | None = None
        self._asked = asyncio.Event()

    def ask(self, why: Why) -> None:
        """Ask the attempt to stop."""
        if self.why is None:
            self.why = why
            self._asked.set()

    async def wait(self) -> Why:
        """Wait until it is asked."""
        await self._asked.wait()
        assert self.why is not None
        return self.why

    def outcome(self) -> Outcome:
        """How an attempt ends that was stopped before it had a result."""
        assert self.why is not None, "only what was stopped has no result of its own"
        return stopped(self.why)


def stopped(why: Why) -> Outcome:
    """How an attempt ends that was stopped before it had a result."""
    if why is Why.TIMED_OUT:
        return Outcome(result=RunResult.TIMED_OUT, error="the time-out was reached")
    return Outcome(result=RunResult.CANCELLED, error="stopped on request")


class Executor(Protocol):
    """Executes attempts of one kind of target."""

    async def execute(self, grant: Grant, capture: Capture, stop: StopSignal) -> Outcome:
        """Execute an attempt to its end, in the event loop of the agent.

        What the target prints goes to `capture` as it comes. After `stop` is asked, a program gets
        TERM and, a kill grace later, KILL; the executor returns once nothing of it runs any more.
        A failure of the target is an outcome; an exception is a bug of the executor.
        """
        ...


CLAIM_VARIABLE: Final = "HOROLOG_CLAIM_ID"
"""By it a program is known to the server that comes after the one that started it."""


def variables(grant: Grant) -> dict[str, str]:
    """What a program is told of its run."""
    told = {
        "HOROLOG_RUN_ID": grant.run_id,
        "HOROLOG_JOB_ID": grant.job_id,
        "HOROLOG_ATTEMPT": str(grant.attempt),
        "HOROLOG_FENCING_TOKEN": str(grant.token),
        "HOROLOG_IDEMPOTENCY_KEY": grant.run_id,
        CLAIM_VARIABLE: grant.claim_id,
    }
    if grant.slot_us is not None:
        told["HOROLOG_SLOT"] = slot_text(grant.slot_us)
    return told
