"""Jobs: create, read, change, pause, trigger."""

from typing import cast

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from horolog.api import merge_patch, views
from horolog.api.bodies import PATCH_TYPES, read_json
from horolog.api.checks import faults_of
from horolog.api.context import (
    accepted,
    caught_up,
    caught_up_to,
    command_id,
    context_of,
    decided,
    flag_in,
    if_version,
    instant_in,
    is_dry,
    job_id_in,
    new_job_id,
    page_limit,
    principal_of,
    written,
)
from horolog.api.definition_models import JobPatch, JobRequest, NamedJobRequest
from horolog.api.definitions import (
    definition_of,
    payload_bytes,
    read_spec,
    spec_of,
)
from horolog.api.faults import Fault, Refused
from horolog.api.json_values import Json
from horolog.api.lookup import as_of, history_as_of, job_row, next_slots
from horolog.api.openapi import READ_HEADERS, described
from horolog.api.problems import Denied
from horolog.api.requests import BackfillRequest, PauseRequest, TriggerRequest
from horolog.api.short_form import canonical_patch
from horolog.api.validation import read as read_model
from horolog.api.values import instant_text, parse_instant
from horolog.projections.rows import JobRow
from horolog.projections.rows import definition_of as stored_definition
from horolog.schemas.errors import JOB_EXISTS, UNKNOWN_JOB, VERSION_MISMATCH
from horolog.schemas.records import (
    BackfillJob,
    CreateJob,
    CursorStarted,
    DeleteJob,
    JobDefinition,
    JobId,
    PauseJob,
    ResumeJob,
    RunOrigin,
    TenantId,
    Tier,
    TriggerJob,
    UpdateJob,
)
from horolog.streams.calendar import count_slots, next_slot, previous_slot
from horolog.streams.host.preview import Preview

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post(
    "",
    status_code=201,
    openapi_extra=described(NamedJobRequest, query=("validateOnly",), headers=("Idempotency-Key",)),
)
async def create(request: Request) -> Response:
    """Create a job: 201; the same again: 200; another one of that name: 409."""
    raw = _object(await read_json(request))
    name, whole = raw.pop("name", None), raw.pop("id", None)
    job_id = new_job_id(request, name, whole)
    definition = _checked(request, job_id, raw)
    if is_dry(request):
        return JSONResponse(_written(request, job_id, 0, definition))
    reply = await decided(
        request,
        CreateJob(
            command_id=request.headers.get("idempotency-key") or command_id(),
            principal=principal_of(request).name,
            job_id=job_id,
            definition=definition,
        ),
    )
    body = _written(request, job_id, reply.version, definition)
    return written(body, reply, status=201 if reply.changed else 200, version=reply.version)


@router.get(
    "",
    openapi_extra=described(
        query=("tenant", "label", "pool", "paused", "q", "cursor", "limit"), headers=READ_HEADERS
    ),
)
async def index(request: Request) -> Response:
    """Jobs in order of ID."""
    await caught_up(request)
    context, principal = context_of(request), principal_of(request)
    query = request.query_params
    labels: dict[str, str] = {}
    for pair in query.getlist("label"):
        key, _, value = pair.partition("=")
        labels[key] = value
    filter_: dict[str, object] = {
        "labels": labels,
        "pool": query.get("pool"),
        "paused": query.get("paused"),
        "q": query.get("q"),
        "tenant": query.get("tenant"),
    }
    tenant: TenantId | None = principal.tenant
    if principal.every_tenant:
        wanted = query.get("tenant") or "*"
        tenant = None if wanted == "*" else TenantId(wanted)
    place = context.cursors.read(query.get("cursor"), str(tenant), filter_)
    limit = page_limit(request)
    rows = context.backend.queries.jobs(
        tenant,
        labels=labels,
        pool=query.get("pool"),
        paused=flag_in(request, "paused") if "paused" in query else None,
        text=query.get("q"),
        after=None if place is None else place[1],
        limit=limit + 1,
    )
    cursor = (
        context.cursors.make((0, rows[limit - 1].job_id), str(tenant), filter_)
        if len(rows) > limit
        else ""
    )
    items: list[Json] = [
        {**views.job_of(row), "next": _next_text(request, row)} for row in rows[:limit]
    ]
    return JSONResponse({"items": items, "nextCursor": cursor})


@router.post(
    "/{job}:trigger",
    status_code=202,
    openapi_extra=described(TriggerRequest, optional=True, query=("validateOnly",)),
)
async def trigger(request: Request, job: str) -> Response:
    """Ask for a manual run; the same key names the same run."""
    job_id = job_id_in(request, job)
    body = read_model(TriggerRequest, await read_json(request, optional=True))
    faults: list[Fault] = []
    payload = None
    if body.model_fields_set & {"payload", "payload_base64"}:
        row = await job_row(request, job_id)
        content_type = stored_definition(row.definition).content_type
        payload = payload_bytes(body.payload, body.payload_base64, content_type, faults)
    if faults:
        raise Refused(faults)
    reply = await decided(
        request,
        TriggerJob(
            command_id=command_id(),
            principal=principal_of(request).name,
            job_id=job_id,
            key=body.idempotency_key or command_id().replace("_", "-"),
            payload=payload,
            slot_us=_us(body.slot),
        ),
    )
    return written({"runId": reply.run_id, "jobId": job_id}, reply, status=202)


@router.post(
    "/{job}:pause", openapi_extra=described(PauseRequest, optional=True, query=("validateOnly",))
)
async def pause(request: Request, job: str) -> Response:
    """Stop planning a job until it is resumed."""
    job_id = job_id_in(request, job)
    body = read_model(PauseRequest, await read_json(request, optional=True))
    reply = await decided(
        request,
        PauseJob(
            command_id=command_id(),
            principal=principal_of(request).name,
            job_id=job_id,
            until_us=_us(body.until),
            reason=body.reason,
        ),
    )
    return written(views.job_head(job_id, "paused", reply.version), reply)


@router.post("/{job}:resume", openapi_extra=described(query=("validateOnly",)))
async def resume(request: Request, job: str) -> Response:
    """Plan a paused job again."""
    job_id = job_id_in(request, job)
    reply = await decided(
        request,
        ResumeJob(command_id=command_id(), principal=principal_of(request).name, job_id=job_id),
    )
    return written(views.job_head(job_id, "active", reply.version), reply)


@router.post(
    "/{job}:backfill",
    status_code=202,
    openapi_extra=described(BackfillRequest, query=("validateOnly",)),
)
async def backfill(request: Request, job: str) -> Response:
    """Turn skipped or never planned slots of the past into runs."""
    job_id = job_id_in(request, job)
    body = read_model(BackfillRequest, await read_json(request))
    command = BackfillJob(
        command_id=command_id(),
        principal=principal_of(request).name,
        job_id=job_id,
        from_us=parse_instant(body.from_),
        to_us=parse_instant(body.to),
        tier=Tier(body.priority),
    )
    shown: dict[str, Json] = {"jobId": job_id}
    if is_dry(request):
        preview = await context_of(request).backend.preview(command)
        accepted(preview.reply)
        shown["slots"] = await _backfilled(request, job_id, preview)
        return JSONResponse({**shown, "changed": preview.reply.changed})
    reply = await decided(request, command)
    return written({**shown, "changed": reply.changed}, reply, status=202)


async def _backfilled(request: Request, job_id: JobId, preview: Preview) -> dict[str, Json]:
    """Slots that a backfill would make up: how many, and the first and the last."""
    await caught_up_to(request, preview.reply.partition, preview.seq)
    schedule = stored_definition((await job_row(request, job_id)).definition).schedule
    zones = context_of(request).zones.with_zone(schedule.timezone)
    ranges = [
        (event.after_us, event.to_us)
        for event in preview.events
        if isinstance(event, CursorStarted) and event.origin is RunOrigin.BACKFILL
    ]
    count = sum(count_slots(schedule, job_id, after_us, to_us, zones) for after_us, to_us in ranges)
    if not count:
        return {"count": 0}
    # A range is begun only where a slot was skipped.
    first_us = next_slot(schedule, job_id, min(ranges)[0], zones)
    last_us = previous_slot(schedule, job_id, max(ranges)[1], zones)
    assert first_us is not None
    assert last_us is not None
    return {"count": count, "first": instant_text(first_us), "last": instant_text(last_us)}


@router.get("/{job}/versions", openapi_extra=described(headers=READ_HEADERS))
async def versions(request: Request, job: str) -> Response:
    """Definitions a job had, newest first, with who and when."""
    job_id = job_id_in(request, job)
    await caught_up(request)
    rows = context_of(request).backend.queries.versions(job_id)
    if not rows:
        raise Denied(UNKNOWN_JOB, f"there is no job {job_id}")
    return JSONResponse({"items": [views.version_of(row) for row in rows]})


@router.get(
    "/{job}/runs",
    openapi_extra=described(
        query=("status", "from", "to", "cursor", "limit"), headers=READ_HEADERS
    ),
)
async def runs(request: Request, job: str) -> Response:
    """Runs of a job, newest first; `from` inclusive, `to` exclusive."""
    job_id = job_id_in(request, job)
    await job_row(request, job_id)
    context = context_of(request)
    query = request.query_params
    statuses = sorted({part for each in query.getlist("status") for part in each.split(",")})
    filter_: dict[str, object] = {
        "job": job_id,
        "statuses": statuses,
        "from": query.get("from"),
        "to": query.get("to"),
    }
    page = context.backend.queries.runs(
        job_id,
        statuses=statuses,
        from_us=instant_in(request, "from"),
        to_us=instant_in(request, "to"),
        after=context.cursors.read(query.get("cursor"), job_id, filter_),
        limit=page_limit(request),
    )
    cursor = "" if page.after is None else context.cursors.make(page.after, job_id, filter_)
    return JSONResponse({"items": [views.run_of(row) for row in page.rows], "nextCursor": cursor})


@router.get("/{job}", openapi_extra=described(query=("asOf",), headers=READ_HEADERS))
async def read(request: Request, job: str) -> Response:
    """A job, or with `asOf` the job as it was at an instant of the past."""
    job_id = job_id_in(request, job)
    at_us = as_of(request)
    row = (await history_as_of(request, job_id, at_us)).job(job_id)
    if row is None or row.status == "deleted":
        then = "" if at_us is None else f" at {instant_text(at_us)}"
        raise Denied(UNKNOWN_JOB, f"there {'is' if at_us is None else 'was'} no job {job_id}{then}")
    body = {**views.job_of(row), "next": _next_text(request, row, 3, at_us)}
    if at_us is not None:
        body["asOf"] = instant_text(at_us)
    return JSONResponse(body, headers={"ETag": f'"{row.version}"'})


@router.put(
    "/{job}",
    openapi_extra=described(JobRequest, query=("validateOnly",), headers=("If-Match",)),
)
async def replace(request: Request, job: str) -> Response:
    """Replace a job's definition, or create it."""
    job_id = job_id_in(request, job)
    raw = _object(await read_json(request))
    _same_name(raw, job_id)
    definition = _checked(request, job_id, raw)
    await caught_up(request)
    row = context_of(request).backend.queries.job(job_id)
    if row is None or row.status == "deleted":
        if is_dry(request):
            return JSONResponse(_written(request, job_id, 0, definition))
        reply = await context_of(request).backend.submit(
            CreateJob(
                command_id=command_id(),
                principal=principal_of(request).name,
                job_id=job_id,
                definition=definition,
            )
        )
        if reply.code != JOB_EXISTS.slug:
            accepted(reply)
            body = _written(request, job_id, reply.version, definition)
            return written(body, reply, status=201, version=reply.version)
        # It was created after what the history shows.
        await caught_up_to(request, reply.partition, reply.seq)
        row = await job_row(request, job_id)
    return await _update(request, row, definition)


@router.patch(
    "/{job}",
    openapi_extra=described(
        JobPatch, media_types=PATCH_TYPES, query=("validateOnly",), headers=("If-Match",)
    ),
)
async def patch(request: Request, job: str) -> Response:
    """Change some fields (JSON Merge Patch, RFC 7396)."""
    row = await job_row(request, job_id_in(request, job))
    before = spec_of(stored_definition(row.definition))
    change = canonical_patch(await read_json(request, PATCH_TYPES), before)
    merged = merge_patch.merge(cast("Json", before), change)
    return await _update(request, row, _checked(request, row.job_id, _object(merged)))


@router.delete(
    "/{job}",
    openapi_extra=described(query=("cancelRunning", "validateOnly"), headers=("If-Match",)),
)
async def delete(request: Request, job: str) -> Response:
    """Delete a job; running attempts go on unless `cancelRunning` is given."""
    job_id = job_id_in(request, job)
    _match(request, await job_row(request, job_id))
    reply = await decided(
        request,
        DeleteJob(
            command_id=command_id(),
            principal=principal_of(request).name,
            job_id=job_id,
            if_version=if_version(request),
            cancel_running=flag_in(request, "cancelRunning"),
        ),
    )
    return written(views.job_head(job_id, "deleted", reply.version), reply)


async def _update(request: Request, row: JobRow, definition: JobDefinition) -> Response:
    _match(request, row)
    if is_dry(request):
        return JSONResponse(_written(request, row.job_id, row.version, definition))
    reply = await decided(
        request,
        UpdateJob(
            command_id=command_id(),
            principal=principal_of(request).name,
            job_id=row.job_id,
            definition=definition,
            if_version=if_version(request),
        ),
    )
    body = _written(request, row.job_id, reply.version, definition)
    return written({**body, "changed": reply.changed}, reply, version=reply.version)


def _match(request: Request, row: JobRow) -> None:
    """412 for a tag that can match no version; the scheduler judges the others."""
    if if_version(request) == -1:
        raise Denied(
            VERSION_MISMATCH,
            f'If-Match is {request.headers["if-match"]}, the job\'s tag is "{row.version}"',
            headers={"ETag": f'"{row.version}"'},
        )


def _checked(request: Request, job_id: JobId, raw: dict[str, Json]) -> JobDefinition:
    context = context_of(request)
    spec = read_spec(raw)
    definition = definition_of(spec, context.zones)
    zones = context.zones.with_zone(definition.schedule.timezone)
    faults = faults_of(definition, job_id, context.backend.now_us(), zones)
    if faults:
        raise Refused(faults)
    return definition


def _written(
    request: Request, job_id: JobId, version: int, definition: JobDefinition
) -> dict[str, Json]:
    slots = next_slots(request, job_id, definition, 3)
    return views.written_job(job_id, version, definition, slots)


def _next_text(
    request: Request, row: JobRow, count: int = 1, after_us: int | None = None
) -> list[Json]:
    if row.status != "active":
        return []
    slots = next_slots(request, row.job_id, stored_definition(row.definition), count, after_us)
    return [instant_text(slot_us) for slot_us in slots]


def _object(raw: Json) -> dict[str, Json]:
    if not isinstance(raw, dict):
        raise Refused([Fault(pointer="", detail="is no object")])
    return dict(raw)


def _same_name(raw: dict[str, Json], job_id: JobId) -> None:
    """A body may repeat the name of its path, not contradict it."""
    name, whole = raw.pop("name", None), raw.pop("id", None)
    if name not in (None, job_id.partition(".")[2]) or whole not in (None, job_id):
        detail = f"the path names {job_id}; leave name and id out of the body"
        raise Refused([Fault(pointer="/name", detail=detail)])


def _us(text: str | None) -> int | None:
    return None if text is None else parse_instant(text)
