"""Schedules explained, health, pages of errors."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from horolog.api import explain, problems
from horolog.api.bodies import read_json
from horolog.api.context import context_of
from horolog.api.metrics import CONTENT_TYPE
from horolog.api.openapi import described
from horolog.api.problems import Denied
from horolog.api.requests import ExplainRequest
from horolog.api.validation import read as read_model
from horolog.schemas.errors import UNKNOWN_PATH

router = APIRouter(tags=["system"])


@router.post("/v1/schedules:explain", openapi_extra=described(ExplainRequest))
async def explain_schedule(request: Request) -> Response:
    """A schedule in words, its next slots, clock changes marked, what is odd about it."""
    body = read_model(ExplainRequest, await read_json(request))
    context = context_of(request)
    return JSONResponse(explain.of_request(body, context.zones, context.backend.now_us()))


@router.get("/livez")
async def live() -> Response:
    """Whether the process answers."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz")
async def ready(request: Request) -> Response:
    """Whether the process can decide: 503 and why, if not."""
    health = context_of(request).backend.health()
    status = "ok" if health.ready else "unavailable"
    body = {"status": status, "detail": health.detail}
    return JSONResponse(body, 200 if health.ready else 503)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Metrics in Prometheus' text format."""
    text = await asyncio.to_thread(context_of(request).backend.metrics_text)
    return Response(text, media_type=CONTENT_TYPE)


@router.get("/problems/{code}")
async def problem(code: str) -> Response:
    """The page of an error."""
    found = problems.page(code.upper())
    if found is None:
        raise Denied(UNKNOWN_PATH, f"there is no error {code}")
    return HTMLResponse(found[0])
