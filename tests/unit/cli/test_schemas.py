"""Schemas on the command line: listed, and held against what was released."""

import shutil
from importlib.resources import as_file
from pathlib import Path

import pytest

from horolog.cli import schemas
from horolog.cli.exits import Exit, Stop
from horolog.cli.session import Session
from horolog.schemas.catalog import avro_root


@pytest.fixture
def session() -> Session:
    """One that talks to nobody."""
    return Session(
        output="json", server=None, tenant=None, api_key=None, quiet=False, verbose=False, yes=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the schemas in force."""
    with as_file(avro_root()) as place:
        shutil.copytree(place, tmp_path / "avro")
    return tmp_path / "avro"


def test_schemas_in_force_and_released_ones_read_each_other(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas.check(session, None)
    assert "released versions" in capsys.readouterr().out


def test_field_without_a_default_is_refused_and_named(session: Session, folder: Path) -> None:
    place = folder / "commands" / "PauseJob.avsc"
    text = place.read_text()
    place.write_text(text.replace('"fields": [', '"fields": [{"name": "more", "type": "int"},', 1))
    with pytest.raises(Stop) as stopped:
        schemas.check(session, folder)
    assert stopped.value.status is Exit.FAILED
    assert any("PauseJob.more" in detail for detail in stopped.value.details)


def test_record_that_is_gone_is_refused(session: Session, folder: Path) -> None:
    (folder / "commands" / "PauseJob.avsc").unlink()
    with pytest.raises(Stop) as stopped:
        schemas.check(session, folder)
    assert "no longer there" in stopped.value.details[0]


def test_file_that_is_no_schema_is_named(session: Session, folder: Path) -> None:
    (folder / "commands" / "PauseJob.avsc").write_text("{}")
    with pytest.raises(Stop, match=r"PauseJob\.avsc"):
        schemas.check(session, folder)


def test_folder_without_schemas_is_wrong_usage(session: Session, tmp_path: Path) -> None:
    with pytest.raises(Stop) as stopped:
        schemas.check(session, tmp_path)
    assert stopped.value.status is Exit.USAGE


def test_list_has_a_fingerprint_for_every_schema(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas.index(session)
    listed = capsys.readouterr().out
    assert '"id": "RunStarted"' in listed
    assert '"since": "0.1.0"' in listed
