"""Schedules explained, tenants, health, pages of errors."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from horolog.api import explain, problems
from horolog.api.bodies import read_json
from horolog.api.context import caught_up, context_of, principal_of
from horolog.api.openapi import READ_HEADERS, described
from horolog.api.problems import Denied
from horolog.api.requests import ExplainRequest
from horolog.api.validation import read as read_model
from horolog.schemas.errors import UNKNOWN_PATH, UNKNOWN_TENANT
from horolog.schemas.records import TenantId

router = APIRouter(tags=["system"])


@router.post("/v1/schedules:explain", openapi_extra=described(ExplainRequest))
async def explain_schedule(request: Request) -> Response:
    """A schedule in words, its next slots, clock changes marked, what is odd about it."""
    body = read_model(ExplainRequest, await read_json(request))
    context = context_of(request)
    return JSONResponse(explain.of_request(body, context.zones, context.backend.now_us()))


@router.get("/v1/tenants", openapi_extra=described(headers=READ_HEADERS))
async def tenants(request: Request) -> Response:
    """Tenants the caller may see, with what they use."""
    await caught_up(request)
    queries, principal = context_of(request).backend.queries, principal_of(request)
    names = [name for name in queries.tenants() if principal.may_see(name)]
    return JSONResponse({"items": [_use(request, name) for name in names]})


@router.get("/v1/tenants/{tenant}", openapi_extra=described(headers=READ_HEADERS))
async def tenant_use(request: Request, tenant: str) -> Response:
    """What a tenant has and uses."""
    await caught_up(request)
    if not principal_of(request).may_see(tenant):
        raise Denied(UNKNOWN_TENANT, f"there is no tenant {tenant}")
    return JSONResponse(_use(request, TenantId(tenant)))


def _use(request: Request, tenant: TenantId) -> dict[str, object]:
    use = context_of(request).backend.queries.tenant_use(tenant)
    return {
        "tenant": tenant,
        "jobs": use.jobs_count,
        "waiting": use.waiting_count,
        "running": use.running_count,
        "dead": use.dead_count,
    }


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


@router.get("/problems/{code}")
async def problem(code: str) -> Response:
    """The page of an error."""
    found = problems.page(code.upper())
    if found is None:
        raise Denied(UNKNOWN_PATH, f"there is no error {code}")
    return HTMLResponse(found[0])
