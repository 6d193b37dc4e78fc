"""Tenants: what each may have, and what it has."""

import asyncio
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from horolog.api.bodies import read_json
from horolog.api.checks import id_faults
from horolog.api.context import caught_up, context_of, is_dry, principal_of, tag_demanded
from horolog.api.faults import Refused
from horolog.api.json_values import Json
from horolog.api.openapi import READ_HEADERS, described
from horolog.api.problems import Denied
from horolog.api.requests import TenantRequest
from horolog.api.validation import read as read_model
from horolog.schemas.errors import UNKNOWN_TENANT
from horolog.schemas.ids import is_tenant
from horolog.schemas.records import TenantId, TenantSettings
from horolog.streams.host.tenants import tag_of

router = APIRouter(prefix="/v1/tenants", tags=["tenants"])

_NAME_OF_ANY_JOB: Final = "any"


@router.get("", openapi_extra=described(headers=READ_HEADERS))
async def index(request: Request) -> Response:
    """Tenants the caller may see, with what they may have and what they have."""
    await caught_up(request)
    principal = principal_of(request)
    names = sorted(name for name in _known(request) if principal.may_see(name))
    return JSONResponse({"items": [_shown(request, _limits(request, name)) for name in names]})


@router.get("/{tenant}", openapi_extra=described(headers=READ_HEADERS))
async def read(request: Request, tenant: str) -> Response:
    """What a tenant may have, and what it has."""
    await caught_up(request)
    if not principal_of(request).may_see(tenant) or tenant not in _known(request):
        raise Denied(UNKNOWN_TENANT, f"there is no tenant {tenant}")
    limits = _limits(request, TenantId(tenant))
    return JSONResponse(_shown(request, limits), headers={"ETag": f'"{tag_of(limits)}"'})


@router.put(
    "/{tenant}",
    openapi_extra=described(TenantRequest, query=("validateOnly",), headers=("If-Match",)),
)
async def replace(request: Request, tenant: str) -> Response:
    """Set what a tenant may have; a limit that is left out is none. In force at once."""
    if not is_tenant(tenant):
        raise Refused(id_faults(tenant, _NAME_OF_ANY_JOB, "?tenant"))
    if not principal_of(request).may_see(tenant):
        raise Denied(UNKNOWN_TENANT, f"there is no tenant {tenant}")
    body = read_model(TenantRequest, await read_json(request))
    limits = TenantSettings(
        tenant=TenantId(tenant),
        concurrency=body.concurrency,
        backlog=body.backlog,
        jobs=body.jobs,
    )
    if not is_dry(request):
        put = context_of(request).backend.limits.put
        await asyncio.to_thread(put, limits, tag_demanded(request))
    return JSONResponse(_shown(request, limits), headers={"ETag": f'"{tag_of(limits)}"'})


def _known(request: Request) -> set[TenantId]:
    """Tenants that have or had jobs, that have limits, and the caller's own."""
    backend = context_of(request).backend
    own = principal_of(request).tenant
    return {*backend.queries.tenants(), *backend.limits.all(), own}


def _limits(request: Request, tenant: TenantId) -> TenantSettings:
    return context_of(request).backend.limits.of(tenant) or TenantSettings(tenant=tenant)


def _shown(request: Request, limits: TenantSettings) -> dict[str, Json]:
    use = context_of(request).backend.queries.tenant_use(limits.tenant)
    return {
        "tenant": limits.tenant,
        "concurrency": limits.concurrency,
        "backlog": limits.backlog,
        "jobs": limits.jobs,
        "use": {
            "jobs": use.jobs_count,
            "open": use.waiting_count + use.running_count,
            "waiting": use.waiting_count,
            "running": use.running_count,
            "dead": use.dead_count,
        },
    }
