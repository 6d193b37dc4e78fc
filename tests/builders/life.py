"""Random lives of a few jobs: commands, workers' reports, time and crashes, by a list of choices.

Each choice is an index into what may be done next, so a shrunk list is a short story.
"""

from collections.abc import Callable, Sequence

from horolog.schemas.records import (
    BackfillJob,
    CancelRun,
    CatchUp,
    ClaimRun,
    DeleteJob,
    DiscardRun,
    Heartbeat,
    JobId,
    JobStatus,
    Overlap,
    PauseJob,
    RedriveRun,
    ReleaseRun,
    ResumeJob,
    RunId,
    RunResult,
    Schedule,
    TriggerJob,
    UpdateJob,
)
from horolog.streams.limits import MINUTE_US, SECOND_US
from tests.builders.core import EPOCH, Core, admission, completion, definition

JOBS = [JobId("acme.a"), JobId("acme.b"), JobId("other.c")]
_DEFINITIONS = [
    definition("* * * * *"),
    definition("* * * * *", catch_up=CatchUp.ALL, retries=1),
    definition("*/2 * * * *", catch_up=CatchUp.SKIP, jitter_us=40 * SECOND_US),
    definition("* * * * *", overlap=Overlap.SKIP, retries=2),
    definition("* * * * *", overlap=Overlap.QUEUE, catch_up=CatchUp.ALL),
    definition("* * * * *", overlap=Overlap.REPLACE, lost_max=0),
    definition("*/3 * * * *", starting_deadline_us=90 * SECOND_US, pool="other"),
    definition(None, schedule=Schedule(every_us=45 * SECOND_US)),
    definition(None),
]
_PASSES = [SECOND_US, 7 * SECOND_US, 31 * SECOND_US, 61 * SECOND_US, 10 * MINUTE_US]
_RESULTS = [RunResult.SUCCEEDED, RunResult.FAILED, RunResult.TIMED_OUT, RunResult.CANCELLED]


class Life:
    """A core and the choices that were made for it."""

    def __init__(self) -> None:
        self.core = Core()
        self.count = 0
        self.tokens: list[tuple[RunId, int, str]] = []

    def live(self, choices: Sequence[int], after: Callable[[Core], None]) -> None:
        """Do one thing after another; `after` is called after each."""
        for choice in choices:
            self.count += 1
            actions = self._actions(JOBS[choice % len(JOBS)], choice // len(JOBS))
            actions[choice // 64 % len(actions)]()
            after(self.core)

    def _id(self, what: str) -> str:
        return f"{what} {self.count}"

    def _actions(self, job_id: JobId, pick: int) -> list[Callable[[], object]]:
        core = self.core
        job = core.state.jobs.get(job_id)
        wait = _PASSES[pick % len(_PASSES)]
        always: list[Callable[[], object]] = [
            lambda: core.pass_time(wait, step_us=min(wait, 5 * SECOND_US)),
            lambda: core.pass_time(31 * SECOND_US, step_us=2 * SECOND_US),
            lambda: core.restart(down_us=wait),
            lambda: self._claim_due(pick),
            lambda: self._report(pick),
        ]
        new = _DEFINITIONS[pick % len(_DEFINITIONS)]
        if job is None or job.status is JobStatus.DELETED:
            return [lambda: core.create(new, job_id), *always]
        if job.status is JobStatus.REQUESTED:
            return [lambda: core.step(admission(job_id)), *always]
        return [*always, *self._edits(job_id, pick), *self._on_runs(job_id, pick)]

    def _edits(self, job_id: JobId, pick: int) -> list[Callable[[], object]]:
        core = self.core
        new = _DEFINITIONS[pick % len(_DEFINITIONS)]
        until = core.now_us + 90 * SECOND_US if pick % 2 else None
        return [
            lambda: core.step(UpdateJob(command_id=self._id("u"), job_id=job_id, definition=new)),
            lambda: core.step(PauseJob(command_id=self._id("p"), job_id=job_id, until_us=until)),
            lambda: core.step(ResumeJob(command_id=self._id("r"), job_id=job_id)),
            lambda: core.step(
                DeleteJob(command_id=self._id("d"), job_id=job_id, cancel_running=pick % 2 == 0)
            ),
            lambda: self._trigger(job_id, f"k{pick % 4}"),
            lambda: core.step(
                BackfillJob(
                    command_id=self._id("b"),
                    job_id=job_id,
                    from_us=core.now_us - 30 * MINUTE_US,
                    to_us=core.now_us - pick % 3 * MINUTE_US,
                )
            ),
        ]

    def _trigger(self, job_id: JobId, key: str) -> None:
        core = self.core
        core.step(TriggerJob(command_id=self._id("t"), job_id=job_id, key=key))
        remembered = core.job(job_id).keys.get(key)
        if remembered is not None:
            core.step(admission(job_id, remembered.run_id, admitted=self.count % 5 > 0))

    def _on_runs(self, job_id: JobId, pick: int) -> list[Callable[[], object]]:
        core = self.core
        runs = list(core.job(job_id).runs.values())
        if not runs:
            return []
        run = runs[pick % len(runs)]
        name, run_id = self._id("run"), run.run_id
        return [
            lambda: core.step(CancelRun(command_id=name, job_id=job_id, run_id=run_id)),
            lambda: core.step(RedriveRun(command_id=name, job_id=job_id, run_id=run_id)),
            lambda: core.step(DiscardRun(command_id=name, job_id=job_id, run_id=run_id)),
        ]

    def _claim_due(self, pick: int) -> None:
        """A worker claims every third waiting run."""
        core = self.core
        for job in list(core.state.jobs.values()):
            for number, run in enumerate(list(job.runs.values())):
                if (number + pick) % 3 == 0:
                    claim_id = f"claim {self.count} {run.run_id}"
                    core.step(
                        ClaimRun(
                            run_id=run.run_id,
                            plan=run.plan,
                            dispatcher=0,
                            epoch=EPOCH,
                            worker_id="w",
                            inbox="w",
                            claim_id=claim_id,
                        )
                    )
                    lease = run.lease
                    if lease is not None and lease.claim_id == claim_id:
                        self.tokens.append((run.run_id, lease.token, claim_id))

    def _report(self, pick: int) -> None:
        """A report for some grant, live or long dead."""
        if not self.tokens:
            return
        run_id, token, claim_id = self.tokens[-1 - pick % min(len(self.tokens), 5)]
        core = self.core
        if pick % 7 == 0:
            core.step(Heartbeat(run_id=run_id, token=token, claim_id=claim_id, inbox="w"))
        elif pick % 11 == 0:
            core.step(ReleaseRun(run_id=run_id, token=token, claim_id=claim_id, inbox="w"))
        else:
            core.step(completion(run_id, token, _RESULTS[pick % len(_RESULTS)], claim_id))
