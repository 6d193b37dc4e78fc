"""The generated codec against fastavro, over every record."""

from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horolog.schemas.codec import Malformed, decode, encode, schema_of
from horolog.schemas.framing import decode_any, decode_framed, encode_framed
from horolog.schemas.records import RECORDS, Record
from tests.builders import schemas

EVERY_RECORD = pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
FEW = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])

_PARSED: dict[type, Any] = {}


def oracle(cls: type[Record]) -> Any:
    if cls not in _PARSED:
        _PARSED[cls] = fastavro.parse_schema(schemas.raw_schema(cls))
    return _PARSED[cls]


@EVERY_RECORD
@FEW
@given(data=st.data())
def test_bytes_of_any_record_equal_those_of_fastavro(
    cls: type[Record], data: st.DataObject
) -> None:
    value = data.draw(schemas.plain_values(schema_of(cls)))
    record = schemas.of(cls, value)
    written = encode(record)
    assert written == schemas.oracle_bytes(oracle(cls), value)
    assert schemas.same(decode(cls, written), record)
    framed = encode_framed(record)
    assert framed[10:] == written
    assert schemas.same(decode_any(framed), record)
    assert schemas.same(decode_framed(cls, framed), record)


@st.composite
def damaged(draw: st.DrawFn, sound: bytes) -> bytes:
    """Bytes a few changes away from those of a record."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["set", "flip", "cut", "insert", "delete"])):
            case "set" if at < len(data):
                data[at] = draw(st.integers(0, 255))
            case "flip" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[at:]
            case "insert":
                data[at:at] = draw(st.binary(min_size=1, max_size=12))
            case _:
                del data[at : at + 1]
    return bytes(data)


def refused_or_as_fastavro(cls: type[Record], data: bytes) -> None:
    """Whatever the bytes are: one exception, or the value that fastavro reads from all of them."""
    record = decoded(cls, data)
    if isinstance(record, Malformed):
        assert 0 <= record.offset <= len(data)
        assert record.record == cls.__name__
        return
    value, rest = schemas.oracle_value(oracle(cls), data)
    assert rest == b""
    assert schemas.same(schemas.of(cls, value), record)


def decoded(cls: type[Record], data: bytes) -> Record | Malformed:
    try:
        return decode(cls, data)
    except Malformed as error:
        return error


@EVERY_RECORD
@FEW
@given(data=st.data())
def test_damaged_bytes_are_refused_or_read_as_fastavro_does(
    cls: type[Record], data: st.DataObject
) -> None:
    sound = encode(schemas.of(cls, data.draw(schemas.plain_values(schema_of(cls)))))
    for _ in range(5):
        refused_or_as_fastavro(cls, data.draw(damaged(sound)))


@settings(max_examples=300)
@given(cls=st.sampled_from(RECORDS), data=st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_or_read_as_fastavro_does(
    cls: type[Record], data: bytes
) -> None:
    refused_or_as_fastavro(cls, data)


@given(
    data=st.binary(max_size=64), header=st.sampled_from([b"", b"\xc3\x01", b"\0", b"\0\0\0\0\1"])
)
def test_arbitrary_framed_bytes_are_refused(data: bytes, header: bytes) -> None:
    with pytest.raises(Malformed):
        decode_any(header + data, registry=lambda _: None)
