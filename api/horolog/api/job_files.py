"""Reads job files: YAML 1.2, JSON or TOML, each in the strict sense.

YAML is a hostile language: an alias of 300 bytes unfolds to megabytes, `no` is false in its old
version, a name given twice is one of the two. So: version 1.2 only, no aliases and anchors, no
tags, no name twice, 20 levels, 1 MiB.
"""

import datetime as dt
import math
import tomllib
from collections.abc import Hashable, Iterator, Mapping
from pathlib import PurePath
from typing import Final, Protocol, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from horolog.api import json_values
from horolog.api.faults import Fault, Refused
from horolog.api.json_values import Json
from horolog.api.limits import FILE_BYTES_MAX, FILE_JOBS_MAX, YAML_DEPTH_MAX
from horolog.schemas.errors import MALFORMED, TOO_LARGE


class _Mark(Protocol):
    """Place in a file; both from 0."""

    line: int
    column: int


class _Yaml(Protocol):
    """What is used of ruamel.yaml, whose own types are partial."""

    def load(self, stream: str) -> object:
        """The value of the one document."""
        ...

    def parse(self, stream: str) -> Iterator[object]:
        """The events of the file."""
        ...


SUFFIXES: Final = (".yaml", ".yml", ".json", ".toml")


def decode(content: bytes, path: str) -> Json:
    """The value of a file by its suffix; YAML for any other. Raises Refused."""
    if len(content) > FILE_BYTES_MAX:
        detail = f"{path} has {len(content)} bytes, more than {FILE_BYTES_MAX}"
        raise Refused([Fault(pointer="", detail=detail, error=TOO_LARGE)])
    match PurePath(path).suffix:
        case ".json":
            return _json(content, path)
        case ".toml":
            return _toml(content, path)
        case _:
            return yaml_value(content, path)


def _malformed(path: str, why: str) -> Refused:
    return Refused([Fault(pointer="", detail=f"{path} {why}", error=MALFORMED)])


def _json(content: bytes, path: str) -> Json:
    try:
        return json_values.decode(content, YAML_DEPTH_MAX)
    except json_values.BadJson as error:
        raise _malformed(path, str(error)) from error


def _toml(content: bytes, path: str) -> Json:
    try:
        raw = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(path, f"is no TOML: {error}") from error
    return _plain(raw, path, 1)


def yaml_value(content: bytes, path: str) -> Json:
    """The one document of a YAML file; null for an empty file."""
    try:
        text = content.decode()
        _check_events(text, path)
        raw = _yaml().load(text)
    except UnicodeDecodeError as error:
        raise _malformed(path, f"is not UTF-8 at byte {error.start}") from error
    except MarkedYAMLError as error:
        why = str(getattr(error, "problem", None) or "it is malformed").splitlines()[0]
        at = _at(getattr(error, "problem_mark", None), path)
        raise _malformed(at, f"is no YAML 1.2: {why}") from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise _malformed(path, f"is no YAML 1.2: {error}") from error
    value = _plain(raw, path, 1)
    try:
        json_values.check(value)
    except json_values.BadJson as error:
        raise _malformed(path, str(error)) from error
    return value


def _check_events(text: str, path: str) -> None:
    """Refuse what unfolds, nests or surprises, before anything is built from it."""
    depth = documents = 0
    for event in _yaml().parse(text):
        at = _at(getattr(event, "start_mark", None), path)
        if isinstance(event, AliasEvent):
            raise _malformed(at, "has an alias (*name); write it out")
        if getattr(event, "anchor", None) is not None:
            raise _malformed(at, "has an anchor (&name); write it out")
        if getattr(event, "tag", None) is not None:
            raise _malformed(at, "has a tag (!name); plain values only")
        if isinstance(event, ScalarEvent) and getattr(event, "value", None) == "<<":
            raise _malformed(at, "merges with <<, which YAML 1.2 has not")
        if isinstance(event, DocumentStartEvent):
            documents += 1
            if getattr(event, "version", None) not in (None, (1, 2)):
                raise _malformed(at, "is of another version than YAML 1.2")
            if documents > 1:
                raise _malformed(at, "begins a second document; make it a file")
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            depth -= 1
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            depth += 1
            if depth > YAML_DEPTH_MAX:
                raise _malformed(at, f"nests deeper than {YAML_DEPTH_MAX} levels")


def _yaml() -> _Yaml:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 2)
    yaml.allow_duplicate_keys = False
    return cast("_Yaml", yaml)


def _at(mark: _Mark | None, path: str) -> str:
    return path if mark is None else f"{path}:{mark.line + 1}:{mark.column + 1}"


def _plain(value: object, path: str, depth: int) -> Json:
    """JSON of what a parser gave; its dates become the text they were written as."""
    if depth > YAML_DEPTH_MAX:
        raise _malformed(path, f"nests deeper than {YAML_DEPTH_MAX} levels")
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise _malformed(path, f"has the number {value}, which JSON does not know")
            return value
        case dt.datetime():
            return value.isoformat().replace("+00:00", "Z")
        case dt.date() | dt.time():
            return value.isoformat()
        case list():
            return [_plain(one, path, depth + 1) for one in cast("list[object]", value)]
        case dict():
            made: dict[str, Json] = {}
            for name, one in cast("Mapping[Hashable, object]", value).items():
                if not isinstance(name, str):
                    raise _malformed(path, f"has the name {name!r}, which is no string; quote it")
                made[name] = _plain(one, path, depth + 1)
            return made
        case _:
            raise _malformed(path, f"has a value of a kind that JSON does not know: {value!r}")


def jobs_of(content: bytes, path: str) -> tuple[str | None, dict[str, Json]]:
    """Tenant, if the file names one, and entries of a job file by name. Raises Refused.

    The entries are not read further: `definitions.read_spec` does, one by one, so that all that
    is wrong with a file can be told at once.
    """
    raw = decode(content, path)
    if not isinstance(raw, dict):
        raise _malformed(path, "is no object with a field jobs")
    unknown = sorted(set(raw) - {"jobs", "tenant", "$schema"})
    if unknown:
        raise _malformed(path, f"has the field {unknown[0]!r}; a job file has jobs and tenant")
    tenant, jobs = raw.get("tenant"), raw.get("jobs")
    if tenant is not None and not isinstance(tenant, str):
        raise _malformed(path, f"has the tenant {tenant!r}, which is no string")
    if not isinstance(jobs, dict):
        raise _malformed(path, "has no field jobs that is an object of jobs by name")
    if len(jobs) > FILE_JOBS_MAX:
        raise _malformed(path, f"has {len(jobs)} jobs, more than {FILE_JOBS_MAX}")
    return tenant, jobs
