"""Slots of a job: those to come, what became of those that were, and why."""

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from horolog.api import views, why
from horolog.api.context import context_of, count_in, instant_in, job_id_in, page_limit
from horolog.api.limits import NEXT_DEFAULT, NEXT_MAX
from horolog.api.lookup import job_row, next_slots
from horolog.api.openapi import READ_HEADERS, described
from horolog.api.values import instant_text
from horolog.projections.queries import slot_place
from horolog.projections.rows import definition_of as stored_definition

router = APIRouter(prefix="/v1/jobs", tags=["slots"])

_EVER_US: Final = 4_102_444_800_000_000
"""2100-01-01, an upper end for ranges that have none."""


@router.get("/{job}/next", openapi_extra=described(query=("count",), headers=READ_HEADERS))
async def upcoming(request: Request, job: str) -> Response:
    """The next slots of a job."""
    row = await job_row(request, job_id_in(request, job))
    count = count_in(request, "count", default=NEXT_DEFAULT, most=NEXT_MAX)
    slots = next_slots(request, row.job_id, stored_definition(row.definition), count)
    return JSONResponse({"items": [{"slot": instant_text(slot_us)} for slot_us in slots]})


@router.get(
    "/{job}/slots",
    openapi_extra=described(query=("from", "to", "cursor", "limit"), headers=READ_HEADERS),
)
async def slots(request: Request, job: str) -> Response:
    """What became of the slots of a range, oldest first; `from` inclusive, `to` exclusive."""
    job_id = job_id_in(request, job)
    await job_row(request, job_id)
    context, query, limit = context_of(request), request.query_params, page_limit(request)
    filter_: dict[str, object] = {"slots": job_id, "from": query.get("from"), "to": query.get("to")}
    rows = context.backend.queries.slots(
        job_id,
        instant_in(request, "from") or 0,
        instant_in(request, "to") or _EVER_US,
        limit + 1,
        context.cursors.read(query.get("cursor"), job_id, filter_),
    )
    is_more = len(rows) > limit
    cursor = context.cursors.make(slot_place(rows[limit - 1]), job_id, filter_) if is_more else ""
    return JSONResponse(
        {"items": [views.slot_of(row) for row in rows[:limit]], "nextCursor": cursor}
    )


@router.get("/{job}/why", openapi_extra=described(query=("at",), headers=READ_HEADERS))
async def explain_why(request: Request, job: str) -> Response:
    """Why a slot ran, waits or did not run."""
    job_id = job_id_in(request, job)
    row = await job_row(request, job_id)
    context = context_of(request)
    trail = why.trail(
        context.backend, row, instant_in(request, "at"), context.zones, context.backend.now_us()
    )
    return JSONResponse({"jobId": job_id, "trail": list(trail)})
