import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.api.values import duration_text, instant_text, parse_duration, parse_instant

S = 1_000_000


@pytest.mark.parametrize(
    "text, duration_us",
    [
        ("90s", 90 * S),
        ("10m", 600 * S),
        ("1h30m", 5_400 * S),
        ("7d", 7 * 86_400 * S),
        ("500ms", S // 2),
        ("1.5h", 5_400 * S),
        ("1m500ms", 60 * S + S // 2),
        ("0s", 0),
    ],
)
def test_duration_with_units_is_read(text: str, duration_us: int) -> None:
    assert parse_duration(text) == duration_us


@pytest.mark.parametrize(
    "text", ["", "90", "s", "90 s", "30m1h", "1h1h", "-5m", "1y", "five", "1e3s", "9999999999d"]
)
def test_duration_without_clear_meaning_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=100 * 365 * 86_400 * S))
def test_duration_written_and_read_is_the_same(duration_us: int) -> None:
    assert parse_duration(duration_text(duration_us)) == duration_us


@pytest.mark.parametrize(
    "text, at_us",
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T01:00:00 01:00", 0),  # a plus that was not escaped in an address
        ("1969-12-31T23:30:00-00:30", 0),
        ("2024-01-15T23:59:59.999999Z", 1_705_363_199_999_999),
    ],
)
def test_instant_with_offset_is_read(text: str, at_us: int) -> None:
    assert parse_instant(text) == at_us


@pytest.mark.parametrize(
    "text, why",
    [
        ("2024-01-15T00:00:00", "no offset"),
        ("2024-01-15", "is no instant"),
        ("2024-02-30T00:00:00Z", "does not exist"),
        ("2024-01-15T00:00:00+24:00", "offset that does not exist"),
        ("tomorrow", "is no instant"),
        ("2024-01-15T00:00:00.1234567Z", "is no instant"),
    ],
)
def test_instant_without_clear_meaning_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_instant(text)


@given(st.integers(min_value=-62_135_596_800 * S, max_value=253_402_300_799 * S))
def test_instant_written_and_read_is_the_same(at_us: int) -> None:
    assert parse_instant(instant_text(at_us)) == at_us
