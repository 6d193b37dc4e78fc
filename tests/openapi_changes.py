"""What a change of the API's document breaks for clients of an earlier release.

Answers may gain fields; requests may gain fields that can be left out. All else breaks someone.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, cast

Object = Mapping[str, Any]
Place = tuple[str, ...]


class Field(NamedTuple):
    """What a document says at one place of a body."""

    types: frozenset[str]
    """Empty: any."""
    required: bool
    symbols: frozenset[str] | None
    """None: not an enumeration."""


def breaks(old: Object, new: Object) -> Iterator[str]:
    """What a client of the old document meets, one sentence each."""
    for path, methods in old["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            now = new["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{name} is gone"
            else:
                yield from (f"{name}: {text}" for text in _of_request(old, operation, new, now))
                yield from (f"{name}: {text}" for text in _of_answers(old, operation, new, now))


def _of_request(old: Object, before: Object, new: Object, now: Object) -> Iterator[str]:
    was, is_now = _parameters(before), _parameters(now)
    for name in was.keys() - is_now.keys():
        yield f"parameter {name} is gone"
    for name, is_required in is_now.items():
        if is_required and not was.get(name, False):
            yield f"parameter {name} is required now"
    if "requestBody" in now and "requestBody" not in before and now["requestBody"]["required"]:
        yield "a body is required now"
    if "requestBody" not in before:
        return
    if "requestBody" not in now:
        yield "its body is gone"
        return
    if now["requestBody"].get("required") and not before["requestBody"].get("required"):
        yield "its body is required now"
    for media_type, content in before["requestBody"]["content"].items():
        other = now["requestBody"]["content"].get(media_type)
        if other is None:
            yield f"a body of {media_type} is not taken any more"
            continue
        fields, later = _fields(old, content), _fields(new, other)
        for place, field in fields.items():
            yield from _narrowed("/".join(place), field, later.get(place))
        for place, field in later.items():
            was_required = place in fields and fields[place].required
            parent_is_new = place[:-1] not in fields and len(place) > 1
            if field.required and not was_required and not parent_is_new:
                yield f"request field {'/'.join(place)} is required now"


def _narrowed(name: str, before: Field, now: Field | None) -> Iterator[str]:
    if now is None:
        yield f"request field {name} is gone"
        return
    if now.types and not (before.types and before.types <= now.types):
        yield f"request field {name} takes other types"
    if now.symbols is not None and not (
        before.symbols is not None and before.symbols <= now.symbols
    ):
        yield f"request field {name} takes fewer values"


def _of_answers(old: Object, before: Object, new: Object, now: Object) -> Iterator[str]:
    for status, answer in before["responses"].items():
        other = now["responses"].get(status)
        if other is None:
            yield f"{status} is answered no more"
            continue
        for name in answer.get("headers", {}).keys() - other.get("headers", {}).keys():
            yield f"{status}: header {name} is gone"
        for media_type, content in answer.get("content", {}).items():
            if media_type not in other.get("content", {}):
                yield f"{status}: is {media_type} no more"
                continue
            later = _fields(new, other["content"][media_type])
            for place, field in _fields(old, content).items():
                name = "/".join(place)
                found = later.get(place)
                if found is None:
                    yield f"{status}: answer field {name} is gone"
                elif field.required and not found.required:
                    yield f"{status}: answer field {name} may be absent now"
                elif field.types and not (found.types and found.types <= field.types):
                    yield f"{status}: answer field {name} has other types"


def _parameters(operation: Object) -> dict[str, bool]:
    return {
        f"{one['in']} {one['name']}": bool(one.get("required"))
        for one in operation.get("parameters", ())
    }


def _fields(document: Object, content: Object) -> dict[Place, Field]:
    if "schema" not in content:
        return {}
    return dict(_walk(document, content["schema"], (), required=True, inside=()))


def _walk(
    document: Object, schema: Object, place: Place, *, required: bool, inside: Place
) -> Iterator[tuple[Place, Field]]:
    """Fields by place; `inside`: names of the schemas around, so that a recursive one ends."""
    options = list(_options(document, schema))
    types = [one["type"] for one in options if "type" in one]
    symbols = [one.get("enum") or ([one["const"]] if "const" in one else None) for one in options]
    closed = [frozenset(map(str, each)) for each in symbols if each is not None]
    if place:
        yield (
            place,
            Field(
                frozenset(types) if len(types) == len(options) else frozenset(),
                required,
                frozenset(chain.from_iterable(closed)) if len(closed) == len(options) else None,
            ),
        )
    for one in options:
        title = str(one.get("title", ""))
        if title and title in inside:
            continue
        around = (*inside, title) if one.get("properties") else inside
        for name, inner in one.get("properties", {}).items():
            is_required = name in one.get("required", ())
            yield from _walk(document, inner, (*place, name), required=is_required, inside=around)
        for key in ("items", "additionalProperties"):
            if isinstance(one.get(key), Mapping):
                inner = cast("Object", one[key])
                yield from _walk(document, inner, (*place, "*"), required=False, inside=around)


def _options(document: Object, schema: Object) -> Iterator[Object]:
    """What a value may be: references followed, alternatives and parts side by side."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        yield from _options(document, {"title": name, **document["components"]["schemas"][name]})
        return
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    if not parts:
        yield schema
    for part in parts:
        yield from _options(document, part)
