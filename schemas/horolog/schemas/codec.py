"""Records to Avro and back, by functions generated from the `.avsc` files at first use.

`encode` and `decode` handle bare Avro; what names the schema on the wire is `framing`'s. Every
refusal of bytes is `Malformed`, every refusal of a record `Unencodable`; both are `InvalidInput`
and name the field.
"""

import enum
import struct
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

import msgspec

from horolog.schemas import records, varint
from horolog.schemas.catalog import avro_root, read_one
from horolog.schemas.emit import Source, emit_decoder, emit_encoder
from horolog.schemas.errors import INVALID_FIELD, MALFORMED, TOO_LARGE, ErrorCode, InvalidInput
from horolog.schemas.index import INDEX
from horolog.schemas.model import EnumType, RecordType, SchemaError, named_types, short_name
from horolog.schemas.varint import Bad

R = TypeVar("R", bound=msgspec.Struct)

Encoder: TypeAlias = Callable[[msgspec.Struct, bytes], bytes]
"""Takes a record and the bytes to put before it."""
Decoder: TypeAlias = Callable[[bytes, int], tuple[msgspec.Struct, int]]
"""Takes data and a place; gives the record there and the place after it."""


class Malformed(InvalidInput):
    """Bytes that are no record of their schema. A request is answered 400, a record quarantined."""

    def __init__(
        self, error: ErrorCode, reason: str, *, record: str = "", field: str = "", offset: int = 0
    ) -> None:
        where = f"{record}.{field}" if field else record or "record"
        super().__init__(error, f"{where}, byte {offset}: {reason}", field=field)
        self.record = record
        self.offset = offset
        """Byte of the data at or after which it is wrong."""


class Unencodable(InvalidInput):
    """A record that is not of its own type, or above its cap; nothing was written."""


class TooLarge(Bad):
    """A record above its cap."""


def _wrong(value: object, expected: type) -> NoReturn:
    raise Bad(f"is {repr(value)[:80]}, not of type {expected.__name__}")


def _too_large(size: int, limit: int) -> NoReturn:
    raise TooLarge(f"{size} bytes encoded, at most {limit}")


def _no_branch(index: int) -> NoReturn:
    raise Bad(f"byte {index} where 0 (null) or 2 (a value) must be")


def _twice(key: str) -> NoReturn:
    raise Bad(f"key {key[:80]!r} twice in a map")


def _wrong_block(reached: int, expected: int) -> NoReturn:
    raise Bad(f"a block ends at byte {reached}, not {expected} as it said")


_NAMES: Final[Mapping[str, object]] = {
    "__builtins__": {
        "len": len,
        "map": map,
        "range": range,
        "sorted": sorted,
        "tuple": tuple,
        "bytes": bytes,
        "dict": dict,
        "bool": bool,
    },
    "EMPTY": b"",
    "NONE": b"\0",
    "NIL": (),
    "SOME": b"\2",
    "TRUE": b"\1",
    "FALSE": b"\0",
    "BOOLEAN": {0: False, 1: True},
    "join": b"".join,
    "pack_double": struct.Struct("<d").pack,
    "unpack_double": struct.Struct("<d").unpack_from,
    "unpack_instant": struct.Struct("<H6s").unpack_from,
    "StructError": struct.error,
    "wrong": _wrong,
    "too_large": _too_large,
    "no_branch": _no_branch,
    "twice": _twice,
    "wrong_block": _wrong_block,
    **{
        name: getattr(varint, name)
        for name in (
            "FIRST",
            "REST",
            "SMALL",
            "SIGNED",
            "NEXT",
            "LOW_PAIR",
            "PAIR",
            "SIX",
            "long_bytes",
            "int_bytes",
            "long_at",
            "int_at",
            "length_at",
            "count_at",
        )
    },
}

_FILE: Final = "<avro "
_FIELDS: Final[dict[str, list[str]]] = {}
"""Field of each line, by the file name under which the source was compiled."""


def _run(source: Source, label: str) -> dict[str, Any]:
    """Compile generated source; the names it defines."""
    file = f"{_FILE}{label}>"
    _FIELDS[file] = source.fields
    names: dict[str, Any] = dict(_NAMES)
    for name in source.classes:
        names[name] = getattr(records, name)
    # The source is made of the package's own schema files, never of anything from the wire.
    exec(compile(source.text(), file, "exec"), names)  # noqa: S102 - see above
    return names


# ---- building


def schema_of(cls: type[msgspec.Struct]) -> RecordType:
    """Schema in force of a record that stands alone. Raises `SchemaError` for any other class."""
    known = _SCHEMAS.get(cls)
    if known is not None:
        return known
    place = INDEX.get(cls.__name__)
    if place is None or getattr(records, cls.__name__, None) is not cls:
        raise SchemaError(f"{cls.__name__} has no schema file of its own")
    record = read_one(avro_root(), place[0])
    for named in named_types(record):
        made = getattr(records, short_name(named.full_name), None)
        fields = getattr(made, "__struct_fields__", None)
        if isinstance(named, RecordType) and fields != tuple(f.name for f in named.fields):
            raise SchemaError(f"{named.full_name} is not as in records.py: generate it again")
    _SCHEMAS[cls] = record
    return record


_SCHEMAS: Final[dict[type[msgspec.Struct], RecordType]] = {}
_ENCODERS: Final[dict[type[msgspec.Struct], Encoder]] = {}
_DECODERS: Final[dict[type[msgspec.Struct], tuple[Decoder, int]]] = {}


def encoder_of(cls: type[msgspec.Struct]) -> Encoder:
    """Encoder of a record that stands alone, made at first use."""
    source = Source()
    name = emit_encoder(source, schema_of(cls))
    names = _run(source, f"encode {cls.__name__}")
    for enum_class in [names[one] for one in source.classes]:
        if issubclass(enum_class, enum.Enum):
            names[f"{enum_class.__name__}_B"] = {
                member.value: varint.long_bytes(index) for index, member in enumerate(enum_class)
            }
    for number, (owner, field, encoder) in enumerate(source.defaults):
        value = _default(names[owner], field)
        names[f"DV{number}"] = value
        names[f"DB{number}"] = _default_bytes(value, names.get(encoder))
    made = cast("Encoder", names[name])
    _ENCODERS[cls] = made
    return made


def _default(cls: type[msgspec.Struct], field: str) -> object:
    """Object that a class puts where a field is left out."""
    defaults = cls.__struct_defaults__
    fields = cls.__struct_fields__[len(cls.__struct_fields__) - len(defaults) :]
    return dict(zip(fields, defaults, strict=True))[field]


def _default_bytes(value: object, encoder: Encoder | None) -> bytes:
    if encoder is not None:
        return encoder(cast("msgspec.Struct", value), b"")
    data = value.encode() if isinstance(value, str) else cast("bytes", value)
    return varint.long_bytes(len(data)) + data


def decoder_of(cls: type[msgspec.Struct], written: RecordType | None = None) -> Decoder:
    """Decoder into a record of what was written by its schema, or by an earlier version of it."""
    read = schema_of(cls)
    source = Source()
    name = emit_decoder(source, written or read, read)
    names = _run(source, f"decode {cls.__name__} {len(_FIELDS)}")
    for table, (old, new) in source.enums.items():
        names[f"{table}_E"] = {
            index << 1: _symbol(symbol, new) for index, symbol in enumerate(old.symbols)
        }
    return cast("Decoder", names[name])


def _symbol(symbol: str, read: EnumType | None) -> enum.Enum | None:
    """Member for a symbol as written; the default of the enum if the reader does not know it."""
    if read is None:
        return None
    cls = cast("type[enum.Enum]", getattr(records, short_name(read.full_name)))
    return cls(symbol if symbol in read.symbols else read.default)


def reader_of(cls: type[msgspec.Struct]) -> tuple[Decoder, int]:
    """Decoder and cap of a record that stands alone, made at first use."""
    known = _DECODERS.get(cls)
    if known is None:
        known = decoder_of(cls), schema_of(cls).max_bytes
        _DECODERS[cls] = known
    return known


# ---- use


def encode(record: msgspec.Struct) -> bytes:
    """Bare Avro of a record, in one way only: maps are sorted. Raises `Unencodable`."""
    return encode_after(record, b"")


def encode_after(record: msgspec.Struct, header: bytes) -> bytes:
    """The header, and the record behind it. Raises `Unencodable`."""
    cls = record.__class__
    encoder = _ENCODERS.get(cls) or encoder_of(cls)
    try:
        return encoder(record, header)
    except _ENCODE_ERRORS as error:
        raise _unencodable(record, error) from error


def decode(cls: type[R], data: bytes) -> R:
    """Record of bare Avro written by the schema in force. Raises `Malformed`."""
    decoder, limit = _DECODERS.get(cls) or reader_of(cls)
    return cast("R", decode_with(decoder, cls, data, 0, limit))


def decode_with(
    decoder: Decoder, cls: type[msgspec.Struct], data: bytes, start: int, max_bytes: int
) -> msgspec.Struct:
    """Record that fills `data` from `start` to its end. Raises `Malformed`."""
    if len(data) > max_bytes:
        reason = f"{len(data)} bytes, at most {max_bytes}"
        raise Malformed(TOO_LARGE, reason, record=cls.__name__, offset=max_bytes)
    try:
        record, end = decoder(data, start)
    except _DECODE_ERRORS as error:
        raise _malformed(cls, data, error) from error
    if end != len(data):
        if end < len(data):
            reason = f"{len(data) - end} bytes follow the record"
            raise Malformed(MALFORMED, reason, record=cls.__name__, offset=end)
        last = cls.__struct_fields__[-1]
        raise Malformed(MALFORMED, _ENDED, record=cls.__name__, field=last, offset=len(data))
    return record


# ---- refusals

_ENDED: Final = "the data ends within it"
_ENCODE_ERRORS: Final = (TypeError, AttributeError, ValueError, KeyError, struct.error)
_DECODE_ERRORS: Final = (IndexError, KeyError, ValueError, struct.error)


def _frames(error: Exception) -> list[tuple[list[str], int, dict[str, Any]]]:
    """Generated functions that the error passed: their fields, the line and the variables."""
    found: list[tuple[list[str], int, dict[str, Any]]] = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        fields = _FIELDS.get(trace.tb_frame.f_code.co_filename)
        if fields is not None:
            found.append((fields, trace.tb_lineno, trace.tb_frame.f_locals))
        trace = trace.tb_next
    return found


def _path(labels: list[str]) -> str:
    """`definition.target`, `grants[].run_id`."""
    return "".join(one if one[0] in "[{" else f".{one}" for one in labels if one).removeprefix(".")


def _malformed(cls: type[msgspec.Struct], data: bytes, error: Exception) -> Malformed:
    frames = _frames(error)
    labels = [fields[line] for fields, line, _ in frames]
    offset = min(int(frames[-1][2].get("i", 0)), len(data)) if frames else 0
    match error:
        case Bad():
            reason = str(error)
        case KeyError():
            reason = f"byte {error.args[0]} stands for no value of it"
        case UnicodeDecodeError():
            reason = f"not UTF-8: {error.reason}"
        case _:
            reason = _ENDED
            if frames and frames[-1][2]["i"] > len(data):
                labels = _before(frames)
    return Malformed(MALFORMED, reason, record=cls.__name__, field=_path(labels), offset=offset)


def _before(frames: list[tuple[list[str], int, dict[str, Any]]]) -> list[str]:
    """Labels of the field read last: it reached past the end, which the next one noticed."""
    labels = [fields[line] for fields, line, _ in frames]
    for depth in range(len(frames) - 1, -1, -1):
        fields, line, _ = frames[depth]
        here = fields[line]
        if here in {"[]", "{}"}:
            return labels[: depth + 1]
        while fields[line] == here:
            line -= 1
        if fields[line]:
            return [*labels[:depth], fields[line]]
    return labels


def _unencodable(record: msgspec.Struct, error: Exception) -> Unencodable:
    name = type(record).__name__
    if isinstance(error, TooLarge):
        return Unencodable(TOO_LARGE, f"{name}: {error}")
    frames = _frames(error)
    path = _path([fields[line] for fields, line, _ in frames])
    match error:
        case Bad():
            reason = str(error)
        case UnicodeEncodeError():
            reason = f"holds what UTF-8 cannot: {error.reason} at character {error.start}"
        case _:
            reason = _of_wrong_type(frames)
    return Unencodable(INVALID_FIELD, f"{name}.{path} {reason}", field=path)


def _of_wrong_type(frames: list[tuple[list[str], int, dict[str, Any]]]) -> str:
    fields, line, variables = frames[-1]
    owner = variables.get("r")
    if owner is None:
        return "holds a value of another type"
    value = getattr(owner, fields[line], None)
    expected = str(type(owner).__annotations__.get(fields[line], "")).replace(
        f"{records.__name__}.", ""
    )
    return f"is {repr(value)[:80]}, not of type {expected}"
