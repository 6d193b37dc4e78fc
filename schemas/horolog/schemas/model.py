"""Typed form of the `.avsc` files: what the codec, the generator and the checks work on.

Only the part of Avro that the schema lint allows can be read: no recursion, and `["null", T]` as
the only union. Anything else raises `SchemaError`, which names the place.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias, assert_never, cast, get_args

import msgspec

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

PrimitiveName: TypeAlias = Literal["boolean", "int", "long", "double", "bytes", "string"]
PRIMITIVES: Final[frozenset[str]] = frozenset(get_args(PrimitiveName))

DEFAULT_MAX_BYTES: Final = 320 * 1024
"""Cap of one encoded record whose schema names none: a payload of 256 KiB and room beside it."""


class SchemaError(ValueError):
    """A schema is not one that this package can work on; the text names the place."""


class Absent(msgspec.Struct, frozen=True):
    """Stands where a field has no default; `None` is a default."""


ABSENT: Final = Absent()


class Primitive(msgspec.Struct, frozen=True, kw_only=True):
    """A primitive type; logical types say what it means and never change what is on the wire."""

    name: PrimitiveName
    logical: str | None = None


class EnumType(msgspec.Struct, frozen=True, kw_only=True):
    """An enum; `default` is what a reader takes for a symbol it does not know."""

    full_name: str
    doc: str
    symbols: tuple[str, ...]
    default: str | None


class ArrayType(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence of items."""

    items: "Schema"


class MapType(msgspec.Struct, frozen=True, kw_only=True):
    """String keys to values."""

    values: "Schema"


class OptionalType(msgspec.Struct, frozen=True, kw_only=True):
    """`["null", T]`."""

    inner: "Schema"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a record."""

    name: str
    type: "Schema"
    doc: str
    default: "Json | Absent"
    python_type: str | None
    """NewType of the field, or of the items of an array or map; from `horolog.type`."""


class RecordType(msgspec.Struct, frozen=True, kw_only=True):
    """A record; `union` and `max_bytes` from `horolog.union` and `horolog.max_bytes`."""

    full_name: str
    doc: str
    fields: tuple[Field, ...]
    union: str | None
    max_bytes: int


Schema: TypeAlias = Primitive | EnumType | ArrayType | MapType | OptionalType | RecordType
Named: TypeAlias = EnumType | RecordType


def short_name(full_name: str) -> str:
    """Name without its namespace; the name of the Python class."""
    return full_name.rpartition(".")[2]


def parse_text(text: str | bytes) -> RecordType:
    """Record of one `.avsc` file. Raises `SchemaError`."""
    try:
        raw = cast("Json", msgspec.json.decode(text))
    except msgspec.DecodeError as error:
        raise SchemaError(f"not JSON: {error}") from error
    return parse(raw)


def parse(raw: Json) -> RecordType:
    """Record of a decoded `.avsc` file. Raises `SchemaError`."""
    schema = _Parser().schema(raw, "", "")
    if not isinstance(schema, RecordType):
        raise SchemaError("a schema file holds one record")
    return schema


class _Parser:
    """Reads one file; a name is defined once and may be used after that."""

    def __init__(self) -> None:
        self._named: dict[str, Named] = {}
        self._open: set[str] = set()

    def schema(self, raw: Json, namespace: str, at: str) -> Schema:
        if isinstance(raw, str):
            return self._reference(raw, namespace, at)
        if isinstance(raw, list):
            if len(raw) != 2 or raw[0] != "null" or raw[1] == "null":
                raise SchemaError(f'{at}: the only union allowed is ["null", T], not {raw!r}')
            inner = self.schema(raw[1], namespace, at)
            if isinstance(inner, OptionalType):
                raise SchemaError(f"{at}: a union directly within a union")
            return OptionalType(inner=inner)
        if not isinstance(raw, dict):
            raise SchemaError(f"{at}: {raw!r} is no type")
        match raw.get("type"):
            case "record":
                return self._record(raw, namespace, at)
            case "enum":
                return self._enum(raw, namespace, at)
            case "array":
                return ArrayType(items=self.schema(raw.get("items"), namespace, f"{at}[]"))
            case "map":
                return MapType(values=self.schema(raw.get("values"), namespace, f"{at}{{}}"))
            case str(name) if name in PRIMITIVES:
                logical = _text(raw, "logicalType", at) if "logicalType" in raw else None
                return Primitive(name=cast("PrimitiveName", name), logical=logical)
            case other:
                raise SchemaError(f"{at}: type {other!r} is not allowed")

    def _reference(self, name: str, namespace: str, at: str) -> Schema:
        if name in PRIMITIVES:
            return Primitive(name=cast("PrimitiveName", name))
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self._open:
            raise SchemaError(f"{at}: {full} contains itself")
        if full not in self._named:
            raise SchemaError(f"{at}: {full} is not a type, or is used before it is defined")
        return self._named[full]

    def _define(self, raw: Mapping[str, Json], namespace: str, at: str) -> tuple[str, str]:
        """Full name and namespace of a definition (Avro 1.12, "Names")."""
        name = _text(raw, "name", at)
        if "." in name:
            full = name
        else:
            own = _text(raw, "namespace", at) if "namespace" in raw else namespace
            full = f"{own}.{name}" if own else name
        if full in self._named or full in self._open:
            raise SchemaError(f"{at}: {full} is defined twice")
        return full, full.rpartition(".")[0]

    def _enum(self, raw: Mapping[str, Json], namespace: str, at: str) -> EnumType:
        full, _ = self._define(raw, namespace, at)
        symbols = tuple(_as_text(s, f"{at} ({full}) symbol") for s in _list(raw, "symbols", at))
        default = _text(raw, "default", at) if "default" in raw else None
        if not symbols or len(set(symbols)) != len(symbols):
            raise SchemaError(f"{at}: {full} needs symbols, each once")
        if default is not None and default not in symbols:
            raise SchemaError(f"{at}: default {default!r} of {full} is none of its symbols")
        doc = _text(raw, "doc", at) if "doc" in raw else ""
        made = EnumType(full_name=full, doc=doc, symbols=symbols, default=default)
        self._named[full] = made
        return made

    def _record(self, raw: Mapping[str, Json], namespace: str, at: str) -> RecordType:
        full, own = self._define(raw, namespace, at)
        self._open.add(full)
        here = at or short_name(full)
        fields = tuple(self._field(f, own, here) for f in _list(raw, "fields", here))
        self._open.remove(full)
        if len({field.name for field in fields}) != len(fields):
            raise SchemaError(f"{here}: a field of {full} is defined twice")
        max_bytes = raw.get("horolog.max_bytes", DEFAULT_MAX_BYTES)
        if not isinstance(max_bytes, int) or max_bytes < 1:
            raise SchemaError(f"{here}: horolog.max_bytes is {max_bytes!r}, not a number of bytes")
        made = RecordType(
            full_name=full,
            doc=_text(raw, "doc", here) if "doc" in raw else "",
            fields=fields,
            union=_text(raw, "horolog.union", here) if "horolog.union" in raw else None,
            max_bytes=max_bytes,
        )
        self._named[full] = made
        return made

    def _field(self, raw: Json, namespace: str, at: str) -> Field:
        if not isinstance(raw, dict):
            raise SchemaError(f"{at}: a field is {raw!r}, not an object")
        name = _text(raw, "name", at)
        here = f"{at}.{name}"
        if "type" not in raw:
            raise SchemaError(f"{here}: no type")
        return Field(
            name=name,
            type=self.schema(raw["type"], namespace, here),
            doc=_text(raw, "doc", here) if "doc" in raw else "",
            default=raw.get("default", ABSENT),
            python_type=_text(raw, "horolog.type", here) if "horolog.type" in raw else None,
        )


def _as_text(value: Json, at: str) -> str:
    if not isinstance(value, str):
        raise SchemaError(f"{at} is {value!r}, not a text")
    return value


def _text(raw: Mapping[str, Json], key: str, at: str) -> str:
    return _as_text(raw.get(key), f"{at}: {key}")


def _list(raw: Mapping[str, Json], key: str, at: str) -> list[Json]:
    value = raw.get(key)
    if not isinstance(value, list):
        raise SchemaError(f"{at}: {key} is {value!r}, not a list")
    return value


def children(schema: Schema) -> tuple[Schema, ...]:
    """Types directly within a type."""
    match schema:
        case Primitive() | EnumType():
            return ()
        case ArrayType():
            return (schema.items,)
        case MapType():
            return (schema.values,)
        case OptionalType():
            return (schema.inner,)
        case RecordType():
            return tuple(field.type for field in schema.fields)
        case _:
            assert_never(schema)


def named_types(schema: Schema) -> Iterator[Named]:
    """Named types in and including `schema`, each once, those a type needs before it."""
    seen: set[str] = set()

    def visit(one: Schema) -> Iterator[Named]:
        if isinstance(one, EnumType | RecordType):
            if one.full_name in seen:
                return
            seen.add(one.full_name)
        for child in children(one):
            yield from visit(child)
        if isinstance(one, EnumType | RecordType):
            yield one

    yield from visit(schema)


def least_bytes(schema: Schema) -> int:
    """Fewest bytes that a value can take on the wire; bounds what a count can promise."""
    match schema:
        case Primitive():
            return 8 if schema.name == "double" else 1
        case EnumType() | ArrayType() | MapType() | OptionalType():
            return 1
        case RecordType():
            return sum(least_bytes(field.type) for field in schema.fields)
        case _:
            assert_never(schema)


def canonical_form(schema: Schema) -> str:
    """Parsing Canonical Form (Avro 1.12, "Transforming into Parsing Canonical Form")."""
    seen: set[str] = set()

    def quoted(text: str) -> str:
        return msgspec.json.encode(text).decode()

    def write(one: Schema) -> str:
        match one:
            case Primitive():
                return f'"{one.name}"'
            case ArrayType():
                return f'{{"type":"array","items":{write(one.items)}}}'
            case MapType():
                return f'{{"type":"map","values":{write(one.values)}}}'
            case OptionalType():
                return f'["null",{write(one.inner)}]'
            case EnumType() | RecordType():
                return write_named(one)
            case _:
                assert_never(one)

    def write_named(one: Named) -> str:
        name = quoted(one.full_name)
        if one.full_name in seen:
            return name
        seen.add(one.full_name)
        if isinstance(one, EnumType):
            symbols = ",".join(quoted(symbol) for symbol in one.symbols)
            return f'{{"name":{name},"type":"enum","symbols":[{symbols}]}}'
        fields = ",".join(
            f'{{"name":{quoted(field.name)},"type":{write(field.type)}}}' for field in one.fields
        )
        return f'{{"name":{name},"type":"record","fields":[{fields}]}}'

    return write(schema)


_CRC_EMPTY: Final = 0xC15D213AA4D7A795


def _crc_table() -> tuple[int, ...]:
    table: list[int] = []
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (_CRC_EMPTY if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_CRC_TABLE: Final = _crc_table()


def crc64(data: bytes) -> int:
    """CRC-64-AVRO (Avro 1.12, "Schema Fingerprints")."""
    crc = _CRC_EMPTY
    table = _CRC_TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


def fingerprint(schema: Schema) -> int:
    """CRC-64-AVRO of the canonical form: what names a schema in the single-object encoding."""
    return crc64(canonical_form(schema).encode())
