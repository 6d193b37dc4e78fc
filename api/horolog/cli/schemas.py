"""Commands on the schemas of the records."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from horolog.cli.exits import Exit, Stop
from horolog.cli.output import Column
from horolog.cli.session import Session
from horolog.schemas.catalog import (
    FOLDERS,
    SchemaFile,
    avro_root,
    read_all,
    released_root,
    versions,
)
from horolog.schemas.compat import faults_of
from horolog.schemas.model import SchemaError, fingerprint

_COLUMNS: Final = (
    Column("RECORD"),
    Column("KIND"),
    Column("FINGERPRINT"),
    Column("SINCE"),
    Column("FULL NAME", wide=True),
)


def index(session: Session) -> None:
    """List the schemas in force, each with its fingerprint (CRC-64-AVRO) and first release."""
    since = _since()
    items = [
        {
            "id": one.name,
            "kind": one.folder,
            "fingerprint": f"{fingerprint(one.record):016x}",
            "since": since.get(one.name, "unreleased"),
            "fullName": one.record.full_name,
        }
        for one in read_all(avro_root())
    ]
    cells = [[str(value) for value in item.values()] for item in items]
    session.out.rows(items, _COLUMNS, cells, empty="no schemas")


def check(session: Session, folder: Path | None) -> None:
    """Hold schemas (those of this release, or a folder laid out alike) against every released one,
    both ways. Raises Stop with what would not be read.
    """
    place = avro_root() if folder is None else folder
    if folder is not None and not any((folder / name).is_dir() for name in FOLDERS):
        raise Stop(
            Exit.USAGE,
            f"{folder} holds none of the folders {', '.join(FOLDERS)}",
            hint="name a folder laid out as schemas/horolog/schemas/avro",
        )
    try:
        present = read_all(place)
    except (SchemaError, UnicodeDecodeError) as error:
        raise Stop(Exit.FAILED, f"not a schema: {error}") from error
    faults = faults_of(_by_name(present), _released())
    if faults:
        raise Stop(
            Exit.FAILED,
            f"{len(faults)} things would not be read",
            details=faults,
            hint="only add: a field with a default, a symbol, a record",
        )
    count = len(versions(released_root()))
    session.out.line(f"{len(present)} schemas read and are read by {count} released versions")


def needs_kafka(what: str) -> Stop:
    """What a command that is for a fleet says without one."""
    return Stop(
        Exit.USAGE,
        f"{what} needs a log on Kafka, and this release has none yet",
        hint="`horolog up` keeps everything in SQLite files and has neither topics nor a registry",
    )


def _by_name(files: tuple[SchemaFile, ...]) -> Mapping[str, SchemaFile]:
    return {one.name: one for one in files}


def _released() -> Mapping[str, Mapping[str, SchemaFile]]:
    root = released_root()
    return {version: _by_name(read_all(root / version)) for version in versions(root)}


def _since() -> dict[str, str]:
    since: dict[str, str] = {}
    for version, files in _released().items():
        for name in files:
            since.setdefault(name, version)
    return since
