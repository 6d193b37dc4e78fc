"""Leases over HTTP, for workers in any language: lease, heartbeat, complete, and output."""

import re
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from horolog.api.bodies import read_bytes, read_json
from horolog.api.context import Gateways, context_of, run_id_in
from horolog.api.definitions import payload_fields
from horolog.api.faults import Fault, Refused
from horolog.api.gateway import Lease
from horolog.api.json_values import Json
from horolog.api.limits import HEARTBEATS_PER_CALL_MAX, LEASES_PER_CALL_MAX, PREFER_WAIT_MAX_S
from horolog.api.problems import Denied
from horolog.api.values import instant_text
from horolog.schemas.errors import MISSING_TOKEN, STALE_TOKEN
from horolog.schemas.ids import job_of, slot_text
from horolog.schemas.records import CompleteRun, LogChunk, RunId, RunResult, Verdict

router = APIRouter(tags=["workers"])

_WAIT: Final = re.compile(r"\bwait=(\d{1,4})\b")
_US_PER_S: Final = 1_000_000


@router.post("/v1/runs:lease")
async def lease(request: Request) -> Response:
    """Lease runs; with `Prefer: wait=20`, wait so long for the first (RFC 7240)."""
    raw = _object(await read_json(request))
    worker_id = raw.get("workerId")
    if not isinstance(worker_id, str) or not worker_id:
        raise Refused([Fault(pointer="/workerId", detail="a worker names itself")])
    pools, handlers = raw.get("pools") or ["default"], raw.get("handlers")
    most = raw.get("max", 1)
    if not isinstance(most, int) or not 0 < most <= LEASES_PER_CALL_MAX:
        raise Refused([Fault(pointer="/max", detail=f"is from 1 to {LEASES_PER_CALL_MAX}")])
    if not isinstance(pools, list) or not all(isinstance(pool, str) for pool in pools):
        raise Refused([Fault(pointer="/pools", detail="is a list of names of pools")])
    if handlers is not None and not isinstance(handlers, list):
        raise Refused([Fault(pointer="/handlers", detail="is a list of names of functions")])
    wait = _WAIT.search(request.headers.get("prefer", ""))
    request_id = raw.get("requestId")
    gateway = context_of(request).gateways.of(
        None if handlers is None else frozenset(str(name) for name in handlers)
    )
    leases = await gateway.lease(
        worker_id,
        pools=[str(pool) for pool in pools],
        max_runs=most,
        wait_s=min(float(wait[1]), PREFER_WAIT_MAX_S) if wait else 0.0,
        request_id=request_id if isinstance(request_id, str) else None,
    )
    return JSONResponse([_lease(each) for each in leases])


@router.post("/v1/runs:heartbeat")
async def heartbeats(request: Request) -> Response:
    """Renew many leases."""
    raw = _object(await read_json(request))
    named = raw.get("runs")
    if not isinstance(named, list) or len(named) > HEARTBEATS_PER_CALL_MAX:
        detail = f"is a list of at most {HEARTBEATS_PER_CALL_MAX} runs"
        raise Refused([Fault(pointer="/runs", detail=detail)])
    answers: list[Json] = []
    for each in named:
        run = _object(each)
        run_id = run_id_in(request, str(run.get("runId")))
        token, claim_id = _right(run)
        answer = await _beat(context_of(request).gateways, request, run_id, token, claim_id)
        answers.append({"runId": run_id, **answer})
    return JSONResponse({"runs": answers})


@router.post("/v1/runs/{run}:heartbeat")
async def heartbeat(request: Request, run: str) -> Response:
    """Renew a lease: until when, or CANCELLED; 409 when it is not held any more."""
    run_id = run_id_in(request, run)
    token, claim_id = _right(_object(await read_json(request)))
    answer = await _beat(context_of(request).gateways, request, run_id, token, claim_id)
    if answer.get("status") == "STALE":
        raise Denied(STALE_TOKEN, f"the lease of {run_id} with the token {token} has ended")
    return JSONResponse(answer)


@router.post("/v1/runs/{run}:complete")
async def complete(request: Request, run: str) -> Response:
    """Say how an attempt ended; the same again gets the same answer."""
    run_id = run_id_in(request, run)
    raw = _object(await read_json(request))
    token, claim_id = _right(raw)
    gateway = context_of(request).gateways.with_claim(claim_id)
    output = raw.get("output")
    exit_code = raw.get("exitCode")
    verdict = await gateway.complete(
        CompleteRun(
            run_id=run_id,
            token=token,
            claim_id=claim_id,
            inbox=gateway.inbox,
            result=RunResult.SUCCEEDED if raw.get("ok") is True else _result(raw),
            error=str(raw.get("error") or ""),
            retryable=raw.get("retryable") is not False,
            exit_code=exit_code if isinstance(exit_code, int) else None,
            output=str(output).encode() if output is not None else b"",
        )
    )
    if verdict is Verdict.STALE:
        raise Denied(STALE_TOKEN, f"the lease of {run_id} with the token {token} has ended")
    return JSONResponse({"runId": run_id, "accepted": True})


@router.post("/v1/runs/{run}/logs")
async def output(request: Request, run: str) -> Response:
    """Keep a piece of what an attempt prints: raw bytes, at an offset."""
    run_id = run_id_in(request, run)
    query = request.query_params
    try:
        numbers = {name: int(query[name]) for name in ("fencingToken", "attempt", "offset")}
    except (KeyError, ValueError) as error:
        detail = "fencingToken, attempt and offset are whole numbers"
        raise Refused([Fault(pointer="?fencingToken", detail=detail)]) from error
    chunk = LogChunk(
        job_id=job_of(run_id),
        run_id=run_id,
        attempt=numbers["attempt"],
        token=numbers["fencingToken"],
        offset=numbers["offset"],
        data=await read_bytes(request),
        last=query.get("last") == "true",
    )
    context_of(request).gateways.any().log(chunk)
    return Response(status_code=204)


async def _beat(
    gateways: Gateways, request: Request, run_id: RunId, token: int, claim_id: str
) -> dict[str, Json]:
    gateway = gateways.with_claim(claim_id)
    verdict = await gateway.heartbeat(run_id, token, claim_id)
    if verdict is Verdict.STALE:
        return {"status": "STALE"}
    if verdict is Verdict.CANCEL:
        return {"status": "CANCELLED"}
    term_us = gateway.term_us_of(claim_id) or 30 * _US_PER_S
    until_us = context_of(request).backend.now_us() + term_us
    return {"status": "RENEWED", "extendUntil": instant_text(until_us)}


def _result(raw: dict[str, Json]) -> RunResult:
    words = {"timed_out": RunResult.TIMED_OUT, "cancelled": RunResult.CANCELLED}
    return words.get(str(raw.get("result")), RunResult.FAILED)


def _right(raw: dict[str, Json]) -> tuple[int, str]:
    """Token and claim of a report. Without both it is refused: ownership is never assumed."""
    token, claim_id = raw.get("fencingToken"), raw.get("claimId")
    if not isinstance(token, int) or isinstance(token, bool):
        raise Denied(MISSING_TOKEN, "fencingToken is missing or no number", field="/fencingToken")
    if not isinstance(claim_id, str) or not claim_id:
        raise Denied(MISSING_TOKEN, "claimId is missing or no text", field="/claimId")
    return token, claim_id


def _object(raw: Json) -> dict[str, Json]:
    if not isinstance(raw, dict):
        raise Refused([Fault(pointer="", detail="is no object")])
    return raw


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
