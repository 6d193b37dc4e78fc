"""Bodies of requests: bounded as they come, of a type that is taken, then decoded."""

from collections.abc import Iterable, Sequence
from typing import Final

from starlette.requests import ClientDisconnect, Request

from horolog.api import json_values, merge_patch
from horolog.api.json_values import Json
from horolog.api.limits import BODY_BYTES_MAX
from horolog.api.problems import Denied
from horolog.schemas.errors import MALFORMED, TOO_LARGE, WRONG_MEDIA_TYPE

JSON_TYPES: Final = ("application/json",)
PATCH_TYPES: Final = (merge_patch.CONTENT_TYPE, "application/json")


async def read_bytes(request: Request, limit: int = BODY_BYTES_MAX) -> bytes:
    """The body, counted as it comes; too much is refused before it is read."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise Denied(
                    TOO_LARGE,
                    f"the body is larger than {limit} bytes",
                    headers={"Connection": "close"},
                )
            parts.append(part)
    except ClientDisconnect as gone:
        # Nobody reads the answer; it is no mistake of the server.
        raise Denied(MALFORMED, "the connection ended before the body did") from gone
    return b"".join(parts)


async def read_json(
    request: Request, types: Sequence[str] = JSON_TYPES, *, optional: bool = False
) -> Json:
    """The JSON value of the body; `optional`: an object without fields for an empty one.

    The type must be named: a browser sends a form or plain text to any host without asking, but
    JSON only with that host's leave.
    """
    body = await read_bytes(request)
    if not body and optional:
        return {}
    _check_type(request, types)
    if not body:
        raise Denied(MALFORMED, "the body is empty; send a JSON object")
    try:
        return json_values.decode(body)
    except json_values.BadJson as error:
        raise Denied(MALFORMED, f"the body {error}") from error


def _check_type(request: Request, types: Iterable[str]) -> None:
    sent = request.headers.get("content-type", "")
    media_type = sent.partition(";")[0].strip().lower()
    if media_type not in types:
        given = f"the body's type is {media_type!r}" if media_type else "the body has no type"
        raise Denied(WRONG_MEDIA_TYPE, f"{given}; send it as {' or '.join(types)}")
