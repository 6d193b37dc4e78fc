"""The API's document against the last release's, and the detector that compares them."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from horolog.api.app import routed
from tests.openapi_changes import breaks

RELEASED = Path(__file__).parents[2] / "golden" / "openapi"
Document = dict[str, Any]


@pytest.mark.parametrize("path", sorted(RELEASED.glob("*.json")), ids=lambda path: path.stem)
def test_document_of_each_release_still_holds(path: Path) -> None:
    assert list(breaks(json.loads(path.read_text("utf-8")), routed().openapi())) == []


def document() -> Document:
    """A small API."""
    job: Document = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
    body: Document = {
        "type": "object",
        "properties": {"mode": {"enum": ["a", "b"], "type": "string"}, "job": {"$ref": "#/c/Job"}},
    }
    content: Document = {"application/json": {"schema": {"$ref": "#/c/Body"}}}
    answer: Document = {
        "application/json": {"schema": {"type": "array", "items": {"$ref": "#/c/Job"}}}
    }
    operation: Document = {
        "parameters": [{"in": "query", "name": "q"}],
        "requestBody": {"required": False, "content": content},
        "responses": {"200": {"headers": {"ETag": {}}, "content": answer}},
    }
    schemas = {"Job": job, "Body": body}
    return copy.deepcopy({"paths": {"/x": {"post": operation}}, "components": {"schemas": schemas}})


def operation_of(made: Document) -> Document:
    """Its only operation."""
    return cast("Document", made["paths"]["/x"]["post"])


def schema_of(made: Document, name: str) -> Document:
    """One of its schemas."""
    return cast("Document", made["components"]["schemas"][name])


Change = Callable[[Document], object]
BREAKING: dict[str, Change] = {
    "POST /x is gone": lambda made: made["paths"]["/x"].pop("post"),
    "parameter query q is gone": lambda made: operation_of(made)["parameters"].clear(),
    "parameter query q is required now": lambda made: operation_of(made)["parameters"][0].update(
        required=True
    ),
    "its body is required now": lambda made: operation_of(made)["requestBody"].update(
        required=True
    ),
    "its body is gone": lambda made: operation_of(made).pop("requestBody"),
    "request field mode is gone": lambda made: schema_of(made, "Body")["properties"].pop("mode"),
    "request field mode is required now": lambda made: schema_of(made, "Body").update(
        required=["mode"]
    ),
    "request field mode takes fewer values": lambda made: schema_of(made, "Body")["properties"][
        "mode"
    ]["enum"].pop(),
    "request field mode takes other types": lambda made: schema_of(made, "Body")["properties"][
        "mode"
    ].update(type="integer"),
    "200 is answered no more": lambda made: operation_of(made)["responses"].pop("200"),
    "200: header ETag is gone": lambda made: operation_of(made)["responses"]["200"].pop("headers"),
    "200: is application/json no more": lambda made: operation_of(made)["responses"]["200"].pop(
        "content"
    ),
    "200: answer field */id is gone": lambda made: schema_of(made, "Job")["properties"].pop("id"),
    "200: answer field */id may be absent now": lambda made: schema_of(made, "Job").pop("required"),
    "200: answer field */id has other types": lambda made: schema_of(made, "Job")["properties"][
        "id"
    ].update(type="integer"),
}


@pytest.mark.parametrize("found", BREAKING)
def test_change_that_breaks_a_client_is_named(found: str) -> None:
    changed = document()
    BREAKING[found](changed)
    assert any(text.endswith(found) for text in breaks(document(), changed))


def test_addition_that_breaks_nobody_is_not_named() -> None:
    changed = document()
    changed["paths"]["/y"] = changed["paths"]["/x"]
    operation_of(changed)["parameters"].append({"in": "query", "name": "new"})
    schema_of(changed, "Job")["properties"]["new"] = {"type": "string"}
    schema_of(changed, "Body")["properties"]["new"] = {"type": "string"}
    schema_of(changed, "Body")["properties"]["mode"]["enum"].append("c")
    assert list(breaks(document(), changed)) == []


def test_answer_field_inside_a_list_of_unions_is_compared() -> None:
    old = document()
    schema_of(old, "Job")["properties"]["at"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    changed = copy.deepcopy(old)
    schema_of(changed, "Job")["properties"]["at"] = {"type": "string"}
    assert not any("answer field" in text for text in breaks(old, changed))
    schema_of(changed, "Job")["properties"]["at"] = {}
    assert any("answer field */at has other types" in text for text in breaks(old, changed))
