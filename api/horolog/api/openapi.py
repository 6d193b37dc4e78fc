"""What OpenAPI says of a route beyond its path: body, parameters, problems.

Routes read bodies and parameters themselves, so that each mistake is named by pointer and near
name; what they read is declared here once, and `check_parameters` refuses all else.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request

from horolog.api import contract, problems
from horolog.api.definition_models import JobPatch, JobRequest, NamedJobRequest
from horolog.api.faults import Fault, Refused
from horolog.api.json_values import Json
from horolog.api.limits import NEXT_DEFAULT, NEXT_MAX, PAGE_DEFAULT, PAGE_MAX, PREFER_WAIT_MAX_S
from horolog.api.requests import (
    BackfillRequest,
    CancelRequest,
    CompleteRequest,
    DeadRunsRequest,
    ExplainRequest,
    HeartbeatsRequest,
    LeaseProof,
    LeaseRequest,
    PauseRequest,
    TenantRequest,
    TriggerRequest,
)

Object = dict[str, Json]

OUTPUT_BODY: Final[Object] = {
    "requestBody": {"required": True, "content": {"application/octet-stream": {}}}
}
"""Of the route that takes what an attempt prints."""

BODIES: Final[tuple[type[BaseModel], ...]] = (
    BackfillRequest,
    CancelRequest,
    CompleteRequest,
    DeadRunsRequest,
    ExplainRequest,
    HeartbeatsRequest,
    JobPatch,
    JobRequest,
    LeaseProof,
    LeaseRequest,
    NamedJobRequest,
    PauseRequest,
    TenantRequest,
    TriggerRequest,
)
"""Models of bodies that routes name."""

_TEXT: Final[Object] = {"type": "string"}
_EITHER: Final[Object] = {"anyOf": [{"type": "boolean"}, {"type": "integer", "enum": [0, 1]}]}
_FLAG: Final[Object] = {**_EITHER, "default": False}
_INSTANT: Final[Object] = {"type": "string", "format": "date-time"}
_TEXTS: Final[Object] = {"type": "array", "items": {"type": "string"}}
_NUMBER: Final[Object] = {"type": "integer", "minimum": 0}


def _count(default: int) -> Object:
    """Of things to give. Without a maximum: more than the most is clamped, not refused."""
    return {"type": "integer", "minimum": 1, "default": default}


_QUERY: Final[Mapping[str, tuple[Object, str]]] = {
    "after": (_NUMBER, "`nextAfter` of the page before: a `seq` of the ledger partition."),
    "at": (_INSTANT, "The slot, or an instant near it; absent: the latest."),
    "asOf": (_INSTANT, "As it was at this instant of the past."),
    "attempt": (_NUMBER, "Number of the attempt."),
    "cancelRunning": (_FLAG, "Whether open runs are cancelled too."),
    "count": (_count(NEXT_DEFAULT), f"How many slots; more than {NEXT_MAX} is clamped."),
    "cursor": (_TEXT, "`nextCursor` of the page before."),
    "fencingToken": (_NUMBER, "As the lease had it."),
    "follow": (_FLAG, "Whether to wait for more until the run has ended."),
    "from": (_INSTANT, "Begin, inclusive."),
    "label": (_TEXTS, "`KEY=VALUE` that the jobs have; several: all of them."),
    "last": (_FLAG, "Whether nothing follows."),
    "limit": (_count(PAGE_DEFAULT), f"Rows a page; more than {PAGE_MAX} is clamped."),
    "offset": (_NUMBER, "Bytes of the attempt's output before this piece."),
    "paused": (_EITHER, "Only paused jobs, or only others."),
    "pool": (_TEXT, "Only jobs of this pool of workers."),
    "q": (_TEXT, "Text that the job's name has."),
    "status": (_TEXTS, "Only runs of these statuses, also separated by commas."),
    "tenant": (_TEXT, "Only of this tenant; `*`: of all the caller may see."),
    "to": (_INSTANT, "End, exclusive."),
    "validateOnly": (_FLAG, "Only check, and show what would be."),
}

_HEADERS: Final[Mapping[str, tuple[Object, str]]] = {
    "Horolog-Position": (_TEXT, "Of a write: the answer knows of it."),
    "Idempotency-Key": (_TEXT, "The same key again gets the same answer."),
    "If-Match": (_TEXT, "Its tag; 412 if it has another by now."),
    "Last-Event-ID": (_TEXT, "ID of the last event received: the stream goes on after it."),
    "Prefer": (_TEXT, f"`wait=20`: seconds to wait for a run, at most {PREFER_WAIT_MAX_S:.0f}."),
}


READ_HEADERS: Final = ("Horolog-Position",)
"""What every read of the history takes."""


def described(
    body: type[BaseModel] | None = None,
    *,
    optional: bool = False,
    media_types: Sequence[str] = ("application/json",),
    query: Sequence[str] = (),
    headers: Sequence[str] = (),
) -> Object:
    """The `openapi_extra` of a route: the model of its body, and whether it may be left out; the
    names of its parameters. KeyError for a parameter that has no description.
    """
    made: Object = {
        "parameters": [
            *(_parameter("query", name, *_QUERY[name]) for name in query),
            *(_parameter("header", name, *_HEADERS[name]) for name in headers),
        ]
    }
    if body is not None:
        schema: Object = {"$ref": contract.REF.format(model=body.__name__)}
        made["requestBody"] = {
            "required": not optional,
            "content": {media_type: {"schema": schema} for media_type in media_types},
        }
    return made


def operation_id(route: APIRoute) -> str:
    """Name of an operation, as clients made from the document call it: `jobs_trigger`."""
    return f"{route.tags[0]}_{route.name}"


def check_parameters(request: Request) -> None:
    """Refuse what a described route does not name: a misspelt filter would show too much. Routes
    that are not described, as those of health, are asked by probes that add what they like.
    """
    route = cast("APIRoute", request.scope["route"])
    if route.openapi_extra is None:
        return
    known = query_names(route)
    for name in request.query_params:
        if name not in known:
            right = f"there are {', '.join(known)}" if known else "there are none"
            raise Refused([Fault(pointer=f"?{name}", detail=f"{name!r} is no parameter; {right}")])


def query_names(route: APIRoute) -> list[str]:
    """Names of a route's parameters."""
    listed = cast("list[Object]", (route.openapi_extra or {}).get("parameters", []))
    return [str(each["name"]) for each in listed if each["in"] == "query"]


class DescribedApp(FastAPI):
    """An app whose document has the schemas that `described` names, and those of answers."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        if self.openapi_schema is None:
            _, definitions = models_json_schema(
                [(model, "validation") for model in BODIES], ref_template=contract.REF
            )
            made = super().openapi()
            made["components"] = {"schemas": {**definitions["$defs"], "Problem": problems.SCHEMA}}
            contract.add_answers(made)
        return super().openapi()


def _parameter(place: str, name: str, schema: Object, description: str) -> Object:
    return {"name": name, "in": place, "schema": schema, "description": description}
