"""Workers: who is there, and who takes nothing new."""

from collections.abc import Iterator

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from horolog.api import views
from horolog.api.context import context_of, is_dry, principal_of
from horolog.api.json_values import Json
from horolog.api.openapi import described
from horolog.api.problems import Denied
from horolog.api.workers import WorkerState
from horolog.schemas.errors import FORBIDDEN, UNKNOWN_WORKER
from horolog.schemas.ids import job_of, tenant_of

router = APIRouter(prefix="/v1/workers", tags=["workers"])


@router.get("", openapi_extra=described())
async def workers(request: Request) -> Response:
    """Workers that take runs of the caller's tenants: those in this process, then those that ask
    over HTTP.
    """
    return JSONResponse({"items": [_shown(request, one) for one in _visible(request)]})


@router.post("/{worker:path}:drain", openapi_extra=described(query=("validateOnly",)))
async def drain(request: Request, worker: str) -> Response:
    """Give a worker nothing more, until it ends; what it runs goes on. The worker is told."""
    found = next((one for one in _visible(request) if one.worker_id == worker), None)
    if found is None:
        raise Denied(UNKNOWN_WORKER, f"there is no worker {worker}")
    principal = principal_of(request)
    if found.tenant is None and not principal.every_tenant:
        raise Denied(FORBIDDEN, f"{worker} works for all tenants; so must the key that drains it")
    if not is_dry(request):
        context = context_of(request)
        if not context.backend.drain(worker):
            context.workers.drain(found)
        found = next(one for one in _visible(request) if one.worker_id == worker)
    return JSONResponse(_shown(request, found))


def _visible(request: Request) -> Iterator[WorkerState]:
    context, principal = context_of(request), principal_of(request)
    for state in (*context.backend.workers(), *context.workers.states()):
        if state.tenant is None or principal.may_see(state.tenant):
            yield state


def _shown(request: Request, state: WorkerState) -> dict[str, Json]:
    """A worker, with those of its runs that the caller may see."""
    principal = principal_of(request)
    runs = [run_id for run_id in state.runs if principal.may_see(tenant_of(job_of(run_id)))]
    return {
        "workerId": state.worker_id,
        "kind": state.kind,
        "tenant": state.tenant,
        "pools": list(state.pools),
        "handlers": None if state.handlers is None else list(state.handlers),
        "slots": state.slots,
        "lastSeenAt": views.at(state.seen_us),
        "running": len(runs),
        "runs": list(runs),
        "draining": state.is_draining,
    }
