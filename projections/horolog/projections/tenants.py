"""Projection `tenants`: what each tenant has and uses, a row for each ledger partition.

Counts are folded in memory and written whole with the `seq` they reach, so a repeated write
changes nothing, and a fold that begins again goes on from what is stored.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from horolog.projections.known import Known, Use
from horolog.projections.schema import TENANT_USE
from horolog.projections.tables import Change, Upsert
from horolog.schemas.ids import tenant_of
from horolog.schemas.records import (
    AttemptEnded,
    CancelRequested,
    CursorEnded,
    CursorStarted,
    DispatcherEpochRecorded,
    EpochStarted,
    Event,
    InputsRead,
    JobCreated,
    JobDeleted,
    JobForgotten,
    JobPaused,
    JobRefused,
    JobRequested,
    JobResumed,
    JobUpdated,
    LogCreated,
    ReportRejected,
    RunAdmitted,
    RunCancelled,
    RunDeadLettered,
    RunDiscarded,
    RunPlanned,
    RunQueued,
    RunRedriven,
    RunRefused,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
    SlotsSkipped,
    TzdataChanged,
)

NAME: Final = "tenants"
VERSION: Final = 1
TABLES: Final = (TENANT_USE,)
READS: Final[tuple[type[Event], ...]] = (
    RunPlanned,
    RunStarted,
    RunSucceeded,
    AttemptEnded,
    RunRequested,
    RunRefused,
    RunRevoked,
    RunSkipped,
    RunCancelled,
    RunDeadLettered,
    RunRedriven,
    RunDiscarded,
    JobCreated,
    JobDeleted,
)

DAY_US: Final = 86_400_000_000

_Counted = (
    RunPlanned
    | RunStarted
    | RunSucceeded
    | AttemptEnded
    | RunRequested
    | RunRefused
    | RunRevoked
    | RunSkipped
    | RunCancelled
    | RunDeadLettered
    | RunRedriven
    | RunDiscarded
    | JobCreated
    | JobDeleted
)


def project(event: Event, known: Known) -> Iterable[Change]:
    """Rows that an event changes."""
    match event:
        case (
            RunPlanned()
            | RunStarted()
            | RunSucceeded()
            | AttemptEnded()
            | RunRequested()
            | RunRefused()
            | RunRevoked()
            | RunSkipped()
            | RunCancelled()
            | RunDeadLettered()
            | RunRedriven()
            | RunDiscarded()
            | JobCreated()
            | JobDeleted()
        ):
            tenant = tenant_of(event.job_id)
            use = known.use(tenant)
            if event.seq <= use.seq:
                return ()
            use.seq = event.seq
            _count(use, event)
            key = (tenant, known.partition)
            return (Upsert(TENANT_USE, key, 0, event.at_us, use.values()),)
        case (
            CancelRequested()
            | CursorEnded()
            | CursorStarted()
            | DispatcherEpochRecorded()
            | EpochStarted()
            | InputsRead()
            | JobForgotten()
            | JobPaused()
            | JobRefused()
            | JobRequested()
            | JobResumed()
            | JobUpdated()
            | LogCreated()
            | ReportRejected()
            | RunAdmitted()
            | RunQueued()
            | SlotsSkipped()
            | TzdataChanged()
        ):
            return ()
        case _:
            assert_never(event)


def _count(use: Use, event: _Counted) -> None:
    """By the transitions of a run: what starts waited, what ends without success waits again, and
    a run is skipped, cancelled or refused only while it waits.
    """
    match event:
        case RunPlanned() | RunRequested():
            use.waiting += 1
        case RunStarted():
            use.waiting -= 1
            use.running += 1
            day_us = event.at_us // DAY_US * DAY_US
            use.day_started = 1 + (use.day_started if day_us == use.day_us else 0)
            use.day_us = day_us
        case RunSucceeded():
            use.running -= 1
        case AttemptEnded():
            use.running -= 1
            use.waiting += 1
        case RunRefused() | RunRevoked() | RunSkipped() | RunCancelled():
            use.waiting -= 1
        case RunDeadLettered():
            use.waiting -= 1
            use.dead += 1
        case RunRedriven():
            use.dead -= 1
            use.waiting += 1
        case RunDiscarded():
            use.dead -= 1
        case JobCreated():
            use.jobs += 1
        case JobDeleted():
            use.jobs -= 1
        case _:
            assert_never(event)
