"""Writes `records.py` and `index.py` from the `.avsc` files.

    python -m horolog.schemas.generate            writes them
    python -m horolog.schemas.generate --check    exit 1 if they are not what would be written

The output is formatted as ruff would, so that nothing but the standard library is needed here.
"""

import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, assert_never

from horolog.schemas.catalog import SchemaFile, avro_root, read_all
from horolog.schemas.model import (
    ABSENT,
    ArrayType,
    EnumType,
    Field,
    Json,
    MapType,
    OptionalType,
    Primitive,
    RecordType,
    Schema,
    SchemaError,
    fingerprint,
    named_types,
    short_name,
)

NEW_TYPES: Final = {
    "JobId": ("str", "`<tenant>.<name>` of a job."),
    "RunId": ("str", "`<job ID>@<slot>`, or `<job ID>@manual-<key>`, of a run."),
    "TenantId": ("str", "Name of a tenant."),
}
"""NewTypes that `horolog.type` may name: what they stand for, and their meaning."""

_WIDTH: Final = 100
_PYTHON: Final = {
    "boolean": "bool",
    "int": "int",
    "long": "int",
    "double": "float",
    "bytes": "bytes",
    "string": "str",
}


def python_type(schema: Schema, new_type: str | None = None) -> str:
    """Annotation of a field of this type; `new_type` replaces the innermost primitive."""
    match schema:
        case Primitive():
            return new_type or _PYTHON[schema.name]
        case EnumType() | RecordType():
            return short_name(schema.full_name)
        case ArrayType():
            return f"tuple[{python_type(schema.items, new_type)}, ...]"
        case MapType():
            return f"Mapping[str, {python_type(schema.values, new_type)}]"
        case OptionalType():
            return f"{python_type(schema.inner, new_type)} | None"
        case _:
            assert_never(schema)


def python_value(schema: Schema, value: Json, new_type: str | None = None) -> str:
    """Expression for a default. Raises `SchemaError` if it is not of its type."""
    match schema, value:
        case OptionalType(), None:
            return "None"
        case EnumType(), str() if value in schema.symbols:
            return f"{short_name(schema.full_name)}.{value.upper()}"
        case ArrayType(), []:
            return "()"
        case MapType(), {} if not value:
            return "{}"
        case RecordType(), dict():
            return _record_value(schema, value)
        case Primitive(name="boolean"), bool():
            return repr(value)
        case Primitive(name="int" | "long"), int() if not isinstance(value, bool):
            return f"{value:_}" if abs(value) >= 10_000 else str(value)
        case Primitive(name="double"), int() | float() if not isinstance(value, bool):
            return repr(float(value))
        case Primitive(name="string"), str():
            return f"{new_type}({_quoted(value)})" if new_type else _quoted(value)
        case Primitive(name="bytes"), str():
            # Avro writes bytes in JSON as the text whose code points they are.
            return f"b{_quoted(value)}" if value.isascii() else repr(value.encode("latin-1"))
        case _:
            raise SchemaError(f"default {value!r} is none of {python_type(schema)}")


def _record_value(schema: RecordType, value: dict[str, Json]) -> str:
    names = {field.name for field in schema.fields}
    if unknown := value.keys() - names:
        raise SchemaError(f"default of {schema.full_name} names {sorted(unknown)}")
    given: list[str] = []
    for field in schema.fields:
        chosen = value.get(field.name, ABSENT)
        if chosen is ABSENT:
            chosen = field.default
        if chosen is ABSENT or not isinstance(chosen, _JSON):
            raise SchemaError(f"default of {schema.full_name} lacks {field.name}")
        if chosen != field.default:
            text = python_value(field.type, chosen, field.python_type)
            given.append(f"{field.name}={text}")
    return f"{short_name(schema.full_name)}({', '.join(given)})"


_JSON: Final = (dict, list, str, int, float, bool, type(None))


def _quoted(text: str) -> str:
    inner = repr(text)[1:-1]
    if repr(text).startswith("'"):
        inner = inner.replace('"', '\\"').replace("\\'", "'")
    return f'"{inner}"'


def _docstring(text: str, indent: str) -> list[str]:
    """Lines of a docstring, wrapped so that none is too long."""
    body = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if len(indent) + len(body) + 6 <= _WIDTH and not body.endswith('"'):
        return [f'{indent}"""{body}"""']
    # Narrower than need be, so that what is wrapped at all has two lines, as ruff wants.
    wrapped = textwrap.wrap(body, _WIDTH - len(indent) - 6)
    return [
        f'{indent}"""{wrapped[0]}',
        *(f"{indent}{line}" for line in wrapped[1:]),
        f'{indent}"""',
    ]


def _enum_class(schema: EnumType) -> list[str]:
    lines = [f"class {short_name(schema.full_name)}(Symbol):"]
    lines += _docstring(schema.doc, "    ")
    lines.append("")
    lines += [f'    {symbol.upper()} = "{symbol}"' for symbol in schema.symbols]
    return lines


def _record_class(schema: RecordType) -> list[str]:
    # Cost: a record is a tree of immutable values and can be in no cycle, so the collector need
    # not visit it; with 10 M of them alive that is what its passes would be spent on.
    bases = "msgspec.Struct, frozen=True, kw_only=True, gc=False"
    lines = [f"class {short_name(schema.full_name)}({bases}):"]
    lines += _docstring(schema.doc, "    ")
    for field in schema.fields:
        lines += ["", *_field(field, schema)]
    return lines


def _field(field: Field, owner: RecordType) -> list[str]:
    line = f"    {field.name}: {python_type(field.type, field.python_type)}"
    if isinstance(field.default, _JSON):
        try:
            line += f" = {python_value(field.type, field.default, field.python_type)}"
        except SchemaError as error:
            raise SchemaError(f"{owner.full_name}.{field.name}: {error}") from error
    return [line, *_docstring(field.doc, "    ")]


def _union(name: str, members: Sequence[str]) -> list[str]:
    line = f"{name}: TypeAlias = {' | '.join(members)}"
    if len(line) <= _WIDTH:
        return [line]
    return [
        f"{name}: TypeAlias = (",
        f"    {members[0]}",
        *(f"    | {m}" for m in members[1:]),
        ")",
    ]


def _listing(name: str, union: str, members: Sequence[str]) -> list[str]:
    head = f"{name}: Final[tuple[type[{union}], ...]] = ("
    return [head, *(f"    {member}," for member in members), ")"]


def _plural(name: str) -> str:
    upper = "".join(f"_{c}" if c.isupper() else c.upper() for c in name).lstrip("_")
    return upper[:-1] + "IES" if upper.endswith("Y") else upper + "S"


def _unions(schemas: Iterable[SchemaFile], named: Iterable[RecordType]) -> list[str]:
    members: dict[str, list[str]] = {}
    for record in named:
        if record.union is not None:
            members.setdefault(record.union, []).append(short_name(record.full_name))
    members["Record"] = [short_name(one.record.full_name) for one in schemas]
    lines: list[str] = []
    for union, names in members.items():
        lines += ["", "", *_union(union, names)]
        if union == "Record":
            lines += ['"""Any record that stands alone on the wire or in a log."""']
        lines += ["", *_listing(_plural(union), union, names)]
    return lines


def records_source(schemas: tuple[SchemaFile, ...]) -> str:
    """Source of `records.py`."""
    enums: dict[str, EnumType] = {}
    records: dict[str, RecordType] = {}
    for one in schemas:
        for named in named_types(one.record):
            if isinstance(named, EnumType):
                enums.setdefault(named.full_name, named)
            else:
                records.setdefault(named.full_name, named)
    alone = {one.record.full_name: one.record for one in schemas}
    nested = [record for name, record in records.items() if name not in alone]
    # One that stands alone may be part of another one too, and then comes before it.
    ordered = [*nested, *(alone[name] for name in records if name in alone)]
    used = {field.python_type for record in ordered for field in record.fields} - {None}
    if unknown := used - NEW_TYPES.keys():
        raise SchemaError(f"horolog.type names {sorted(map(str, unknown))}; see NEW_TYPES")
    lines = [
        '"""Every command, event and message, one class for each record of the `.avsc` files.',
        "",
        "Generated by `python -m horolog.schemas.generate`; to change a record, change its `.avsc`",
        "file and run that again.",
        "Times are microseconds since the epoch, UTC, where the name ends in `_us`.",
        '"""',
        "",
        "from collections.abc import Mapping",
        "from typing import Final, NewType, TypeAlias",
        "",
        "import msgspec",
        "",
        "from horolog.schemas.symbols import Symbol",
    ]
    for name in sorted(used, key=str):
        base, doc = NEW_TYPES[str(name)]
        lines += ["", f'{name} = NewType("{name}", {base})', *_docstring(doc, "")]
    for enum_type in enums.values():
        lines += ["", "", *_enum_class(enum_type)]
    for record in ordered:
        lines += ["", "", *_record_class(record)]
    lines += _unions(schemas, ordered)
    return "\n".join(lines) + "\n"


def index_source(schemas: tuple[SchemaFile, ...]) -> str:
    """Source of `index.py`."""
    lines = [
        '"""Where the schema of each record lies, and its fingerprint.',
        "",
        "Generated by `python -m horolog.schemas.generate`: the codec reads a schema only when its",
        "record is first used, and must know every fingerprint before.",
        '"""',
        "",
        "from typing import Final",
        "",
        "INDEX: Final[dict[str, tuple[str, int]]] = {",
    ]
    for one in schemas:
        mark = fingerprint(one.record)
        lines.append(f'    "{one.name}": ("{one.folder}/{one.name}", 0x{mark:016X}),')
    lines.append("}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the files, or with `--check` compare them; the exit status."""
    schemas = read_all(avro_root())
    here = Path(__file__).parent
    written = {"records.py": records_source(schemas), "index.py": index_source(schemas)}
    stale = [
        name
        for name, text in written.items()
        if not (here / name).exists() or (here / name).read_text(encoding="utf-8") != text
    ]
    if "--check" in arguments:
        for name in stale:
            sys.stdout.write(f"{name} is stale: run python -m horolog.schemas.generate\n")
        return 1 if stale else 0
    for name in stale:
        (here / name).write_text(written[name], encoding="utf-8")
        sys.stdout.write(f"wrote {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
