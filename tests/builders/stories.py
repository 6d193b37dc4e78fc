"""Short stories of one job, told event by event, and what the audit says of them.

The job has a slot each minute, unless told otherwise: slot n is `minute(n)`. A story begins with
the job's creation at minute 0.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from horolog.schemas.ids import run_id_of_key
from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    CursorEnded,
    CursorStarted,
    Event,
    JobCreated,
    JobDefinition,
    JobDeleted,
    JobId,
    JobPaused,
    JobRequested,
    JobResumed,
    JobUpdated,
    RunDeadLettered,
    RunId,
    RunOrigin,
    RunPlanned,
    RunRedriven,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
    SkipReason,
    SlotsSkipped,
)
from horolog.streams.audit import Report, audit
from tests.builders.core import JOB, T0, definition, run_at
from tests.builders.events import Ledger, Written

_E = TypeVar("_E", bound=msgspec.Struct)

MINUTE = 60_000_000
SECOND = 1_000_000
TERM = 30 * SECOND
EACH_MINUTE = definition("* * * * *")


def minute(number: float) -> int:
    """An instant of a story."""
    return T0 + round(number * MINUTE)


class Story:
    """A ledger of one partition with one job, and its audit."""

    def __init__(
        self, job: JobDefinition = EACH_MINUTE, *, created: bool = True, partitions: int = 1
    ) -> None:
        self.ledger = Ledger(partitions=partitions, at_us=T0)
        self.ledger.take_over()
        self.others = [
            Ledger(number, partitions=partitions, at_us=T0) for number in range(1, partitions)
        ]
        for other in self.others:
            other.take_over()
        self.definition = job
        if created:
            self.ledger.batch(requested(job))
            self.ledger.batch(self.created())

    def created(self, version: int = 1) -> JobCreated:
        """The job exists since it was asked for, in the batch before."""
        asked_us = self.ledger.batches[-1].events[0].at_us
        return JobCreated(
            job_id=JOB, version=version, definition=self.definition, accounted_to_us=asked_us
        )

    def at(self, number: float, *events: Event) -> "Story":
        """A step at a minute; several at the same one follow one another."""
        self.ledger.at_us = max(minute(number) - 1, self.ledger.at_us)
        self.ledger.batch(*events)
        return self

    def start(self, number: float, run_id: RunId, attempt: int = 1, **fields: object) -> int:
        """A step that grants a lease; its token."""
        self.at(number, started(run_id, attempt, **fields))
        return self.token

    def run(self, slot: int) -> None:
        """A slot runs, as it should."""
        self.at(slot - 0.5, planned(slot))
        token = self.start(slot, run_of(slot))
        self.at(slot + 0.01, succeeded(run_of(slot), token))

    @property
    def token(self) -> int:
        """Token of the grant with which the last step began."""
        return self.ledger.token(self.ledger.batches[-1].first_seq)

    def audit(self) -> Report:
        """What is found."""
        return audit(Written(self.ledger.batches, *(other.batches for other in self.others)))


def run_of(slot: int) -> RunId:
    """Run of a slot."""
    return run_at(minute(slot))


def manual(key: str = "k") -> RunId:
    """A manual run."""
    return run_id_of_key(JOB, key)


def requested(job: JobDefinition = EACH_MINUTE, job_id: JobId = JOB) -> JobRequested:
    """The job is asked for."""
    return JobRequested(job_id=job_id, definition=job)


def updated(
    job: JobDefinition, number: float, version: int = 2, *, reschedules: bool = True
) -> JobUpdated:
    """The job has a new definition."""
    return JobUpdated(
        job_id=JOB,
        version=version,
        definition=job,
        accounted_to_us=minute(number),
        reschedules=reschedules,
    )


def paused(number: float) -> JobPaused:
    """The job is paused."""
    return JobPaused(job_id=JOB, accounted_to_us=minute(number))


def resumed(number: float) -> JobResumed:
    """The job goes on."""
    return JobResumed(job_id=JOB, accounted_to_us=minute(number))


def deleted(number: float) -> JobDeleted:
    """The job is gone."""
    return JobDeleted(job_id=JOB, accounted_to_us=minute(number))


def planned(
    slot: int, *, origin: RunOrigin = RunOrigin.SCHEDULE, due_us: int | None = None
) -> RunPlanned:
    """A slot has a run."""
    return RunPlanned(
        job_id=JOB,
        run_id=run_of(slot),
        slot_us=minute(slot),
        due_us=minute(slot) if due_us is None else due_us,
        origin=origin,
    )


def revoked(slot: int) -> RunRevoked:
    """Its run is taken back."""
    return RunRevoked(job_id=JOB, run_id=run_of(slot), slot_us=minute(slot))


def skipped(slot: int, reason: SkipReason, into: RunId | None = None) -> RunSkipped:
    """Its run does not start."""
    return RunSkipped(
        job_id=JOB, run_id=run_of(slot), slot_us=minute(slot), reason=reason, into=into
    )


def passed_over(
    after: float, to: float, count: int, reason: SkipReason, into: RunId | None = None
) -> SlotsSkipped:
    """Slots that are never planned."""
    return SlotsSkipped(
        job_id=JOB,
        after_us=minute(after),
        to_us=minute(to),
        slots_count=count,
        reason=reason,
        into=into,
    )


def cursor(after: float, to: float, origin: RunOrigin, cursor_id: int = 1) -> CursorStarted:
    """Slots that are being made up."""
    return CursorStarted(
        job_id=JOB, cursor_id=cursor_id, origin=origin, after_us=minute(after), to_us=minute(to)
    )


def cursor_ended(cursor_id: int = 1, reason: SkipReason = SkipReason.UNSPECIFIED) -> CursorEnded:
    """They were, or are given up."""
    return CursorEnded(job_id=JOB, cursor_id=cursor_id, reason=reason)


def asked(key: str = "k") -> RunRequested:
    """A manual run is asked for."""
    return RunRequested(job_id=JOB, run_id=manual(key), key=key)


def started(run_id: RunId, attempt: int = 1, **fields: object) -> RunStarted:
    """A worker has the lease."""
    made = RunStarted(
        job_id=JOB,
        run_id=run_id,
        attempt=attempt,
        generation=1,
        worker_id="w",
        inbox="w",
        claim_id="c",
        term_us=TERM,
        version=1,
        lease_time_us=0,
    )
    return _with(made, fields)


def succeeded(run_id: RunId, token: int, attempt: int = 1, **fields: object) -> RunSucceeded:
    """It has ended well."""
    made = RunSucceeded(job_id=JOB, run_id=run_id, attempt=attempt, token=token)
    return _with(made, fields)


def ended(
    run_id: RunId,
    token: int,
    outcome: AttemptOutcome = AttemptOutcome.FAILED,
    retry: float | None = None,
    **fields: object,
) -> AttemptEnded:
    """An attempt has not; `retry`: the minute of the next one."""
    made = AttemptEnded(
        job_id=JOB,
        run_id=run_id,
        attempt=1,
        token=token,
        outcome=outcome,
        retry_at_us=None if retry is None else minute(retry),
    )
    return _with(made, fields)


def dead(run_id: RunId, round_number: int = 0) -> RunDeadLettered:
    """No attempt is left."""
    return RunDeadLettered(job_id=JOB, run_id=run_id, round=round_number)


def redriven(run_id: RunId, round_number: int = 1) -> RunRedriven:
    """It starts again."""
    return RunRedriven(job_id=JOB, run_id=run_id, round=round_number)


def _with(made: _E, fields: Mapping[str, object]) -> _E:
    return replace(made, **fields)
