"""Errors as answers: `application/problem+json` (RFC 9457), each with a page this server has."""

import html
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, cast

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from horolog.api.faults import Fault, Refused
from horolog.api.json_values import Json
from horolog.api.validation import faults_of
from horolog.schemas.errors import (
    ERRORS,
    FORBIDDEN,
    INTERNAL,
    INVALID_FIELD,
    MALFORMED,
    TOO_LARGE,
    UNAUTHENTICATED,
    UNKNOWN_PATH,
    WRONG_MEDIA_TYPE,
    WRONG_METHOD,
    ErrorCode,
    HorologError,
)

CONTENT_TYPE: Final = "application/problem+json"
_RETRY_AFTER_S: Final = "1"

SCHEMA: Final[Json] = {
    "type": "object",
    "description": "What is wrong, as RFC 9457 has it.",
    "required": ["type", "title", "status", "detail", "code", "slug", "retryable", "errors"],
    "properties": {
        "type": {"type": "string", "description": "Path of the error's page."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "Names field, value and what is right."},
        "code": {"type": "string", "description": "Stable code."},
        "slug": {"type": "string", "description": "The code as a word."},
        "hint": {"type": "string"},
        "retryable": {"type": "boolean", "description": "Whether the same again may pass."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "code", "detail"],
                "properties": {
                    "pointer": {
                        "type": "string",
                        "description": "JSON Pointer into the body; `?name`: a parameter.",
                    },
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                    "hint": {"type": "string"},
                },
            },
        },
    },
}
"""Of a problem's body, JSON Schema."""

_BY_NUMBER: Final = {one.number: one for one in ERRORS}
_BY_STATUS: Final = {
    400: MALFORMED,
    401: UNAUTHENTICATED,
    403: FORBIDDEN,
    404: UNKNOWN_PATH,
    405: WRONG_METHOD,
    413: TOO_LARGE,
    415: WRONG_MEDIA_TYPE,
}

_log = structlog.get_logger("horolog.api")


class Denied(HorologError):
    """A request is answered with an error; `headers` go with the answer."""

    def __init__(
        self,
        error: ErrorCode,
        detail: str,
        *,
        field: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(error, detail, field=field)
        self.headers = dict(headers or {})


def answer(
    error: ErrorCode,
    detail: str,
    *,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
    hint: str = "",
) -> Response:
    """The problem of an error."""
    status = error.http_status or 500
    body: dict[str, object] = {
        "type": f"/problems/{error.number}",
        "title": error.title,
        "status": status,
        "detail": detail,
        "code": error.number,
        "slug": error.slug,
        "hint": hint or error.hint,
        "retryable": error.transient,
        "errors": [
            {
                "pointer": fault.pointer,
                "code": fault.error.number,
                "detail": fault.detail,
                **({"hint": fault.hint} if fault.hint else {}),
            }
            for fault in faults
        ],
    }
    made = dict(headers or {})
    if error.transient and status in (429, 503):
        made.setdefault("Retry-After", _RETRY_AFTER_S)
    return JSONResponse(body, status, made, media_type=CONTENT_TYPE)


def of_faults(faults: Sequence[Fault]) -> Response:
    """The problem of a request that was refused for what it says."""
    first = faults[0]
    named = [f"{fault.pointer or 'the body'}: {fault.detail}" for fault in faults]
    return answer(first.error, "; ".join(named), faults=faults, hint=first.hint)


def install(app: FastAPI) -> None:
    """Answer every error of `app` with a problem."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HorologError, _horolog_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(Exception, _bug)


async def _refused(_: Request, error: Exception) -> Response:
    return of_faults(cast("Refused", error).faults)


async def _horolog_error(_: Request, error: Exception) -> Response:
    known = cast("HorologError", error)
    faults = (
        [Fault(pointer=known.field, detail=known.detail, error=known.error)] if known.field else []
    )
    headers = known.headers if isinstance(known, Denied) else {}
    return answer(known.error, known.detail, faults=faults, headers=headers)


async def _http_exception(request: Request, error: Exception) -> Response:
    known = cast("HTTPException", error)
    code = _BY_STATUS.get(known.status_code, INTERNAL if known.status_code >= 500 else MALFORMED)
    path = request.url.path
    if known.status_code == 404:
        detail = f"there is nothing at {path}"
    elif known.status_code == 405:
        allowed = (known.headers or {}).get("Allow", "")
        detail = f"{path} has no {request.method}; it has {allowed}"
    else:
        detail = known.detail or HTTPStatus(known.status_code).phrase
    return answer(code, detail, headers=known.headers)


async def _invalid_parameters(_: Request, error: Exception) -> Response:
    details = cast("Sequence[ErrorDetails]", cast("RequestValidationError", error).errors())
    faults = [
        Fault(pointer=f"?{'.'.join(str(part) for part in one['loc'][1:])}", detail=fault.detail)
        for one, fault in zip(details, faults_of(details, None, {}), strict=False)
    ]
    return of_faults(faults or [Fault(pointer="", detail="cannot be read", error=INVALID_FIELD)])


async def _bug(request: Request, error: Exception) -> Response:
    request_id = secrets.token_hex(8)
    await _log.aerror(
        "request_failed", request_id=request_id, path=request.url.path, exc_info=error
    )
    detail = f"the request met a mistake of the server, logged there as {request_id}"
    return answer(INTERNAL, detail)


def page(number: str) -> tuple[str, ErrorCode] | None:
    """The page of an error as HTML, written from the register; None: there is no such error."""
    error = _BY_NUMBER.get(number)
    if error is None:
        return None
    again = "may pass later" if error.transient else "is answered the same again"
    status = "" if error.http_status is None else f"<p>HTTP status {error.http_status}.</p>"
    return (
        f"<!doctype html><meta charset=utf-8><title>{error.number}</title>"
        f"<h1>{error.number}: {html.escape(error.title)}</h1>"
        f"<p><code>{error.slug}</code></p>{status}"
        f"<p>{html.escape(error.hint)}</p><p>The same request {again}.</p>"
    ), error
