"""May a schema follow the released ones? FULL_TRANSITIVE: each reads what each other wrote.

Avro's schema resolution (1.12), for the shapes that the lint allows: a field that only one side has
needs a default; types must be the same, but for an enum's symbols, which may come and go as the
reader's default stands for those it lacks.
"""

from collections.abc import Iterator, Mapping

from horolog.schemas.catalog import SchemaFile
from horolog.schemas.model import (
    Absent,
    ArrayType,
    EnumType,
    MapType,
    OptionalType,
    Primitive,
    RecordType,
    Schema,
)


def faults_of(
    present: Mapping[str, SchemaFile], released: Mapping[str, Mapping[str, SchemaFile]]
) -> list[str]:
    """What keeps the schemas in force from being read with those of every release, both ways.

    `released`: by version, each by record name.
    """
    faults: list[str] = []
    for version, files in released.items():
        for name, old in files.items():
            new = present.get(name)
            if new is None:
                faults.append(f"{name}: released with {version}, and no longer there")
                continue
            backward = _unreadable(new.record, old.record, name)
            forward = _unreadable(old.record, new.record, name)
            faults += (f"{fault} (written by {version})" for fault in backward)
            faults += (f"{fault} (read by {version})" for fault in forward)
    return faults


def _unreadable(reader: Schema, writer: Schema, at: str) -> Iterator[str]:
    """Why a reader cannot read what a writer wrote; nothing: it can."""
    if type(reader) is not type(writer):
        yield f"{at}: {_told(writer)} cannot be read as {_told(reader)}"
    elif isinstance(reader, RecordType) and isinstance(writer, RecordType):
        if reader.full_name != writer.full_name:
            yield f"{at}: {writer.full_name} is no {reader.full_name}"
        written = {field.name: field for field in writer.fields}
        for field in reader.fields:
            other = written.get(field.name)
            if other is not None:
                yield from _unreadable(field.type, other.type, f"{at}.{field.name}")
            elif isinstance(field.default, Absent):
                yield f"{at}.{field.name}: not written, and has no default"
    elif isinstance(reader, EnumType) and isinstance(writer, EnumType):
        if set(writer.symbols) - set(reader.symbols) and reader.default is None:
            yield f"{at}: symbols the reader lacks, and it has no default"
    elif isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
        yield from _unreadable(reader.items, writer.items, f"{at}[]")
    elif isinstance(reader, MapType) and isinstance(writer, MapType):
        yield from _unreadable(reader.values, writer.values, f"{at}{{}}")
    elif isinstance(reader, OptionalType) and isinstance(writer, OptionalType):
        yield from _unreadable(reader.inner, writer.inner, at)
    elif isinstance(reader, Primitive) and reader != writer:
        yield f"{at}: {_told(writer)} cannot be read as {_told(reader)}"


def _told(schema: Schema) -> str:
    return schema.name if isinstance(schema, Primitive) else type(schema).__name__
