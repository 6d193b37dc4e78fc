"""Runs: what became of them, what they printed, how to end or repeat them; dead letters."""

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from horolog.api import views
from horolog.api.backend import Backend
from horolog.api.bodies import read_json
from horolog.api.context import (
    caught_up,
    command_id,
    context_of,
    decided,
    flag_in,
    number_in,
    page_limit,
    principal_of,
    run_id_in,
    written,
)
from horolog.api.json_values import Json
from horolog.api.limits import FOLLOW_IDLE_S, LOG_READ_BYTES
from horolog.api.lookup import as_of, history_as_of
from horolog.api.openapi import READ_HEADERS, described
from horolog.api.problems import Denied
from horolog.api.requests import CancelRequest, DeadRunsRequest
from horolog.api.validation import read as read_model
from horolog.api.values import instant_text
from horolog.projections.logs import LogState
from horolog.projections.rows import ENDED, RunDetail
from horolog.schemas.errors import UNKNOWN_RUN
from horolog.schemas.ids import job_of
from horolog.schemas.records import CancelRun, DiscardRun, RedriveRun, RunId

router = APIRouter(tags=["runs"])

LOOK_AGAIN_S: Final = 0.5


@router.post(
    "/v1/runs/{run}:cancel",
    status_code=202,
    openapi_extra=described(CancelRequest, optional=True, query=("validateOnly",)),
)
async def cancel(request: Request, run: str) -> Response:
    """Ask that a run ends."""
    run_id = run_id_in(request, run)
    body = read_model(CancelRequest, await read_json(request, optional=True))
    reply = await decided(
        request,
        CancelRun(
            command_id=command_id(),
            principal=principal_of(request).name,
            job_id=job_of(run_id),
            run_id=run_id,
            reason=body.reason,
        ),
    )
    return written({"runId": run_id}, reply, status=202)


@router.post(
    "/v1/runs/{run}:retry", status_code=202, openapi_extra=described(query=("validateOnly",))
)
async def retry(request: Request, run: str) -> Response:
    """Start a dead run again."""
    run_id = run_id_in(request, run)
    reply = await decided(
        request,
        RedriveRun(
            command_id=command_id(),
            principal=principal_of(request).name,
            job_id=job_of(run_id),
            run_id=run_id,
        ),
    )
    return written({"runId": run_id}, reply, status=202)


@router.get(
    "/v1/runs/{run}/logs",
    openapi_extra=described(query=("attempt", "follow"), headers=READ_HEADERS),
)
async def logs(request: Request, run: str) -> Response:
    """What a run printed, byte for byte; with `follow`, until it has ended."""
    run_id = run_id_in(request, run)
    await _detail(request, run_id)
    backend = context_of(request).backend
    number = number_in(request, "attempt")
    headers = {"X-Content-Type-Options": "nosniff"}
    if flag_in(request, "follow"):
        body = _follow(backend, run_id, number)
    else:
        body = _stored(backend, run_id, number)
    return StreamingResponse(body, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/v1/runs/{run}", openapi_extra=described(query=("asOf",), headers=READ_HEADERS))
async def read(request: Request, run: str) -> Response:
    """A run with its attempts; with `asOf` as it was at an instant of the past."""
    run_id = run_id_in(request, run)
    at_us = as_of(request)
    detail = (await history_as_of(request, job_of(run_id), at_us)).run(run_id)
    if detail is None:
        then = "" if at_us is None else f" at {instant_text(at_us)}"
        raise Denied(UNKNOWN_RUN, f"there {'is' if at_us is None else 'was'} no run {run_id}{then}")
    attempts = [views.attempt_of(row) for row in detail.attempts]
    shown: dict[str, object] = {**views.run_of(detail.run), "attempts": attempts}
    if at_us is not None:
        shown["asOf"] = instant_text(at_us)
    return JSONResponse(shown)


@router.get(
    "/v1/dead-letters", openapi_extra=described(query=("cursor", "limit"), headers=READ_HEADERS)
)
async def dead_letters(request: Request) -> Response:
    """Dead runs, newest first."""
    await caught_up(request)
    context, principal = context_of(request), principal_of(request)
    tenant = None if principal.every_tenant else principal.tenant
    place = context.cursors.read(request.query_params.get("cursor"), str(tenant), {"dead": True})
    page = context.backend.queries.dead_letters(tenant, after=place, limit=page_limit(request))
    cursor = (
        "" if page.after is None else context.cursors.make(page.after, str(tenant), {"dead": True})
    )
    return JSONResponse({"items": [views.run_of(row) for row in page.rows], "nextCursor": cursor})


@router.post(
    "/v1/dead-letters:redrive", openapi_extra=described(DeadRunsRequest, query=("validateOnly",))
)
async def redrive(request: Request) -> Response:
    """Start dead runs again."""
    return await _each_dead(request, RedriveRun)


@router.post(
    "/v1/dead-letters:discard", openapi_extra=described(DeadRunsRequest, query=("validateOnly",))
)
async def discard(request: Request) -> Response:
    """Give dead runs up."""
    return await _each_dead(request, DiscardRun)


async def _each_dead(request: Request, kind: type[RedriveRun] | type[DiscardRun]) -> Response:
    body = read_model(DeadRunsRequest, await read_json(request))
    results: list[Json] = []
    for text in body.run_ids:
        run_id = run_id_in(request, text)
        try:
            await decided(
                request,
                kind(
                    command_id=command_id(),
                    principal=principal_of(request).name,
                    job_id=job_of(run_id),
                    run_id=run_id,
                ),
            )
            results.append({"runId": run_id, "done": True})
        except Denied as error:
            results.append({"runId": run_id, "done": False, "detail": error.detail})
    return JSONResponse({"items": results})


async def _detail(request: Request, run_id: RunId) -> RunDetail:
    await caught_up(request)
    detail = context_of(request).backend.queries.run(run_id)
    if detail is None:
        raise Denied(UNKNOWN_RUN, f"there is no run {run_id}")
    return detail


def _attempt(backend: Backend, run_id: RunId, number: int | None) -> LogState | None:
    """The attempt asked for, or the last one that printed something."""
    states = backend.logs.attempts(run_id)
    if number is not None:
        states = [state for state in states if state.attempt == number]
    return states[-1] if states else None


async def _stored(backend: Backend, run_id: RunId, number: int | None) -> AsyncIterator[bytes]:
    state = await asyncio.to_thread(_attempt, backend, run_id, number)
    if state is None:
        return
    offset = 0
    while True:
        pieces = await asyncio.to_thread(
            backend.logs.read, run_id, state.token, offset, LOG_READ_BYTES
        )
        if not pieces:
            return
        for piece in pieces:
            yield _told(piece.dropped) + piece.data
        if pieces[-1].last or pieces[-1].end == offset:
            return
        offset = pieces[-1].end


async def _follow(backend: Backend, run_id: RunId, number: int | None) -> AsyncIterator[bytes]:
    """Every attempt's output as it comes, until the run has ended and all of it was given."""
    loop = asyncio.get_running_loop()
    news = asyncio.Event()

    def told(run_ids: Collection[RunId]) -> None:
        if run_id in run_ids:
            loop.call_soon_threadsafe(news.set)

    end = backend.logs.follow(told)
    offsets: dict[int, int] = {}
    try:
        while True:
            news.clear()
            detail = await asyncio.to_thread(backend.queries.run, run_id)
            has_ended = detail is None or detail.run.status in ENDED
            for state in await asyncio.to_thread(backend.logs.attempts, run_id):
                if number is None or state.attempt == number:
                    async for data in _rest(backend, run_id, state.token, offsets):
                        yield data
            if has_ended and not news.is_set():
                return
            try:
                async with asyncio.timeout(min(LOOK_AGAIN_S, FOLLOW_IDLE_S)):
                    await news.wait()
            except TimeoutError:
                continue
    finally:
        end()


async def _rest(
    backend: Backend, run_id: RunId, token: int, offsets: dict[int, int]
) -> AsyncIterator[bytes]:
    """What an attempt printed since it was looked at before."""
    while True:
        offset = offsets.get(token, 0)
        pieces = await asyncio.to_thread(backend.logs.read, run_id, token, offset, LOG_READ_BYTES)
        for piece in pieces:
            if piece.data:
                yield _told(piece.dropped) + piece.data
        if not pieces or pieces[-1].end == offset:
            return
        offsets[token] = pieces[-1].end


def _told(dropped: int) -> bytes:
    return f"\n[horolog: {dropped} bytes left out]\n".encode() if dropped else b""
