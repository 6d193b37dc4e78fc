"""FULL_TRANSITIVE: the schemas in force and those of every release read one another."""

import io
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest

from horolog.schemas.catalog import (
    SchemaFile,
    avro_root,
    read_all,
    read_index,
    released_root,
    versions,
)
from horolog.schemas.compat import faults_of
from horolog.schemas.model import Absent, EnumType, Field, Primitive
from horolog.schemas.release import freeze

PRESENT = {file.name: file for file in read_all(avro_root())}


def test_schemas_in_force_are_compatible_with_every_release() -> None:
    released = {
        version: {file.name: file for file in read_all(released_root() / version)}
        for version in versions(released_root())
    }
    assert "0.1.0" in released
    assert faults_of(PRESENT, released) == []


def with_fields(name: str, fields: tuple[Field, ...]) -> dict[str, SchemaFile]:
    """The schemas in force with other fields of one record."""
    file = PRESENT[name]
    record = msgspec.structs.replace(file.record, fields=fields)
    return {**PRESENT, name: msgspec.structs.replace(file, record=record)}


def new_field(default: Any) -> Field:
    """A field that no release had."""
    kind = Primitive(name="long")
    return Field(name="fresh", type=kind, doc="d", default=default, python_type=None)


def test_field_with_a_default_may_come_and_one_without_may_not() -> None:
    fields = PRESENT["Mark"].record.fields
    old = {"0.1.0": PRESENT}
    assert faults_of(with_fields("Mark", (*fields, new_field(0))), old) == []
    assert faults_of(with_fields("Mark", (*fields, new_field(Absent()))), old) == [
        "Mark.fresh: not written, and has no default (written by 0.1.0)"
    ]


def test_field_without_a_default_may_not_go() -> None:
    fields = PRESENT["Mark"].record.fields
    assert faults_of(with_fields("Mark", fields[:-1]), {"0.1.0": PRESENT})


def test_type_may_not_change_and_a_record_may_not_go() -> None:
    (first, *rest) = PRESENT["Mark"].record.fields
    other = msgspec.structs.replace(first, type=Primitive(name="string"))
    assert faults_of(with_fields("Mark", (other, *rest)), {"0.1.0": PRESENT})
    gone = {name: file for name, file in PRESENT.items() if name != "Mark"}
    assert faults_of(gone, {"0.1.0": PRESENT})


@pytest.mark.parametrize("default", ["high", None])
def test_new_symbol_needs_a_default_at_the_old_reader(default: str | None) -> None:
    def of(symbols: tuple[str, ...]) -> dict[str, SchemaFile]:
        kind = EnumType(full_name="horolog.type.v1.T", doc="d", symbols=symbols, default=default)
        (first, *rest) = PRESENT["Mark"].record.fields
        return with_fields("Mark", (msgspec.structs.replace(first, type=kind), *rest))

    faults = faults_of(of(("high", "low", "new")), {"0.1.0": of(("high", "low"))})
    assert bool(faults) is (default is None)


def test_verdict_is_fastavros_own_when_it_writes_with_one_and_reads_with_the_other() -> None:
    """The rule for a new field, tried with the library that other languages' users have."""
    avro: Any = fastavro
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    for extra, readable in (({"default": 0}, True), ({}, False)):
        field = {"name": "b", "type": "long", **extra}
        new = {**old, "fields": [*old["fields"], field]}
        written = io.BytesIO()
        avro.schemaless_writer(written, old, {"a": 1})
        written.seek(0)
        if readable:
            assert avro.schemaless_reader(written, old, new) == {"a": 1, "b": 0}
        else:
            with pytest.raises(avro.read.SchemaResolutionError):
                avro.schemaless_reader(written, old, new)


def test_release_is_frozen_with_an_index_and_never_twice(tmp_path: Path) -> None:
    assert freeze("9.9.9", tmp_path) == len(PRESENT)
    assert set(read_index(tmp_path / "9.9.9").values()) == {
        f"{file.folder}/{file.name}" for file in PRESENT.values()
    }
    with pytest.raises(FileExistsError):
        freeze("9.9.9", tmp_path)
