"""Values of any schema: by Hypothesis, and to and from what fastavro takes."""

import enum
import io
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, assert_never, cast

import fastavro
import msgspec
from hypothesis import strategies as st

from horolog.schemas import codec, records
from horolog.schemas.catalog import avro_root
from horolog.schemas.index import INDEX
from horolog.schemas.model import (
    ArrayType,
    EnumType,
    MapType,
    OptionalType,
    Primitive,
    RecordType,
    Schema,
    short_name,
)

R = TypeVar("R", bound=msgspec.Struct)

_EDGES = sorted(
    {
        sign * (1 << bits) + step
        for bits in (0, 6, 7, 12, 13, 14, 20, 26, 27, 28, 31, 40, 41, 47, 48, 54, 55, 56, 62, 63)
        for sign in (1, -1)
        for step in (-1, 0, 1)
    }
)


def _integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << bits), (1 << bits) - 1
    edges = [edge for edge in _EDGES if low <= edge <= high]
    return st.sampled_from(edges) | st.integers(low, high)


def _primitives(schema: Primitive) -> st.SearchStrategy[Any]:
    match schema.name:
        case "boolean":
            return st.booleans()
        case "int":
            return _integers(31)
        case "long":
            return _integers(63)
        case "double":
            return st.floats(allow_nan=False)
        case "bytes":
            return st.binary(max_size=100)
        case "string":
            return st.text(max_size=80) | st.just("é" * 70)
        case _:
            assert_never(schema.name)


def plain_values(schema: Schema) -> st.SearchStrategy[Any]:
    """Values of a schema as fastavro takes them."""
    match schema:
        case Primitive():
            return _primitives(schema)
        case EnumType():
            return st.sampled_from(schema.symbols)
        case ArrayType():
            return st.lists(plain_values(schema.items), max_size=3)
        case MapType():
            # fastavro writes a map in its order, ours in that of the keys.
            entries = st.dictionaries(st.text(max_size=10), plain_values(schema.values), max_size=3)
            return entries.map(lambda entry: dict(sorted(entry.items())))
        case OptionalType():
            return st.none() | plain_values(schema.inner)
        case RecordType():
            return st.fixed_dictionaries(
                {field.name: plain_values(field.type) for field in schema.fields}
            )
        case _:
            assert_never(schema)


def to_record(schema: Schema, value: Any) -> Any:
    """What the generated classes make of a value as fastavro gives it."""
    match schema, value:
        case OptionalType(), None:
            return None
        case OptionalType(inner=inner), _:
            return to_record(inner, value)
        case EnumType(), str():
            return cast("type[enum.Enum]", _named(schema.full_name))(value)
        case ArrayType(), list():
            return tuple(to_record(schema.items, item) for item in _items(value))
        case MapType(), dict():
            entries = cast("dict[str, Any]", value)
            return {key: to_record(schema.values, item) for key, item in entries.items()}
        case RecordType(), dict():
            given = {f.name: to_record(f.type, value[f.name]) for f in schema.fields}
            return _named(schema.full_name)(**given)
        case _:
            return value


def _named(full_name: str) -> Any:
    return getattr(records, short_name(full_name))


def of(cls: type[R], value: Mapping[str, Any]) -> R:
    """Record of a class from a value as fastavro gives it."""
    return cast("R", to_record(codec.schema_of(cls), value))


def same(one: object, other: object) -> bool:
    """Equality in which 0.0 and -0.0 differ, as they do on the wire."""
    return repr(one) == repr(other)


def raw_schema(cls: type[msgspec.Struct]) -> Any:
    """The `.avsc` file of a record, as any Avro library reads it, logical types left out.

    fastavro turns them into datetimes, which do not reach as far as a long does.
    """
    place = INDEX[cls.__name__][0]
    text = (avro_root() / f"{place}.avsc").read_text(encoding="utf-8")
    return _without_logical(msgspec.json.decode(text))


def _without_logical(raw: Any) -> Any:
    if isinstance(raw, dict):
        entries = cast("dict[str, Any]", raw)
        return {k: _without_logical(v) for k, v in entries.items() if k != "logicalType"}
    if isinstance(raw, list):
        return [_without_logical(item) for item in _items(raw)]
    return raw


def _items(value: Any) -> list[Any]:
    return [*value]


# fastavro types its file argument as IO without saying of what.
_avro: Any = fastavro
_write: Callable[..., None] = _avro.schemaless_writer
_read: Callable[..., Any] = _avro.schemaless_reader


def oracle_bytes(schema: Any, value: Any) -> bytes:
    """What fastavro writes for a value."""
    out = io.BytesIO()
    _write(out, schema, value)
    return out.getvalue()


def oracle_value(written: Any, data: bytes, read: Any = None) -> tuple[Any, bytes]:
    """What fastavro reads, and the bytes it left."""
    rest = io.BytesIO(data)
    return _read(rest, written, read), rest.read()
