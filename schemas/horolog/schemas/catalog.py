"""Where the schema files lie: those in force (`avro/`) and those of every release (`released/`).

A release keeps, beside its files, an index of their fingerprints, so that a record written by it
is recognised without reading all of its schemas.
"""

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

from horolog.schemas.model import RecordType, SchemaError, fingerprint, parse_text

FOLDERS: Final = ("commands", "events", "dispatch", "workers", "snapshots")
INDEX_FILE: Final = "index.json"


class SchemaFile(msgspec.Struct, frozen=True, kw_only=True):
    """One `.avsc` file and what it says."""

    folder: str
    name: str
    text: str
    record: RecordType


def avro_root() -> Traversable:
    """Folder of the schemas in force."""
    return files("horolog.schemas") / "avro"


def released_root() -> Traversable:
    """Folder of the released schemas, one folder a version."""
    return files("horolog.schemas") / "released"


def texts(root: Traversable) -> dict[str, str]:
    """Contents of all schema files under `root`, by path `folder/Name.avsc`, in order."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        place = root / folder
        if not place.is_dir():
            continue
        for entry in sorted(place.iterdir(), key=lambda one: one.name):
            if entry.name.endswith(".avsc"):
                found[f"{folder}/{entry.name}"] = entry.read_text(encoding="utf-8")
    return found


def read_all(root: Traversable) -> tuple[SchemaFile, ...]:
    """All schemas under `root`. Raises `SchemaError`, which names the file."""
    read: list[SchemaFile] = []
    for path, text in texts(root).items():
        folder, _, file = path.partition("/")
        try:
            record = parse_text(text)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from error
        read.append(
            SchemaFile(folder=folder, name=file.removesuffix(".avsc"), text=text, record=record)
        )
    return tuple(read)


def read_one(root: Traversable, path: str) -> RecordType:
    """The record of one file, by its path without suffix, `folder/Name`."""
    folder, _, name = path.partition("/")
    return parse_text((root / folder / f"{name}.avsc").read_text(encoding="utf-8"))


def versions(root: Traversable) -> tuple[str, ...]:
    """Released versions, oldest first."""
    if not root.is_dir():
        return ()
    names = [entry.name for entry in root.iterdir() if entry.is_dir()]
    return tuple(sorted(names, key=version_key))


def version_key(version: str) -> tuple[int, ...]:
    """Sort key of a version `1.2.3`. Raises `SchemaError`."""
    parts = version.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise SchemaError(f"a version is three numbers, like 0.1.0, not {version!r}")
    return tuple(int(part) for part in parts)


def index_text(schemas: tuple[SchemaFile, ...]) -> str:
    """Content of a release's index: path by fingerprint, in hexadecimal."""
    index = {f"{fingerprint(one.record):016x}": f"{one.folder}/{one.name}" for one in schemas}
    return msgspec.json.format(msgspec.json.encode(index), indent=2).decode() + "\n"


def read_index(root: Traversable) -> dict[int, str]:
    """Path by fingerprint, of one release."""
    text = (root / INDEX_FILE).read_text(encoding="utf-8")
    index = msgspec.json.decode(text, type=dict[str, str])
    return {int(hexadecimal, 16): path for hexadecimal, path in index.items()}
