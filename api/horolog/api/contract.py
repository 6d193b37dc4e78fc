"""What the document says of answers: the schema of each, its headers, the problems of its route.

Which problems a route may have follows from what it takes: a body, a cursor, a position, an ID.
"""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

from pydantic import TypeAdapter

from horolog.api import answers, problems
from horolog.api.json_values import Json
from horolog.api.metrics import CONTENT_TYPE as METRICS_TYPE
from horolog.schemas import errors
from horolog.schemas.errors import ERRORS, ErrorCode, Reaction

Object = dict[str, Json]
REF: Final = "#/components/schemas/{model}"

_JSON: Final = "application/json"


class Answer(NamedTuple):
    """One answer of a route that went well; `shape` None: no body, or one that is no JSON."""

    shape: object = None
    headers: tuple[str, ...] = ()
    media_type: str | None = _JSON
    """None: no body."""


_POSITION: Final = ("Horolog-Position",)
_TAG: Final = ("ETag",)
_WRITTEN: Final = ("ETag", "Horolog-Position")

_Answers = Mapping[int, Answer]

_TEXT: Final = Answer(media_type="text/plain; charset=utf-8")
_HEAD: Final = {200: Answer(answers.JobHead, _POSITION)}
_UPDATED: Final = Answer(answers.WrittenJob, _WRITTEN)
_CREATED: Final = {200: _UPDATED, 201: _UPDATED}
_EVENTS: Final = {200: Answer(answers.EventPage)}
_NAMED: Final = {200: Answer(answers.RunName), 202: Answer(answers.RunName, _POSITION)}
_DEAD: Final = {200: Answer(answers.DeadRunsAnswer)}

ANSWERS: Final[Mapping[tuple[str, str], _Answers]] = {
    ("post", "/v1/runs:lease"): {200: Answer(list[answers.LeaseAnswer], ("Horolog-Draining",))},
    ("post", "/v1/runs:heartbeat"): {200: Answer(answers.HeartbeatsAnswer)},
    ("post", "/v1/runs/{run}:heartbeat"): {200: Answer(answers.HeartbeatAnswer)},
    ("post", "/v1/runs/{run}:complete"): {200: Answer(answers.CompleteAnswer)},
    ("post", "/v1/runs/{run}/logs"): {204: Answer(media_type=None)},
    ("get", "/v1/runs/{run}/logs"): {200: _TEXT},
    ("get", "/v1/jobs/{job}/events"): _EVENTS,
    ("get", "/v1/runs/{run}/events"): _EVENTS,
    ("get", "/v1/events"): {200: Answer(media_type="text/event-stream; charset=utf-8")},
    ("post", "/v1/jobs"): _CREATED,
    ("get", "/v1/jobs"): {200: Answer(answers.JobPage)},
    ("post", "/v1/jobs/{job}:trigger"): {
        200: Answer(answers.TriggerAnswer),
        202: Answer(answers.TriggerAnswer, _POSITION),
    },
    ("post", "/v1/jobs/{job}:pause"): _HEAD,
    ("post", "/v1/jobs/{job}:resume"): _HEAD,
    ("post", "/v1/jobs/{job}:backfill"): {
        200: Answer(answers.BackfillAnswer),
        202: Answer(answers.BackfillAnswer, _POSITION),
    },
    ("get", "/v1/jobs/{job}/next"): {200: Answer(answers.UpcomingPage)},
    ("get", "/v1/jobs/{job}/slots"): {200: Answer(answers.SlotPage)},
    ("get", "/v1/jobs/{job}/versions"): {200: Answer(answers.VersionPage)},
    ("get", "/v1/jobs/{job}/why"): {200: Answer(answers.WhyAnswer)},
    ("get", "/v1/jobs/{job}/runs"): {200: Answer(answers.RunPage)},
    ("get", "/v1/jobs/{job}"): {200: Answer(answers.JobAnswer, _TAG)},
    ("put", "/v1/jobs/{job}"): _CREATED,
    ("patch", "/v1/jobs/{job}"): {200: _UPDATED},
    ("delete", "/v1/jobs/{job}"): _HEAD,
    ("post", "/v1/runs/{run}:cancel"): _NAMED,
    ("post", "/v1/runs/{run}:retry"): _NAMED,
    ("get", "/v1/runs/{run}"): {200: Answer(answers.RunDetailAnswer)},
    ("get", "/v1/dead-letters"): {200: Answer(answers.RunPage)},
    ("post", "/v1/dead-letters:redrive"): _DEAD,
    ("post", "/v1/dead-letters:discard"): _DEAD,
    ("get", "/v1/tenants"): {200: Answer(answers.TenantPage)},
    ("get", "/v1/tenants/{tenant}"): {200: Answer(answers.TenantAnswer, _TAG)},
    ("put", "/v1/tenants/{tenant}"): {200: Answer(answers.TenantAnswer, _TAG)},
    ("get", "/v1/workers"): {200: Answer(answers.WorkerPage)},
    ("post", "/v1/workers/{worker}:drain"): {200: Answer(answers.WorkerAnswer)},
    ("get", "/v1/projections"): {200: Answer(answers.ProjectionPage)},
    ("post", "/v1/projections/{name}:rebuild"): {200: Answer(answers.RebuiltAnswer)},
    ("post", "/v1/schedules:explain"): {200: Answer(answers.ExplainAnswer)},
    ("get", "/livez"): {200: Answer(answers.LiveAnswer)},
    ("get", "/readyz"): {200: Answer(answers.ReadyAnswer), 503: Answer(answers.ReadyAnswer)},
    ("get", "/metrics"): {200: Answer(media_type=METRICS_TYPE)},
    ("get", "/problems/{code}"): {200: Answer(media_type="text/html; charset=utf-8")},
}
"""Answers of each route, by status."""

_HEADERS: Final[Mapping[str, str]] = {
    "ETag": "Tag of what is answered, for `If-Match`.",
    "Horolog-Position": "Where the write stands; a read that sends it sees the write.",
    "Horolog-Draining": "`true`: the worker is to lease nothing more.",
    "Retry-After": "Seconds after which the same request may pass.",
}

_EVERY: Final = (
    errors.INVALID_FIELD,
    errors.UNAUTHENTICATED,
    errors.FORBIDDEN,
    errors.UNKNOWN_PATH,
    errors.WRONG_METHOD,
    errors.RATE_LIMITED,
    errors.SHUTTING_DOWN,
    errors.INTERNAL,
)
_OF_BODIES: Final = (
    errors.MALFORMED,
    errors.TOO_LARGE,
    errors.UNKNOWN_FIELD,
    errors.CONTRADICTION,
    errors.INVALID_SCHEDULE,
    errors.WRONG_MEDIA_TYPE,
    errors.MISSING_TOKEN,
)
_OF_WRITES: Final = tuple(
    one for one in ERRORS if one.reaction in (Reaction.REJECTED, Reaction.UNAVAILABLE)
)
_OF_IDS: Final = {
    "job": errors.UNKNOWN_JOB,
    "run": errors.UNKNOWN_RUN,
    "tenant": errors.UNKNOWN_TENANT,
    "worker": errors.UNKNOWN_WORKER,
    "name": errors.UNKNOWN_PROJECTION,
}


def add_answers(document: dict[str, Any]) -> None:
    """Put answers into a document that has paths, parameters and bodies. A route that `ANSWERS`
    does not know gets none, which a test refuses.
    """
    schemas, definitions = _schemas()
    document["components"]["schemas"] |= definitions
    document["components"]["headers"] = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in _HEADERS.items()
    }
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            known = ANSWERS.get((method, path), {})
            operation["responses"] = {
                **{str(status): _response(status, one, schemas) for status, one in known.items()},
                "default": _problem(sorted({one.number for one in _codes(method, operation)})),
            }


def _schemas() -> tuple[dict[int, Json], Object]:
    shapes = {
        id(one.shape): one.shape
        for of_route in ANSWERS.values()
        for one in of_route.values()
        if one.shape is not None
    }
    made, together = TypeAdapter.json_schemas(
        [
            (key, "validation", TypeAdapter[Any](cast("Any", shape)))
            for key, shape in shapes.items()
        ],
        ref_template=REF,
    )
    return {key: cast("Json", schema) for (key, _), schema in made.items()}, together["$defs"]


def _response(status: int, answer: Answer, schemas: Mapping[int, Json]) -> Object:
    made: Object = {"description": HTTPStatus(status).phrase}
    if answer.media_type is not None:
        schema: Json = {"type": "string"} if answer.shape is None else schemas[id(answer.shape)]
        made["content"] = {answer.media_type: {"schema": schema}}
    if answer.headers:
        made["headers"] = _headers(answer.headers)
    return made


def _problem(numbers: Iterable[str]) -> Object:
    """Of a problem, and which codes it may have."""
    codes: Object = {"properties": {"code": {"enum": list(numbers)}}}
    return {
        "description": "What is wrong, and what would be right.",
        "headers": _headers(("ETag", "Retry-After")),
        "content": {
            problems.CONTENT_TYPE: {
                "schema": {"allOf": [{"$ref": REF.format(model="Problem")}, codes]}
            }
        },
    }


def _headers(names: Iterable[str]) -> Object:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _codes(method: str, operation: Mapping[str, Any]) -> Iterator[ErrorCode]:
    yield from _EVERY
    if "requestBody" in operation:
        yield from _OF_BODIES
    if method != "get":
        yield from (one for one in _OF_WRITES if one.http_status is not None)
    for parameter in operation.get("parameters", ()):
        match parameter["in"], parameter["name"]:
            case "path", name if name in _OF_IDS:
                yield _OF_IDS[name]
            case "query", "cursor":
                yield errors.INVALID_CURSOR
            case "header", "Horolog-Position":
                yield errors.BEHIND
            case _:
                pass
