"""Leases over HTTP, for workers in any language: lease, heartbeat, complete, and output."""

import re
from typing import Final, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from horolog.api.bodies import read_bytes, read_json
from horolog.api.context import context_of, flag_in, number_in, principal_of, run_id_in
from horolog.api.definitions import payload_fields
from horolog.api.faults import Fault, Refused
from horolog.api.gateway import Lease
from horolog.api.json_values import Json
from horolog.api.limits import PREFER_WAIT_MAX_S
from horolog.api.openapi import OUTPUT_BODY, described
from horolog.api.problems import Denied
from horolog.api.requests import CompleteRequest, HeartbeatsRequest, LeaseProof, LeaseRequest
from horolog.api.validation import read as read_model
from horolog.api.values import instant_text
from horolog.api.workers import DRAINING
from horolog.schemas.errors import CONTRADICTION, MISSING_TOKEN, STALE_TOKEN
from horolog.schemas.ids import job_of, slot_text
from horolog.schemas.records import CompleteRun, LogChunk, RunId, RunResult, Verdict
from horolog.workers.sdk import USER_AGENT as SDK_AGENT

router = APIRouter(tags=["workers"])

_WAIT: Final = re.compile(r"\bwait=(\d{1,4})\b")
_US_PER_S: Final = 1_000_000


@router.post("/v1/runs:lease", openapi_extra=described(LeaseRequest, headers=("Prefer",)))
async def lease(request: Request) -> Response:
    """Lease runs; with `Prefer: wait=20`, wait so long for the first (RFC 7240). A worker that is
    to drain gets none, and the header `Horolog-Draining`.
    """
    body = read_model(LeaseRequest, await read_json(request))
    wait = _WAIT.search(request.headers.get("prefer", ""))
    context, principal = context_of(request), principal_of(request)
    worker = context.workers.asks(
        None if principal.every_tenant else principal.tenant,
        body.worker_id,
        kind="sdk" if request.headers.get("user-agent", "").startswith(SDK_AGENT) else "http",
        pools=body.pools,
        handlers=body.handlers,
        slots=body.slots,
    )
    gateway = context.gateways.of(None if body.handlers is None else frozenset(body.handlers))
    leases = await gateway.lease(
        body.worker_id,
        pools=body.pools,
        max_runs=body.max,
        wait_s=min(float(wait[1]), PREFER_WAIT_MAX_S) if wait else 0.0,
        request_id=body.request_id,
        stop=worker.draining,
    )
    for each in leases:
        grant = each.grant
        context.workers.granted(worker, grant.claim_id, grant.run_id, grant.term_us, each.until_us)
    headers = {DRAINING: "true"} if worker.draining.is_set() else {}
    return JSONResponse([_lease(each) for each in leases], headers=headers)


@router.post("/v1/runs:heartbeat", openapi_extra=described(HeartbeatsRequest))
async def heartbeats(request: Request) -> Response:
    """Renew many leases."""
    body = read_model(HeartbeatsRequest, await read_json(request))
    answers: list[Json] = []
    for proof in body.runs:
        run_id = run_id_in(request, proof.run_id)
        answers.append({"runId": run_id, **await _beat(request, run_id, proof)})
    return JSONResponse({"runs": answers})


@router.post("/v1/runs/{run}:heartbeat", openapi_extra=described(LeaseProof))
async def heartbeat(request: Request, run: str) -> Response:
    """Renew a lease: until when, or CANCELLED; 409 when it is not held any more."""
    run_id = run_id_in(request, run)
    proof = _proof(LeaseProof, await read_json(request))
    answer = await _beat(request, run_id, proof)
    if answer.get("status") == "STALE":
        raise _stale(run_id, proof)
    return JSONResponse(answer)


@router.post("/v1/runs/{run}:complete", openapi_extra=described(CompleteRequest))
async def complete(request: Request, run: str) -> Response:
    """Say how an attempt ended; the same again gets the same answer."""
    run_id = run_id_in(request, run)
    body = _proof(CompleteRequest, await read_json(request))
    gateway = context_of(request).gateways.with_claim(body.claim_id)
    verdict = await gateway.complete(
        CompleteRun(
            run_id=run_id,
            token=body.fencing_token,
            claim_id=body.claim_id,
            inbox=gateway.inbox,
            result=_result(body),
            error=body.error,
            retryable=body.retryable,
            exit_code=body.exit_code,
            output=(body.output or "").encode(),
        )
    )
    context_of(request).workers.ended(body.claim_id)
    if verdict is Verdict.STALE:
        raise _stale(run_id, body)
    return JSONResponse({"runId": run_id, "accepted": True})


@router.post(
    "/v1/runs/{run}/logs",
    status_code=204,
    openapi_extra=described(query=("fencingToken", "attempt", "offset", "last")) | OUTPUT_BODY,
)
async def output(request: Request, run: str) -> Response:
    """Keep a piece of what an attempt prints: raw bytes, at an offset."""
    run_id = run_id_in(request, run)
    token, attempt, offset = (
        number_in(request, name) for name in ("fencingToken", "attempt", "offset")
    )
    if token is None or attempt is None or offset is None:
        detail = "fencingToken, attempt and offset are needed"
        raise Refused([Fault(pointer="?fencingToken", detail=detail)])
    chunk = LogChunk(
        job_id=job_of(run_id),
        run_id=run_id,
        attempt=attempt,
        token=token,
        offset=offset,
        data=await read_bytes(request),
        last=flag_in(request, "last"),
    )
    context_of(request).gateways.any().log(chunk)
    return Response(status_code=204)


async def _beat(request: Request, run_id: RunId, proof: LeaseProof) -> dict[str, Json]:
    gateway = context_of(request).gateways.with_claim(proof.claim_id)
    verdict = await gateway.heartbeat(run_id, proof.fencing_token, proof.claim_id)
    workers = context_of(request).workers
    if verdict is Verdict.STALE:
        workers.ended(proof.claim_id)
        return {"status": "STALE"}
    worker = workers.renewed(proof.claim_id)
    told: dict[str, Json] = (
        {"draining": True} if worker is not None and worker.draining.is_set() else {}
    )
    if verdict is Verdict.CANCEL:
        return {"status": "CANCELLED", **told}
    term_us = gateway.term_us_of(proof.claim_id) or 30 * _US_PER_S
    until_us = context_of(request).backend.now_us() + term_us
    return {"status": "RENEWED", "extendUntil": instant_text(until_us), **told}


def _result(body: CompleteRequest) -> RunResult:
    if body.result is None:
        return RunResult.SUCCEEDED if body.ok else RunResult.FAILED
    result = RunResult(body.result)
    if body.ok != (result is RunResult.SUCCEEDED):
        detail = f'"{body.result}" and ok {str(body.ok).lower()} are two answers; leave one out'
        raise Refused([Fault(pointer="/result", detail=detail, error=CONTRADICTION)])
    return result


Proof = TypeVar("Proof", bound=LeaseProof)


def _proof(model: type[Proof], raw: Json) -> Proof:
    """A report. Without token and claim it is refused: ownership is never assumed."""
    if isinstance(raw, dict):
        for name in ("fencingToken", "claimId"):
            if raw.get(name) in (None, ""):
                raise Denied(MISSING_TOKEN, f"{name} is missing", field=f"/{name}")
    return read_model(model, raw)


def _stale(run_id: RunId, proof: LeaseProof) -> Denied:
    detail = f"the lease of {run_id} with the token {proof.fencing_token} has ended"
    return Denied(STALE_TOKEN, detail)


def _lease(leased: Lease) -> dict[str, Json]:
    grant = leased.grant
    target = grant.target
    shown: dict[str, Json] = {}
    if target.handler is not None:
        shown = {"handler": target.handler}
    elif target.command is not None:
        shown = {"command": list(target.command)}
    elif target.http is not None:
        shown = {"http": {"url": target.http.url, "method": target.http.method}}
    elif target.container is not None:
        shown = {"container": {"image": target.container.image}}
    return {
        "runId": grant.run_id,
        "jobId": grant.job_id,
        "attempt": grant.attempt,
        "round": grant.round,
        "fencingToken": grant.token,
        "claimId": grant.claim_id,
        "leaseUntil": instant_text(leased.until_us),
        "termS": grant.term_us / _US_PER_S,
        "slot": None if grant.slot_us is None else slot_text(grant.slot_us),
        "target": shown,
        "timeoutS": grant.timeout_us / _US_PER_S,
        "killGraceS": grant.kill_grace_us / _US_PER_S,
        "contentType": grant.content_type,
        **payload_fields(grant.payload, grant.content_type),
    }
