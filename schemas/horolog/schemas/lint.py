"""Rules that every schema of ours keeps, so that it can grow and no record can hurt a reader.

docs          each record, field and enum says what it is
namespaces    `horolog.{command,event,dispatch,worker,snapshot,type}.v1`, one a folder
names         records in CamelCase, fields in snake_case; the file is named after the record
optional      `["null", T]` with default null, and no other union: a union cannot grow
enums         have a default, or an old reader fails at a new symbol
recursion     none: a hostile record of depth 5,000 ends a reader (reliability page, S12)
empty items   none in arrays and maps: a few bytes would be millions of them
instants      `timestamp-micros` on a long, and only in fields ending in `_us`
same types    a nested type is the same wherever it stands
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast

Node: TypeAlias = "str | list[Node] | dict[str, Node]"

NAMESPACES: Final = {
    "commands": "horolog.command.v1",
    "events": "horolog.event.v1",
    "dispatch": "horolog.dispatch.v1",
    "workers": "horolog.worker.v1",
    "snapshots": "horolog.snapshot.v1",
}
TYPES: Final = "horolog.type.v1"
_RECORD: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_FIELD: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def faults_of(texts: Mapping[str, str]) -> list[str]:
    """What is wrong with schema files, given by path `folder/Name.avsc`."""
    faults: list[str] = []
    seen: dict[str, str] = {}
    for path, text in texts.items():
        folder, _, file = path.partition("/")
        raw = cast("dict[str, Node]", json.loads(text))
        if f"{raw.get('name')}.avsc" != file:
            faults.append(
                f"{path}: the record is {raw.get('name')}, the file is not named after it"
            )
        if raw.get("namespace") != NAMESPACES.get(folder):
            faults.append(f"{path}: namespace {raw.get('namespace')}, not {NAMESPACES.get(folder)}")
        faults += (f"{path}: {fault}" for fault in _named(raw, (), str(raw.get("namespace"))))
        for name, shape in _nested(raw):
            if seen.setdefault(name, shape) != shape:
                faults.append(f"{path}: {name} is another type than in the files before")
    return faults


def _named(raw: dict[str, Node], outer: tuple[str, ...], namespace: str) -> Iterator[str]:
    """Faults of a record or enum, and of all within it."""
    name = str(raw.get("name"))
    if not str(raw.get("doc") or ""):
        yield f"{name} has no doc"
    if _RECORD.fullmatch(name) is None:
        yield f"{name} is not in CamelCase"
    own = str(raw.get("namespace") or namespace)
    if own != TYPES and own not in NAMESPACES.values():
        yield f"{name} has the namespace {own}"
    if raw.get("type") == "enum":
        if raw.get("default") not in cast("list[Node]", raw.get("symbols")):
            yield f"{name} has no default among its symbols"
        return
    full = f"{own}.{name}"
    for field in cast("list[dict[str, Node]]", raw.get("fields", [])):
        yield from _field(field, name, (*outer, full), own)


def _field(field: dict[str, Node], record: str, outer: tuple[str, ...], ns: str) -> Iterator[str]:
    name = str(field.get("name"))
    at = f"{record}.{name}"
    if not str(field.get("doc") or ""):
        yield f"{at} has no doc"
    if _FIELD.fullmatch(name) is None:
        yield f"{at} is not in snake_case"
    kind = field["type"]
    if isinstance(kind, list):
        if len(kind) != 2 or kind[0] != "null":
            yield f'{at} is a union that is not ["null", T]'
        if cast("object", field.get("default", "none")) is not None:
            yield f"{at} is optional without the default null"
        kind = kind[-1]
    yield from _type(kind, at, outer, ns)


def _type(kind: Node, at: str, outer: tuple[str, ...], ns: str) -> Iterator[str]:
    if isinstance(kind, list):
        yield f"{at} has a union where none may stand"
        return
    if isinstance(kind, str):
        if kind in outer or f"{ns}.{kind}" in outer:
            yield f"{at} contains itself"
        return
    logical = kind.get("logicalType")
    if logical is not None and (
        logical != "timestamp-micros" or kind.get("type") != "long" or not at.endswith("_us")
    ):
        yield f"{at} is an instant that is no timestamp-micros long in a field ending in _us"
    inner = kind.get("items", kind.get("values"))
    if kind.get("type") in ("array", "map") and inner is not None:
        if inner == "null" or (isinstance(inner, dict) and inner.get("fields") == []):
            yield f"{at} has items that take no byte"
        yield from _type(inner, at, outer, ns)
    elif kind.get("type") in ("record", "enum"):
        yield from _named(kind, outer, ns)


def _nested(raw: dict[str, Node]) -> Iterator[tuple[str, str]]:
    """Named types within a record, each with its text when references are spelled out."""
    found: dict[str, Node] = {}
    _collect(raw, found)
    for name, node in found.items():
        if name != f"{raw.get('namespace')}.{raw.get('name')}":
            yield name, json.dumps(_spelled(node, found), sort_keys=True)


def _collect(node: Node, found: dict[str, Node]) -> None:
    if isinstance(node, list):
        for each in node:
            _collect(each, found)
    elif isinstance(node, dict):
        if node.get("type") in ("record", "enum"):
            found[f"{node.get('namespace')}.{node.get('name')}"] = node
        for key, each in node.items():
            if key not in ("default", "symbols", "doc"):
                _collect(each, found)


def _spelled(node: Node, found: dict[str, Node]) -> Node:
    if isinstance(node, str):
        return _spelled(found[node], found) if node in found else node
    if isinstance(node, list):
        return [_spelled(each, found) for each in node]
    kept = {"name", "doc", "default", "symbols", "namespace"}
    return {key: each if key in kept else _spelled(each, found) for key, each in node.items()}
