"""From a decoded body to a model; what does not fit becomes faults with pointers and near names."""

import difflib
import typing
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from horolog.api.faults import Fault, Refused, shown
from horolog.api.json_values import Json, pointer
from horolog.api.limits import ERRORS_SHOWN_MAX
from horolog.schemas.errors import UNKNOWN_FIELD

Model = TypeVar("Model", bound=BaseModel)

_KINDS: Mapping[str, str] = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def read(model: type[Model], raw: Json, pointers: Mapping[str, str] | None = None) -> Model:
    """The model of a decoded value; raises Refused with all that is wrong.

    pointers: for values that were moved before, where they stood.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise Refused(faults_of(error.errors(), model, pointers or {})) from error


def faults_of(
    errors: Sequence[ErrorDetails], model: type[BaseModel] | None, pointers: Mapping[str, str]
) -> list[Fault]:
    """Faults of pydantic's errors, at most ERRORS_SHOWN_MAX."""
    return [_fault(error, model, pointers) for error in errors[:ERRORS_SHOWN_MAX]]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant, if one is near."""
    by_lower = {one.lower().replace("_", ""): one for one in known}
    found = difflib.get_close_matches(name.lower().replace("_", "").replace("-", ""), by_lower, 1)
    return by_lower[found[0]] if found else None


def unknown_field(at: str, name: str, known: Iterable[str]) -> Fault:
    """A field that is not known, and the one that was likely meant."""
    names = list(known)
    near = nearest(name, names)
    hint = f'did you mean "{near}"?' if near else f"known are {', '.join(sorted(names))}"
    return Fault(
        pointer=at, detail=f'there is no field "{name}"; {hint}', error=UNKNOWN_FIELD, hint=hint
    )


def _fault(
    error: ErrorDetails, model: type[BaseModel] | None, pointers: Mapping[str, str]
) -> Fault:
    path = tuple(part for part in error["loc"] if not _is_branch(part))
    at = _moved(pointer(path), pointers)
    kind = error["type"]
    if kind == "extra_forbidden" and path:
        known = _fields_at(model, path[:-1])
        return unknown_field(at, str(path[-1]), known)
    if kind == "missing":
        return Fault(pointer=at, detail="is missing")
    value = shown(error["input"])
    if kind in ("duration", "instant"):
        return Fault(pointer=at, detail=f"{value} {error['msg']}")
    if kind in _KINDS:
        hint = _unit_hint(model, path) if kind == "string_type" else ""
        return Fault(pointer=at, detail=f"{value} is not {_KINDS[kind]}{hint}")
    if kind == "string_pattern_mismatch":
        pattern = error.get("ctx", {}).get("pattern", "")
        return Fault(pointer=at, detail=f"{value} is not of the form {pattern}")
    if kind == "literal_error":
        expected = error.get("ctx", {}).get("expected", "")
        return Fault(pointer=at, detail=f"{value} is not one of {expected}")
    return Fault(pointer=at, detail=f"{value}: {error['msg'][:1].lower()}{error['msg'][1:]}")


def _is_branch(part: int | str) -> bool:
    """Whether pydantic put this into the path to name a branch of a union, or a dict's key."""
    return isinstance(part, str) and (part == "[key]" or part.startswith(("function-", "dict[")))


def _moved(at: str, pointers: Mapping[str, str]) -> str:
    for moved, original in pointers.items():
        if at == moved or at.startswith(f"{moved}/"):
            return original + at.removeprefix(moved)
    return at


def _unit_hint(model: type[BaseModel] | None, path: Sequence[str | int]) -> str:
    """A number where a duration belongs deserves the unit it lacks."""
    owner = _model_at(model, path[:-1])
    if owner is None:
        return ""
    for field in owner.model_fields.values():
        # Of one that may be absent, the annotation tells.
        told = f"{field.metadata} {field.annotation}".lower()
        if field.alias == path[-1] and "duration" in told:
            return ' with a unit, as "90s"'
    return ""


def _fields_at(model: type[BaseModel] | None, path: Sequence[str | int]) -> list[str]:
    owner = _model_at(model, path)
    if owner is None:
        return []
    return [field.alias or name for name, field in owner.model_fields.items()]


def _model_at(model: type[BaseModel] | None, path: Sequence[str | int]) -> type[BaseModel] | None:
    """The model whose fields stand at a path, where the path leads through models and dicts."""
    at: Any = model
    for part in path:
        if at is None:
            return None
        if isinstance(at, type) and issubclass(at, BaseModel):
            fields = {field.alias or name: field for name, field in at.model_fields.items()}
            at = _model_in(fields[str(part)].annotation) if part in fields else None
        elif typing.get_origin(at) is dict:
            at = _model_in(typing.get_args(at)[1])
        else:
            at = None
    return at if isinstance(at, type) and issubclass(at, BaseModel) else None


def _model_in(annotation: Any) -> Any:
    """The model, or dict of models, that an annotation holds."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _model_in(typing.get_args(annotation)[0])
    if origin is UnionType:
        for one in typing.get_args(annotation):
            found = _model_in(one)
            if found is not None:
                return found
        return None
    if origin is dict:
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None
