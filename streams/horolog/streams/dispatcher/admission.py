"""Answers to what was asked for: manual runs by the backlog limit, jobs by the job limit.

An ask is a state ("this is pending"), so it may come again; each time it is answered again. A
tenant with the limit in question waits for an answer until all its runs and jobs are known.
"""

from horolog.schemas import errors
from horolog.schemas.ids import job_of
from horolog.schemas.records import AdmissionAnswer, JobAsk, JobId, RunId
from horolog.streams.dispatcher.tenants import Tenant


class Admission:
    """What was asked and is not answered yet, and the answers that wait to be sent."""

    def __init__(self, dispatcher: int, epoch: int) -> None:
        """Nothing was asked."""
        self._dispatcher = dispatcher
        self._epoch = epoch
        self.runs: dict[RunId, int] = {}
        """Runs asked for, with their ledger partitions."""
        self.jobs: dict[JobId, tuple[int, JobAsk]] = {}
        self.is_new = False
        """Whether something was asked, or may have become decidable, since it was last decided."""
        self._answers: list[AdmissionAnswer] = []

    def ask_run(self, run_id: RunId, partition: int) -> None:
        """A run is pending."""
        self.runs[run_id] = partition
        self.is_new = True

    def ask_job(self, ask: JobAsk, partition: int) -> None:
        """A job is requested."""
        self.jobs[ask.job_id] = partition, ask
        self.is_new = True

    def answer_run(self, run_id: RunId, partition: int, tenant: Tenant, *, admitted: bool) -> None:
        """Say whether a run may wait."""
        self._answer(
            partition,
            job_of(run_id),
            run_id,
            ""
            if admitted
            else f"{tenant.name} has {tenant.waiting} waiting runs, {tenant.backlog_most} at most",
            errors.BACKLOG_FULL.slug,
        )

    def answer_job(self, ask: JobAsk, partition: int, tenant: Tenant, *, admitted: bool) -> None:
        """Say whether a job may exist."""
        self._answer(
            partition,
            ask.job_id,
            None,
            ""
            if admitted
            else f"{tenant.name} has {tenant.jobs + tenant.promised_count} jobs, "
            f"{tenant.jobs_most} at most",
            errors.TOO_MANY_JOBS.slug,
        )

    def _answer(
        self, partition: int, job_id: JobId, run_id: RunId | None, refusal: str, code: str
    ) -> None:
        self._answers.append(
            AdmissionAnswer(
                partition=partition,
                dispatcher=self._dispatcher,
                epoch=self._epoch,
                job_id=job_id,
                run_id=run_id,
                admitted=not refusal,
                code=code if refusal else "",
                detail=refusal,
            )
        )

    def answers(self) -> list[AdmissionAnswer]:
        """The answers to send, once."""
        answers, self._answers = self._answers, []
        return answers
