"""What each release wrote is read for ever: one record of each type and version, as bytes."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from horolog.schemas.catalog import released_root, versions
from horolog.schemas.framing import decode_any

HERE = Path(__file__).parent
VERSIONS = versions(released_root())


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_a_release_are_read_as_they_were_meant(version: str) -> None:
    golden = json.loads((HERE / f"{version}.json").read_text())
    assert len(golden) >= 60
    for name, (data, told) in golden.items():
        record = decode_any(base64.b64decode(data))
        assert type(record).__name__ == name
        assert holds(msgspec.to_builtins(record), told), name


def holds(read: Any, told: Any) -> bool:
    """Whether a value says all that was meant; it may have gained fields since."""
    if isinstance(told, dict):
        fields = cast("Mapping[str, Any]", told)
        return all(key in read and holds(read[key], value) for key, value in fields.items())
    if isinstance(told, list):
        items = cast("Sequence[Any]", told)
        return len(read) == len(items) and all(map(holds, read, items))
    return bool(read == told)
