"""Events of the ledger as the API shows them, and the positions by which they are asked for.

An event is shown as its schema has it, in the API's way: names in camel case, instants as ISO 8601
without their `_us`, bytes in base64, enums by their symbols. Durations stay in microseconds.
"""

import base64
import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, cast

import msgspec

from horolog.api.json_values import Json
from horolog.api.values import instant_text
from horolog.schemas.codec import schema_of
from horolog.schemas.model import OptionalType, Primitive, RecordType, Schema
from horolog.schemas.records import Event, JobId

_POSITIONS = re.compile(r"\d{1,6}:\d{1,18}(?:,\d{1,6}:\d{1,18})*")
_HIDDEN: Final = frozenset({"batch", "requested_by", "reply_to"})
_SUFFIX: Final = "_us"


class Shown(NamedTuple):
    """An event to show: its place, its job, and itself."""

    partition: int
    seq: int
    job_id: JobId | None
    """None: it belongs to no job, and is nobody's to see."""
    body: dict[str, Json]


def shown(partition: int, event: Event) -> Shown:
    """An event in the API's way."""
    body: dict[str, Json] = {"type": type(event).__name__, "position": f"{partition}:{event.seq}"}
    body |= _record(event, schema_of(type(event)))
    return Shown(partition, event.seq, getattr(event, "job_id", None), body)


def _record(record: msgspec.Struct, schema: RecordType) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for field in schema.fields:
        if field.name in _HIDDEN:
            continue
        value: object = getattr(record, field.name)
        is_instant = _is_instant(field.type) and field.name.endswith(_SUFFIX)
        name = field.name.removesuffix(_SUFFIX) if is_instant else field.name
        if is_instant and isinstance(value, int):
            made[_camel(name)] = instant_text(value)
        else:
            made[_camel(name)] = _plain(value)
    return made


def _is_instant(schema: Schema) -> bool:
    if isinstance(schema, OptionalType):
        return _is_instant(schema.inner)
    return isinstance(schema, Primitive) and schema.logical == "timestamp-micros"


def _plain(value: object) -> Json:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, msgspec.Struct):
        return {_camel(name): _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_plain(each) for each in cast("tuple[object, ...]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value)
        return {name: _plain(each) for name, each in pairs.items()}
    assert value is None or isinstance(value, str | int | float | bool), type(value).__name__
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def positions_text(positions: Mapping[int, int]) -> str:
    """Positions as an event ID of a stream: what was sent of every partition."""
    return ",".join(f"{partition}:{seq}" for partition, seq in sorted(positions.items()))


def positions_of(text: str, partitions: int) -> dict[int, int] | None:
    """Positions from an event ID; None if it is none of this log."""
    if _POSITIONS.fullmatch(text) is None:
        return None
    pairs = [part.partition(":") for part in text.split(",")]
    found = {int(partition): int(seq) for partition, _, seq in pairs}
    return found if max(found) < partitions else None
