import pytest

from horolog.api.json_values import BadJson, decode, pointer


@pytest.mark.parametrize(
    "text, why",
    [
        (b"{", "malformed at line 1"),
        (b'{"a": 1, "a": 2}', 'names "a" twice'),
        (b"[" * 33 + b"]" * 33, "deeper than 32"),
        (b"[" * 1_000_000, "deeper than 32"),
        (b'{"a":' * 500_000, "deeper than 32"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e999]", "too large to hold"),
        (b"[" + b"9" * 5_000 + b"]", "too large to hold"),
        (b'["\\ud800"]', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_json_that_is_hostile_is_refused_with_the_reason(text: bytes, why: str) -> None:
    with pytest.raises(BadJson, match=why):
        decode(text)


@pytest.mark.parametrize(
    "text",
    [b"[" * 32 + b"]" * 32, b'"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["', b'["\\ud83d\\ude00"]'],
)
def test_json_at_the_edge_of_what_is_taken_is_read(text: bytes) -> None:
    assert decode(text) is not None


def test_pointer_of_names_with_slash_and_tilde_is_escaped() -> None:
    assert pointer(("labels", "a/b~c", 0)) == "/labels/a~1b~0c/0"
