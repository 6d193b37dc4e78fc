"""The tables that reads come from: how far they are behind, and to build them anew."""

import asyncio
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from horolog.api.context import context_of, is_dry, principal_of
from horolog.api.json_values import Json
from horolog.api.openapi import described
from horolog.api.problems import Denied
from horolog.schemas.errors import FORBIDDEN, UNKNOWN_PROJECTION

router = APIRouter(prefix="/v1/projections", tags=["projections"])

HISTORY: Final = "history"
"""The tables of this release are built and swapped in together, under one name."""


@router.get("", openapi_extra=described())
async def index(request: Request) -> Response:
    """How far the tables are, by ledger partition; records and seconds behind the ledger."""
    lags = await asyncio.to_thread(context_of(request).backend.projection_lags)
    partitions: list[Json] = [
        {
            "partition": lag.partition,
            "position": lag.position,
            "end": lag.end,
            "lagRecords": lag.end - lag.position,
            "lagSeconds": lag.seconds,
        }
        for lag in lags
    ]
    return JSONResponse({"items": [{"name": HISTORY, "partitions": partitions}]})


@router.post("/{name}:rebuild", openapi_extra=described(query=("validateOnly",)))
async def rebuild(request: Request, name: str) -> Response:
    """Build the tables anew beside those in use and swap them in; answers when that is done. Reads
    go on.
    """
    if name != HISTORY:
        raise Denied(UNKNOWN_PROJECTION, f"there is no projection {name}, only {HISTORY}")
    if not principal_of(request).every_tenant:
        raise Denied(FORBIDDEN, "the tables are of all tenants; so must the key be")
    backend = context_of(request).backend
    if is_dry(request):
        return JSONResponse({"name": name, "events": 0})
    events = await asyncio.to_thread(backend.rebuild_projections)
    return JSONResponse({"name": name, "events": events})
