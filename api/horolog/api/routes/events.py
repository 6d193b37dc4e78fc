"""The ledger itself: the events of a job or a run, and all of a tenant's as they come."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from horolog.api import events
from horolog.api.backend import Backend
from horolog.api.context import (
    Context,
    caught_up,
    context_of,
    job_id_in,
    number_in,
    page_limit,
    principal_of,
    run_id_in,
)
from horolog.api.faults import Fault, Refused
from horolog.api.json_values import Json
from horolog.api.limits import EVENTS_AT_ONCE, EVENTS_LOOKED_AT_MAX, FOLLOW_IDLE_S, FOLLOWERS_MAX
from horolog.api.openapi import READ_HEADERS, described
from horolog.api.problems import Denied
from horolog.schemas.errors import RATE_LIMITED
from horolog.schemas.ids import job_of, partition_of, tenant_of
from horolog.schemas.records import Event, JobId

router = APIRouter(tags=["events"])

LOOK_AGAIN_S: Final = 0.25
LAST_EVENT: Final = "last-event-id"


@router.get(
    "/v1/jobs/{job}/events",
    openapi_extra=described(query=("after", "limit"), headers=READ_HEADERS),
)
async def of_job(request: Request, job: str) -> Response:
    """Events of a job and its runs, oldest first, after a `seq` of its partition."""
    job_id = job_id_in(request, job)
    return await _page(request, job_id, lambda event: _job_of(event) == job_id)


@router.get(
    "/v1/runs/{run}/events",
    openapi_extra=described(query=("after", "limit"), headers=READ_HEADERS),
)
async def of_run(request: Request, run: str) -> Response:
    """Events of a run, oldest first."""
    run_id = run_id_in(request, run)
    return await _page(
        request, job_of(run_id), lambda event: getattr(event, "run_id", None) == run_id
    )


async def _page(
    request: Request, job_id: JobId, is_wanted: Callable[[Event], bool]
) -> JSONResponse:
    """Some events, and where to go on: a look at the log ends after so many events, wanted or
    not, so that no call takes for ever.
    """
    await caught_up(request)
    backend = context_of(request).backend
    partition = partition_of(job_id, backend.partitions)
    after = number_in(request, "after") or 0
    limit = page_limit(request)
    items, next_seq = await asyncio.to_thread(_look, backend, partition, after, limit, is_wanted)
    return JSONResponse({"items": items, "nextAfter": next_seq})


def _look(
    backend: Backend, partition: int, after: int, limit: int, is_wanted: Callable[[Event], bool]
) -> tuple[list[Json], int | None]:
    items: list[Json] = []
    for looked_at, event in enumerate(backend.events(partition, after), 1):
        if is_wanted(event):
            items.append(events.shown(partition, event).body)
        if len(items) >= limit or looked_at >= EVENTS_LOOKED_AT_MAX:
            return items, event.seq
    return items, None


@router.get("/v1/events", openapi_extra=described(headers=("Last-Event-ID",)))
async def stream(request: Request) -> Response:
    """The tenant's events as they are committed, as server-sent events. `Last-Event-ID`: goes on
    after it, without gap or repeat; without it: from now on.
    """
    context = context_of(request)
    backend = context.backend
    positions = dict(backend.positions())
    text = request.headers.get(LAST_EVENT)
    if text is not None:
        found = events.positions_of(text, backend.partitions)
        if found is None:
            detail = f"{text!r} is no ID of an event of this stream"
            raise Refused([Fault(pointer="?Last-Event-ID", detail=detail)])
        positions = {**dict.fromkeys(range(backend.partitions), 0), **found}
    if context.followers >= FOLLOWERS_MAX:
        raise Denied(RATE_LIMITED, f"{FOLLOWERS_MAX} streams are followed already")
    principal = principal_of(request)
    body = _follow(context, positions, lambda job_id: principal.may_see(tenant_of(job_id)))
    return StreamingResponse(
        body, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _follow(
    context: Context, positions: dict[int, int], may_see: Callable[[JobId], bool]
) -> AsyncIterator[bytes]:
    backend = context.backend
    context.followers += 1
    try:
        # Says at once from where on it is followed, so that a client can go on from there.
        yield f"id: {events.positions_text(positions)}\n: following\n\n".encode()
        quiet_s = 0.0
        while True:
            news = await asyncio.to_thread(_news, backend, positions)
            for each in news:
                positions[each.partition] = each.seq
                if each.job_id is not None and may_see(each.job_id):
                    yield _frame(each, positions)
                    quiet_s = 0.0
            if not news:
                await asyncio.sleep(LOOK_AGAIN_S)
                quiet_s += LOOK_AGAIN_S
            if quiet_s >= FOLLOW_IDLE_S:
                quiet_s = 0.0
                yield f"id: {events.positions_text(positions)}\n: nothing new\n\n".encode()
    finally:
        context.followers -= 1


def _frame(each: events.Shown, positions: dict[int, int]) -> bytes:
    data = json.dumps(each.body, ensure_ascii=False)
    head = f"id: {events.positions_text(positions)}\nevent: {each.body['type']}\n"
    return f"{head}data: {data}\n\n".encode()


def _news(backend: Backend, positions: dict[int, int]) -> list[events.Shown]:
    """What was committed since, at most so many of each partition."""
    found: list[events.Shown] = []
    for partition, reached in backend.positions().items():
        after = positions.get(partition, 0)
        if reached > after:
            for event in backend.events(partition, after):
                found.append(events.shown(partition, event))
                if event.seq >= reached or event.seq >= after + EVENTS_AT_ONCE:
                    break
    return found


def _job_of(event: Event) -> JobId | None:
    job_id: JobId | None = getattr(event, "job_id", None)
    return job_id
