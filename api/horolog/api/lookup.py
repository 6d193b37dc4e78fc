"""Jobs as routes look them up, and their next slots."""

import asyncio

from starlette.requests import Request

from horolog.api.context import caught_up, context_of, instant_in
from horolog.api.faults import Fault, Refused
from horolog.api.problems import Denied
from horolog.api.time_travel import history_at
from horolog.projections.queries import Queries
from horolog.projections.rows import JobRow
from horolog.schemas.errors import UNKNOWN_JOB
from horolog.schemas.records import JobDefinition, JobId
from horolog.streams.calendar import anchored, next_slot


async def job_row(request: Request, job_id: JobId) -> JobRow:
    """A job as it is; raises Denied if there is none."""
    await caught_up(request)
    row = context_of(request).backend.queries.job(job_id)
    if row is None or row.status == "deleted":
        raise Denied(UNKNOWN_JOB, f"there is no job {job_id}")
    return row


def as_of(request: Request) -> int | None:
    """The past instant that a read asks for, microseconds UTC; None: the present."""
    at_us = instant_in(request, "asOf")
    if at_us is not None and at_us > context_of(request).backend.now_us():
        detail = "lies in the future; an instant of the past is right, or none for the present"
        raise Refused([Fault(pointer="?asOf", detail=detail)])
    return at_us


async def history_as_of(request: Request, job_id: JobId, at_us: int | None) -> Queries:
    """The history, or that of one job as it was."""
    await caught_up(request)
    backend = context_of(request).backend
    if at_us is None:
        return backend.queries
    return await asyncio.to_thread(history_at, backend, job_id, at_us)


def next_slots(
    request: Request,
    job_id: JobId,
    definition: JobDefinition,
    count: int,
    after_us: int | None = None,
) -> list[int]:
    """The next slots of a definition after an instant, or after now, at most so many."""
    context = context_of(request)
    from_us = context.backend.now_us() if after_us is None else after_us
    schedule = anchored(definition.schedule, from_us)
    zones = context.zones.with_zone(schedule.timezone)
    found: list[int] = []
    while len(found) < count:
        slot_us = next_slot(schedule, job_id, found[-1] if found else from_us, zones)
        if slot_us is None:
            break
        found.append(slot_us)
    return found
