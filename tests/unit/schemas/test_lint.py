"""The schemas keep our rules, and each rule finds what breaks it."""

import json
from typing import Any

import pytest

from horolog.schemas.catalog import avro_root, texts
from horolog.schemas.lint import faults_of

PRESENT = texts(avro_root())
MARK = json.loads(PRESENT["workers/Mark.avsc"])


def test_schemas_in_force_keep_every_rule() -> None:
    assert faults_of(PRESENT) == []


def broken(change: dict[str, Any], field: dict[str, Any] | None = None) -> list[str]:
    """Faults of a small good schema with a change."""
    raw = {**json.loads(json.dumps(MARK)), **change}
    if field is not None:
        raw["fields"] = [{**raw["fields"][0], **field}]
    return faults_of({"workers/Mark.avsc": json.dumps(raw)})


def test_small_schema_is_good_to_begin_with() -> None:
    assert broken({}) == []


RECURSIVE = ["null", "horolog.worker.v1.Mark"]
BAD_ENUM = {
    "type": "enum",
    "name": "X",
    "namespace": "horolog.type.v1",
    "doc": "d",
    "symbols": ["a"],
}


@pytest.mark.parametrize(
    "field, told",
    [
        ({"doc": ""}, "has no doc"),
        ({"name": "badName"}, "snake_case"),
        ({"type": ["null", "long"]}, "without the default null"),
        ({"type": ["long", "string"]}, "is a union"),
        ({"type": RECURSIVE, "default": None}, "contains itself"),
        ({"type": {"type": "array", "items": "null"}}, "take no byte"),
        ({"type": {"type": "long", "logicalType": "timestamp-micros"}}, "instant"),
        ({"type": BAD_ENUM}, "has no default"),
    ],
)
def test_field_that_breaks_a_rule_is_found(field: dict[str, Any], told: str) -> None:
    assert any(told in fault for fault in broken({}, field))


@pytest.mark.parametrize(
    "change, told",
    [
        ({"doc": ""}, "has no doc"),
        ({"namespace": "elsewhere"}, "namespace"),
        ({"name": "mark"}, "named after it"),
    ],
)
def test_record_that_breaks_a_rule_is_found(change: dict[str, Any], told: str) -> None:
    assert any(told in fault for fault in broken(change))


def test_nested_type_that_differs_between_files_is_found() -> None:
    changed = PRESENT["commands/UpdateJob.avsc"].replace('"default": "UTC"', '"default": "GMT"')
    found = faults_of({**PRESENT, "commands/UpdateJob.avsc": changed})
    assert any("another type" in fault for fault in found)
