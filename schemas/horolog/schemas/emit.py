"""Writes the Python source that encodes and decodes one record.

What is written is straight-line code, one line or a few for each field, so that the line on which
it fails names the field: `Source.fields` keeps which. Failures therefore cost nothing to those
records that are sound. The names it uses are those of `varint`, shortened by `codec`.

Conventions in the source: `r` record, `h` bytes to put before it; `b` data, `i` place in it, `n`
its length. A place never goes back, and a text that reaches past the end leaves `i` there, so that
the next read, or the comparison with the length at the end, refuses it.
"""

from typing import Final, TypeAlias, assert_never

from horolog.schemas.model import (
    Absent,
    ArrayType,
    EnumType,
    Field,
    MapType,
    OptionalType,
    Primitive,
    RecordType,
    Schema,
    SchemaError,
    least_bytes,
    short_name,
)


class Source:
    """Source text under construction, and what it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.fields: list[str] = [""]
        """Field that each line belongs to, by line number; those start at 1."""
        self.classes: set[str] = set()
        """Classes of `records` it names."""
        self.enums: dict[str, tuple[EnumType, EnumType | None]] = {}
        """Enums it decodes by the table `<name>_E`: as written, and as read (None: dropped)."""
        self.defaults: list[tuple[str, str, str]] = []
        """Class, field and encoder of the defaults `DV<n>`, whose encoding is `DB<n>`."""
        self._names: dict[tuple[str, int, int], str] = {}

    def add(self, depth: int, text: str, field: str) -> None:
        """Append one line."""
        self.lines.append("    " * depth + text)
        self.fields.append(field)

    def name(self, kind: str, one: Schema, other: Schema | None = None) -> tuple[str, bool]:
        """Name of the function for a type, or a pair of them, and whether it is new."""
        key = (kind, id(one), id(other))
        known = self._names.get(key)
        if known is not None:
            return known, False
        made = f"{kind}_{len(self._names)}"
        self._names[key] = made
        return made, True

    def text(self) -> str:
        """The whole."""
        return "\n".join(self.lines) + "\n"


_INSTANT: Final = "timestamp-micros"
_ENUM_MAX: Final = 64
"""Symbols whose index takes one byte."""


# ---- encoding


def emit_encoder(source: Source, record: RecordType) -> str:
    """Write the function `(record, bytes before it) -> bytes`, and what it calls; its name."""
    name, new = source.name("encode", record)
    if not new:
        return name
    own = short_name(record.full_name)
    source.classes.add(own)
    rows = [(_encode_field(source, own, field), field.name) for field in record.fields]
    source.add(0, f"def {name}(r, h=EMPTY):", "")
    source.add(1, f"if r.__class__ is not {own}: wrong(r, {own})", "")
    source.add(1, "out = join((h,", "")
    for expression, field_name in rows:
        source.add(2, f"{expression},", field_name)
    source.add(1, "))", "")
    source.add(1, f"if len(out) > {record.max_bytes}: too_large(len(out), {record.max_bytes})", "")
    source.add(1, "return out", "")
    return name


def _encode_field(source: Source, owner: str, field: Field) -> str:
    """Expressions, parted by commas, that give the bytes of a field of `r`."""
    schema = field.type
    if isinstance(field.default, str | dict) and not isinstance(schema, EnumType | MapType):
        # Whoever leaves a field out has the class's own object in it, which is encoded once.
        encoder = _encoder(source, schema) if isinstance(schema, RecordType) else ""
        number = len(source.defaults)
        source.defaults.append((owner, field.name, encoder))
        folded = f"DB{number} if (v := r.{field.name}) is DV{number} else "
        return folded + _encode(source, schema, "v")
    match schema:
        case Primitive(name="string"):
            return f"{_LENGTH.format(f's := r.{field.name}.encode()')}, s"
        case Primitive(name="bytes"):
            return f"{_LENGTH.format(f's := r.{field.name}')}, {_BYTES}"
        case _:
            return _encode(source, schema, f"(v := r.{field.name})")


_LENGTH: Final = "SMALL[k] if (k := len({})) < 8192 else long_bytes(k)"
_BYTES: Final = "s if s.__class__ is bytes else wrong(s, bytes)"
_LONG: Final = (
    "FIRST[v & 8191] + REST[v >> 13] if {} > 8191 else SMALL[v] if v >= -8192 else long_bytes(v)"
)
_INT: Final = "SMALL[v] if -8192 <= {} < 8192 else int_bytes(v)"
_BOOLEAN: Final = "TRUE if {} is True else FALSE if v is False else wrong(v, bool)"


def _encode(source: Source, schema: Schema, value: str) -> str:
    """One expression for the bytes of `value`, which is `v` or assigns it where first evaluated."""
    match schema:
        case Primitive():
            return _encode_primitive(schema, value)
        case EnumType():
            own = short_name(schema.full_name)
            source.classes.add(own)
            return f"{own}_B[v._value_] if {value}.__class__ is {own} else wrong(v, {own})"
        case OptionalType(inner=inner):
            if isinstance(inner, ArrayType | MapType | RecordType):
                some = f"{_encoder(source, inner)}(v, SOME)"
            else:
                some = f"SOME + ({_encode(source, inner, 'v')})"
            return f"NONE if {value} is None else {some}"
        case ArrayType():
            # Cost: most arrays of most messages are empty; a call for each would cost more.
            return f"NONE if {value} is NIL else {_encoder(source, schema)}(v)"
        case MapType() | RecordType():
            return f"{_encoder(source, schema)}({value})"
        case _:
            assert_never(schema)


def _encode_primitive(schema: Primitive, value: str) -> str:
    match schema.name:
        case "boolean":
            return _BOOLEAN.format(value)
        case "int":
            return _INT.format(value)
        case "long":
            return _LONG.format(value)
        case "double":
            return f"pack_double({value})"
        case "string":
            return f"({_LENGTH.format(f's := {value}.encode()')}) + s"
        case "bytes":
            return f"({_LENGTH.format(f's := {value}')}) + ({_BYTES})"
        case _:
            assert_never(schema.name)


def _encoder(source: Source, schema: ArrayType | MapType | RecordType) -> str:
    match schema:
        case RecordType():
            return emit_encoder(source, schema)
        case ArrayType():
            return _array_encoder(source, schema)
        case MapType():
            return _map_encoder(source, schema)
        case _:
            assert_never(schema)


def _array_encoder(source: Source, schema: ArrayType) -> str:
    name, new = source.name("encode", schema)
    if not new:
        return name
    if isinstance(schema.items, ArrayType | MapType | RecordType):
        items = f"*map({_encoder(source, schema.items)}, a)"
    else:
        items = f"*[{_encode(source, schema.items, 'v')} for v in a]"
    source.add(0, f"def {name}(a, h=EMPTY):", "[]")
    source.add(1, "if a.__class__ is not tuple: wrong(a, tuple)", "")
    source.add(1, "if not a: return h + NONE", "")
    source.add(1, f"return join((h, {_LENGTH.format('a')}, {items}, NONE))", "[]")
    return name


def _map_encoder(source: Source, schema: MapType) -> str:
    name, new = source.name("encode", schema)
    if not new:
        return name
    key = f"({_LENGTH.format('s := key.encode()')}) + s"
    entry = f"{key} + ({_encode(source, schema.values, 'v')})"
    source.add(0, f"def {name}(m, h=EMPTY):", "{}")
    source.add(1, "if not m and m.__class__ is dict: return h + NONE", "")
    # Sorted, so that one value has one encoding whatever order it was built in.
    source.add(1, f"entries = [{entry} for key, v in sorted(m.items())]", "{}")
    source.add(1, f"return join((h, {_LENGTH.format('entries')}, *entries, NONE))", "{}")
    return name


# ---- decoding

Lines: TypeAlias = "list[tuple[int, str]]"
"""Lines of a function, with their depth in it."""


def emit_decoder(source: Source, written: RecordType, read: RecordType | None) -> str:
    """Write the function `(data, place) -> (record, place after it)`, and what it calls; its name.

    Fields are matched by name (Avro 1.12, "Schema Resolution"): those the reader lacks are read
    and dropped, those the writer lacks get the default of the class. `read` None: all is dropped.
    Raises `SchemaError` if the types do not fit; the compatibility check keeps such a pair from
    being released.
    """
    name, new = source.name("decode", written, read)
    if not new:
        return name
    wanted = {field.name: field for field in read.fields} if read is not None else {}
    rows: list[tuple[Lines, str]] = []
    for number, field in enumerate(written.fields):
        target = wanted.get(field.name)
        lines = _decode(source, field.type, None if target is None else target.type, f"v{number}")
        rows.append((lines, field.name))
    source.add(0, f"def {name}(b, i):", "")
    for lines, field_name in rows:
        for depth, text in lines:
            source.add(1 + depth, text, field_name)
    source.add(1, f"return {_construct(source, written, read)}, i", "")
    return name


def _construct(source: Source, written: RecordType, read: RecordType | None) -> str:
    if read is None:
        return "None"
    place = {field.name: number for number, field in enumerate(written.fields)}
    for field in read.fields:
        if field.name not in place and isinstance(field.default, Absent):
            raise SchemaError(f"{written.full_name} lacks {field.name}, which has no default")
    own = short_name(read.full_name)
    source.classes.add(own)
    given = [f"{f.name}=v{place[f.name]}" for f in read.fields if f.name in place]
    return f"{own}({', '.join(given)})"


def _decode(source: Source, written: Schema, read: Schema | None, v: str) -> Lines:
    """Lines that read a value into the variable `v` and move `i`."""
    if read is not None and type(read) is not type(written):
        raise SchemaError(f"{written!r} cannot be read as {read!r}")
    match written:
        case Primitive():
            if isinstance(read, Primitive) and read.name != written.name:
                raise SchemaError(f"{written.name} cannot be read as {read.name}")
            return _decode_primitive(written, v)
        case EnumType():
            if len(written.symbols) > _ENUM_MAX:
                raise SchemaError(f"{written.full_name} has more than {_ENUM_MAX} symbols")
            target = read if isinstance(read, EnumType) else None
            name = short_name(written.full_name) + ("" if target else "_dropped")
            source.enums[name] = written, target
            return [(0, f"{v} = {name}_E[b[i]]; i += 1")]
        case OptionalType():
            inner = read.inner if isinstance(read, OptionalType) else None
            some = _decode(source, written.inner, inner, v)
            return [
                (0, "x = b[i]; i += 1"),
                (0, f"if not x: {v} = None"),
                (0, "elif x == 2:"),
                *((depth + 1, text) for depth, text in some),
                (0, "else: no_branch(x)"),
            ]
        case RecordType():
            call = emit_decoder(source, written, read if isinstance(read, RecordType) else None)
            return [(0, f"{v}, i = {call}(b, i)")]
        case ArrayType():
            items = read.items if isinstance(read, ArrayType) else None
            call = _array_decoder(source, written, items)
            return [(0, f"if b[i]: {v}, i = {call}(b, i)"), (0, f"else: {v} = (); i += 1")]
        case MapType():
            values = read.values if isinstance(read, MapType) else None
            call = _map_decoder(source, written, values)
            return [(0, f"if b[i]: {v}, i = {call}(b, i)"), (0, f"else: {v} = {{}}; i += 1")]
        case _:
            assert_never(written)


def _decode_primitive(schema: Primitive, v: str) -> Lines:
    match schema.name:
        case "boolean":
            return [(0, f"{v} = BOOLEAN[b[i]]; i += 1")]
        case "double":
            return [(0, f"({v},) = unpack_double(b, i); i += 8")]
        case "string" | "bytes":
            decoded = ".decode()" if schema.name == "string" else ""
            return [
                (0, "j = i + NEXT[b[i]]"),
                (0, f"if j > i: {v} = b[i + 1 : j]{decoded}; i = j"),
                (0, f"else: i, j = length_at(b, i); {v} = b[i:j]{decoded}; i = j"),
            ]
        case "int":
            return [
                (0, "x = b[i]"),
                (0, f"if x < 128: {v} = SIGNED[x]; i += 1"),
                (0, f"else: {v}, i = int_at(b, i)"),
            ]
        case "long" if schema.logical == _INSTANT:
            return [
                (0, f"try: x, s = unpack_instant(b, i); {v} = LOW_PAIR[x] + SIX[s]"),
                (0, f"except StructError: {v} = -1"),
                (0, f"if {v} < 0: {v}, i = long_at(b, i)"),
                (0, "else: i += 8"),
            ]
        case "long":
            return [
                (0, "x = b[i]"),
                (0, f"if x < 128: {v} = SIGNED[x]; i += 1"),
                (0, f"else: {v}, i = long_at(b, i)"),
            ]
        case _:
            assert_never(schema.name)


def _array_decoder(source: Source, written: ArrayType, items: Schema | None) -> str:
    name, new = source.name("decode", written, items)
    if not new:
        return name
    item = _decode(source, written.items, items, "v")
    source.add(0, f"def {name}(b, i):", "[]")
    source.add(1, "out = []; add = out.append", "[]")
    _emit_blocks(source, least_bytes(written.items), [*item, (0, "add(v)")], "[]")
    source.add(1, "return tuple(out), i + 1", "[]")
    return name


def _map_decoder(source: Source, written: MapType, values: Schema | None) -> str:
    name, new = source.name("decode", written, values)
    if not new:
        return name
    key = _decode_primitive(Primitive(name="string"), "key")
    value = _decode(source, written.values, values, "v")
    source.add(0, f"def {name}(b, i):", "{}")
    source.add(1, "out = {}", "{}")
    once = [(0, "if key in out: twice(key)"), (0, "out[key] = v")]
    _emit_blocks(source, 1 + least_bytes(written.values), [*key, *value, *once], "{}")
    source.add(1, "return out, i + 1", "{}")
    return name


def _emit_blocks(source: Source, least: int, body: Lines, label: str) -> None:
    """Write the loop over the blocks of an array or map, up to its empty one."""
    source.add(1, "while b[i]:", label)
    source.add(2, "x = NEXT[b[i]]", label)
    # Cost: a count below 64 that fits without question; count_at looks closely at any other.
    source.add(2, f"if x and x * {least} <= len(b) - i: c = x - 1; i += 1; e = -1", label)
    source.add(2, f"else: c, i, e = count_at(b, i, {least})", label)
    source.add(2, "for _ in range(c):", label)
    for depth, text in body:
        source.add(3 + depth, text, label)
    source.add(2, "if e >= 0 and i != e: wrong_block(i, e)", label)
