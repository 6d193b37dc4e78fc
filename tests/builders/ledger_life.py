"""Ledgers made by a list of choices: each is an index into what may happen next, so a shrunk list
is a short story.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from horolog.schemas.ids import run_id_of_key
from horolog.schemas.records import (
    AttemptOutcome,
    CursorEnded,
    CursorStarted,
    JobForgotten,
    JobId,
    JobRefused,
    JobRequested,
    ReportKind,
    ReportRejected,
    RunAdmitted,
    RunOrigin,
)
from tests.builders.ledger import DAY_US, MINUTE_US, SECOND_US, JobLife, Ledger, definition

JOBS = tuple(JobId(name) for name in ("acme.a", "acme.b", "acme-two.a", "other.c"))

lives = st.lists(st.integers(0, 4_000), max_size=80)
"""Choices for `LedgerLife.live`."""


class LedgerLife(Ledger):
    """A ledger and what may be done with it."""

    def live(self, choices: Sequence[int]) -> "LedgerLife":
        """Do one thing after another; each choice is an index into what may be done next."""
        for choice in choices:
            actions = self._actions(JOBS[choice % len(JOBS)], choice // 4)
            actions[choice // 16 % len(actions)]()
        self.commit()
        return self

    def _pass(self, us: int) -> None:
        self.now_us += us

    def _actions(self, job_id: JobId, pick: int) -> list[Callable[[], Any]]:
        waits = (1_000, SECOND_US, 40 * MINUTE_US, 50 * DAY_US)
        job = self.job(job_id)
        always: list[Callable[[], Any]] = [
            self.commit,
            lambda: self._pass(waits[pick % 4]),
            *self._on_runs(job_id, pick),
            *self._on_runs(job_id, pick + 1),
        ]
        if job.status in ("", "forgotten"):
            asked = self._ask_in_vain if pick % 8 == 0 else self.create
            return [lambda: asked(job_id), *always]
        if job.status == "deleted":
            return [lambda: self.create(job_id), lambda: self._forget(job), *always]
        return [*always, *self._on_job(job, pick)]

    def _on_job(self, job: JobLife, pick: int) -> list[Callable[[], Any]]:
        job_id = job.job_id
        moved = self.resume if job.status == "paused" else self.pause
        edited = self.delete if pick % 5 == 0 else moved
        return [
            lambda: self.update(job_id, definition(f"choice {pick % 5}")),
            lambda: edited(job_id),
            lambda: self.plan(job_id, self._next_slot(job)),
            lambda: self.plan(job_id, self._next_slot(job)),
            lambda: self._skip_range(job, 1 + pick % 70),
            lambda: self._backfill(job),
            lambda: self.move_cursor(job),
            lambda: self._request(job_id, f"k{pick % 3}"),
            lambda: self.add(
                job_id,
                ReportRejected(
                    job_id=job_id,
                    run_id=run_id_of_key(job_id, "k0"),
                    kind=ReportKind.HEARTBEAT,
                    token=1,
                    claim_id="c",
                ),
            ),
        ]

    def _on_runs(self, job_id: JobId, pick: int) -> list[Callable[[], Any]]:
        runs = [run for run in self.runs.values() if run.job_id == job_id and run.is_open]
        if not runs:
            return []
        run = runs[pick % len(runs)]
        match run.status:
            case "pending":
                admitted = RunAdmitted(job_id=job_id, run_id=run.run_id)
                return [
                    lambda: self.refuse(run),
                    lambda: self.move(run, "queued", admitted),
                    lambda: self.start(run),
                ]
            case "planned":
                return [
                    *[lambda: self.start(run, f"w{pick % 3}")] * 4,
                    lambda: self.queue(run),
                    lambda: self.skip(run),
                    lambda: self.revoke(run),
                    lambda: self.cancel(run),
                ]
            case "queued":
                return [
                    *[lambda: self.start(run, f"w{pick % 3}")] * 4,
                    lambda: self.cancel(run),
                ]
            case "running":
                return [
                    *[lambda: self.succeed(run, b"\x00done", "odd" if pick % 2 else "")] * 2,
                    lambda: self.fail(run),
                    lambda: self.fail(run, AttemptOutcome.RELEASED),
                    lambda: self.die(run),
                    lambda: self.cancel(run),
                    lambda: self.ask_cancel(run),
                ]
            case _:
                return [*[lambda: self.redrive(run)] * 2, lambda: self.discard(run)]

    def _next_slot(self, job: JobLife) -> int:
        job.slot_us = max(job.slot_us, self.now_us // MINUTE_US * MINUTE_US) + MINUTE_US
        return job.slot_us

    def _skip_range(self, job: JobLife, slots: int) -> None:
        after_us = self._next_slot(job) - MINUTE_US
        job.slot_us = after_us + slots * MINUTE_US
        self.skip_slots(job.job_id, after_us, job.slot_us)
        job.skipped.append(job.slot_us)

    def _backfill(self, job: JobLife) -> None:
        if job.skipped:
            self.plan(job.job_id, job.skipped.pop(0), RunOrigin.BACKFILL)

    def move_cursor(self, job: JobLife) -> None:
        """Begin to make slots up, or be done with it."""
        if job.cursor_is_open:
            self.add(job.job_id, CursorEnded(job_id=job.job_id, cursor_id=job.cursor))
        else:
            job.cursor += 1
            self.add(
                job.job_id,
                CursorStarted(
                    job_id=job.job_id,
                    cursor_id=job.cursor,
                    origin=RunOrigin.BACKFILL,
                    after_us=job.slot_us - 10 * MINUTE_US,
                    to_us=job.slot_us,
                ),
            )
        job.cursor_is_open = not job.cursor_is_open

    def _request(self, job_id: JobId, key: str) -> None:
        run_id = run_id_of_key(job_id, key)
        if not any(run.run_id == run_id and run.is_open for run in self.runs.values()):
            self.request(job_id, key, admit=False)

    def _ask_in_vain(self, job_id: JobId) -> None:
        made = definition("in vain")
        self.add(job_id, JobRequested(job_id=job_id, definition=made, principal="eve"))
        self.add(job_id, JobRefused(job_id=job_id, code="too_many_jobs", principal="eve"))

    def _forget(self, job: JobLife) -> None:
        if any(run.job_id == job.job_id and run.is_open for run in self.runs.values()):
            return
        job.status = "forgotten"
        job.version = 0
        self.add(job.job_id, JobForgotten(job_id=job.job_id))
