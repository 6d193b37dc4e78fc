"""A client that holds every answer it sees against the API's document."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import httpx2
import jsonschema_rs

from tests.acceptance.server import ROOT

Object = dict[str, Any]


def client(url: str, **headers: str) -> httpx2.Client:
    """A client whose answers conform: AssertionError for one that does not."""
    return httpx2.Client(
        base_url=url,
        timeout=30,
        trust_env=False,
        headers=headers,
        event_hooks={"response": [conforms]},
    )


def conforms(response: httpx2.Response) -> None:
    """Assert that an answer is one of those the document has for its route: status, type, headers,
    and a body with no field that the document does not know.
    """
    found = operation(response.request.method, response.request.url.path)
    if found is None:
        # The document itself, or a path that is none.
        if response.request.url.path == "/openapi.json":
            return
        assert response.status_code in (400, 403, 404, 405), response
        return
    name, answers = found
    answer = answers.get(str(response.status_code)) or answers["default"]
    where = f"{name}: {response.status_code}"
    content = answer.get("content", {})
    media_type = response.headers.get("content-type")
    assert (media_type is None and not content) or media_type in content, f"{where}: {media_type}"
    given = {header.lower() for header in answer.get("headers", ())}
    ours = {"etag", "retry-after"} | {each for each in response.headers if "horolog" in each}
    assert ours & set(response.headers) <= given, f"{where}: {ours - given}"
    if media_type is not None and "json" in media_type:
        response.read()
        schema = {**content[media_type]["schema"], "components": closed()["components"]}
        validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        wrong = [
            f"{one.instance_path}: {one.message}" for one in validator.iter_errors(response.json())
        ]
        assert not wrong, f"{where}: {wrong}"


def operation(method: str, path: str) -> tuple[str, Mapping[str, Object]] | None:
    """Name and answers of the route of a request; the first that fits, as in the app."""
    for pattern, methods in _routes():
        if method.lower() in methods and pattern.fullmatch(path):
            one = methods[method.lower()]
            return str(one["operationId"]), one["responses"]
    return None


@cache
def closed() -> Object:
    """The document, with every named object closed: a field it does not know is drift. To clients
    they are open, so that a later release may add fields.
    """
    document = cast("Object", json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8")))
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document


@cache
def _routes() -> list[tuple[re.Pattern[str], Object]]:
    return [
        (
            re.compile(
                re.sub(r"\{worker\}", ".+", path).replace("{", "(?P<").replace("}", ">[^/]+)")
            ),
            methods,
        )
        for path, methods in closed()["paths"].items()
    ]
