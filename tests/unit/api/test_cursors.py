import pytest

from horolog.api.cursors import Cursors
from horolog.schemas.errors import INVALID_CURSOR, InvalidInput

CURSORS = Cursors(b"s" * 32)
FILTER = {"status": "dead", "from": 5}
AT = (1_714_996_800_000_000, "acme.a@20240506T120000Z")


def test_cursor_with_the_same_filter_gives_its_position() -> None:
    cursor = CURSORS.make(AT, "acme", FILTER)
    assert CURSORS.read(cursor, "acme", dict(reversed(FILTER.items()))) == AT


def test_cursor_that_is_empty_gives_no_position() -> None:
    assert CURSORS.read(None, "acme", FILTER) is None
    assert CURSORS.read("", "acme", FILTER) is None


@pytest.mark.parametrize("end", range(0, 60, 7))
def test_cursor_that_is_changed_is_refused(end: int) -> None:
    cursor = CURSORS.make(AT, "acme", FILTER)
    changed = cursor[:end] + ("A" if cursor[end] != "A" else "B") + cursor[end + 1 :]
    with pytest.raises(InvalidInput) as refused:
        CURSORS.read(changed, "acme", FILTER)
    assert refused.value.error is INVALID_CURSOR


@pytest.mark.parametrize(
    "tenant, filter_", [("other", FILTER), ("acme", {**FILTER, "from": 6}), ("acme", {})]
)
def test_cursor_of_another_tenant_or_filter_is_refused(
    tenant: str, filter_: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        CURSORS.read(CURSORS.make(AT, "acme", FILTER), tenant, filter_)


def test_cursor_of_another_server_is_refused() -> None:
    cursor = Cursors(b"t" * 32).make(AT, "acme", FILTER)
    with pytest.raises(InvalidInput):
        CURSORS.read(cursor, "acme", FILTER)


@pytest.mark.parametrize("cursor", ["*", "a", "A" * 10_000, "\N{SNOWMAN}"])
def test_cursor_that_is_none_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput):
        CURSORS.read(cursor, "acme", FILTER)
