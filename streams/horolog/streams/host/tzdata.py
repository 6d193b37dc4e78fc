# The package ships no type information.
# mypy: disable-error-code="import-untyped"
"""Time zone rules as bytes, from the pinned `tzdata` package and from nowhere else.

The machine's own copy is never read: two nodes with different copies would disagree about slots.
What is read here goes into the ledger (`TzdataChanged`), and from then on the ledger counts.

directory, in each function: a folder laid out as the package's `zoneinfo`, to be read in its
place. It is for tests that need rules of their own; None is the package.
"""

import functools
import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import Final

import tzdata

from horolog.schemas.errors import INVALID_SCHEDULE, InvalidInput
from horolog.schemas.records import ZoneRules
from horolog.streams.calendar import near_matches

_MAGIC: Final = b"TZif"
_NAME = re.compile(r"[A-Za-z0-9+_-]+(?:/[A-Za-z0-9+_-]+){0,3}", re.ASCII)
_DIGEST_LENGTH: Final = 12
_NAMES_MAX: Final = 1_024
_SINCE_EVER_US: Final = 0


def tzdata_version(directory: Path | None = None) -> str:
    """Version of the tz database, as `2026f`; of a folder, a digest of what is in it."""
    if directory is None:
        version: str = tzdata.IANA_VERSION
        return version
    digest = hashlib.sha256()
    for name in zone_names(directory):
        digest.update(name.encode() + b"\0" + (directory / name).read_bytes())
    return f"folder-{digest.hexdigest()[:_DIGEST_LENGTH]}"


def zone_names(directory: Path | None = None) -> tuple[str, ...]:
    """Names of all zones there are, sorted."""
    if directory is None:
        return _packaged_names()
    files = (path for path in directory.rglob("*") if path.is_file())
    names = (str(path.relative_to(directory)) for path in files if _is_zone(path.read_bytes()))
    return tuple(sorted(names))


def read_zone(name: str, directory: Path | None = None) -> bytes:
    """The TZif file of a zone; InvalidInput names the nearest ones if there is no such zone."""
    rules = _find(name, directory)
    if rules is None:
        near = near_matches(name, zone_names(directory))
        meant = f"did you mean {' or '.join(near)}?" if near else "for example Europe/Paris"
        raise InvalidInput(
            INVALID_SCHEDULE,
            f'timezone "{name}" is no zone of the tz database '
            f"({tzdata_version(directory)}); {meant}",
            field="/schedule/timezone",
        )
    return rules


def zone_rules(name: str, directory: Path | None = None) -> ZoneRules | None:
    """The rules of a zone as the ledger records them, valid since ever; None: no such zone."""
    rules = _find(name, directory)
    if rules is None:
        return None
    return ZoneRules(zone=name, effective_us=_SINCE_EVER_US, rules=rules)


def _find(name: str, directory: Path | None) -> bytes | None:
    # The name comes from users: nothing that is no plain relative path gets near a file.
    if _NAME.fullmatch(name) is None:
        return None
    if directory is None:
        return _packaged(name) if name in _packaged_names() else None
    path = directory / name
    rules = path.read_bytes() if path.is_file() else b""
    return rules if _is_zone(rules) else None


def _is_zone(content: bytes) -> bool:
    return content.startswith(_MAGIC)


@functools.cache
def _packaged_names() -> tuple[str, ...]:
    listed = resources.files(tzdata).joinpath("zones").read_text(encoding="ascii")
    return tuple(sorted(listed.split()))


@functools.lru_cache(maxsize=_NAMES_MAX)
def _packaged(name: str) -> bytes:
    return resources.files(tzdata).joinpath("zoneinfo", *name.split("/")).read_bytes()
