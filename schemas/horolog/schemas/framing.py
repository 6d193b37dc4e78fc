"""What names the schema on the wire: Avro's single-object encoding, and a registry's framing.

Single-object encoding (Avro 1.12): `C3 01`, the schema's CRC-64-AVRO in little-endian order, the
record. It needs no registry: the schemas of all versions ship with the package. A registry's
framing: `00`, its number for the schema in big-endian order, the record.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar, cast, overload

import msgspec

from horolog.schemas import codec, records
from horolog.schemas.catalog import read_index, read_one, released_root, versions
from horolog.schemas.codec import Decoder, Malformed
from horolog.schemas.errors import MALFORMED, TOO_LARGE, UNKNOWN_SCHEMA
from horolog.schemas.index import INDEX
from horolog.schemas.records import RECORDS, Record

R = TypeVar("R", bound=msgspec.Struct)

Resolver: TypeAlias = Callable[[int], int | None]
"""Fingerprint of the schema that a registry has under a number; None: it has none."""

_MAGIC: Final = b"\xc3\x01"
_HEADER_BYTES: Final = 10
_REGISTRY_BYTES: Final = 5


def header_of(fingerprint: int) -> bytes:
    """Header of the single-object encoding."""
    return _MAGIC + fingerprint.to_bytes(8, "little")


_HEADERS: Final[dict[type[msgspec.Struct], bytes]] = {
    cls: header_of(INDEX[cls.__name__][1]) for cls in RECORDS
}
_BY_HEADER: Final[dict[bytes, type[msgspec.Struct]]] = {
    header: cls for cls, header in _HEADERS.items()
}


class _Reader(msgspec.Struct, frozen=True):
    cls: type[msgspec.Struct]
    decoder: Decoder
    max_bytes: int


_READERS: Final[dict[bytes, _Reader]] = {}
"""By header; filled at first use."""


def encode_framed(record: Record) -> bytes:
    """Record in single-object encoding. Raises `Unencodable`."""
    return codec.encode_after(record, _HEADERS[record.__class__])


def decode_framed(cls: type[R], data: bytes, *, registry: Resolver | None = None) -> R:
    """Record of a known type, in either framing, of any released version. Raises `Malformed`."""
    return decode_any(data, (cls,), registry=registry)


@overload
def decode_any(
    data: bytes, *, max_bytes: int | None = None, registry: Resolver | None = None
) -> Record: ...
@overload
def decode_any(
    data: bytes,
    expect: tuple[type[R], ...],
    *,
    max_bytes: int | None = None,
    registry: Resolver | None = None,
) -> R: ...
def decode_any(
    data: bytes,
    expect: tuple[type[msgspec.Struct], ...] = RECORDS,
    *,
    max_bytes: int | None = None,
    registry: Resolver | None = None,
) -> msgspec.Struct:
    """Record of whichever type its header names, of any released version. Raises `Malformed`.

    `expect`: types that belong where the data was found, such as `COMMANDS`; another is refused.
    `max_bytes`: a cap below that of the type. `registry`: as long as it is None, a registry's
    framing is refused.
    """
    if max_bytes is not None and len(data) > max_bytes:
        raise Malformed(TOO_LARGE, f"{len(data)} bytes, at most {max_bytes}", offset=max_bytes)
    start = _HEADER_BYTES
    head = data[:_HEADER_BYTES]
    reader = _READERS.get(head)
    if reader is None:
        start, reader = _reader(data, registry)
    if reader.cls not in expect:
        names = ", ".join(sorted(one.__name__ for one in expect))
        raise Malformed(
            MALFORMED, f"does not belong here; expected {names}", record=reader.cls.__name__
        )
    return codec.decode_with(reader.decoder, reader.cls, data, start, reader.max_bytes)


def _reader(data: bytes, registry: Resolver | None) -> tuple[int, _Reader]:
    """Where the record starts, and who reads it."""
    if data[:2] == _MAGIC and len(data) >= _HEADER_BYTES:
        return _HEADER_BYTES, _reader_of(data[:_HEADER_BYTES])
    if data[:1] == b"\0" and len(data) >= _REGISTRY_BYTES:
        number = int.from_bytes(data[1:_REGISTRY_BYTES], "big")
        if registry is None:
            raise Malformed(UNKNOWN_SCHEMA, f"schema {number} of a registry, but none is set")
        fingerprint = registry(number)
        if fingerprint is None:
            raise Malformed(UNKNOWN_SCHEMA, f"the registry has no schema {number}")
        return _REGISTRY_BYTES, _reader_of(header_of(fingerprint))
    raise Malformed(MALFORMED, "starts neither with C3 01 (single-object encoding) nor with 00")


def _reader_of(header: bytes) -> _Reader:
    """Reader of a schema in force, or else of a released one."""
    known = _READERS.get(header)
    if known is not None:
        return known
    cls = _BY_HEADER.get(header)
    if cls is not None:
        decoder, limit = codec.reader_of(cls)
        made = _Reader(cls, decoder, limit)
    else:
        made = _released(int.from_bytes(header[2:], "little"))
    _READERS[header] = made
    return made


def _released(fingerprint: int) -> _Reader:
    place = _released_index().get(fingerprint)
    if place is None:
        raise Malformed(UNKNOWN_SCHEMA, f"no release has a schema {fingerprint:016x}", offset=2)
    version, path = place
    written = read_one(released_root() / version, path)
    cls = cast("type[msgspec.Struct]", getattr(records, path.partition("/")[2]))
    return _Reader(cls, codec.decoder_of(cls, written), codec.schema_of(cls).max_bytes)


_RELEASED: Final[dict[int, tuple[str, str]]] = {}


def _released_index() -> dict[int, tuple[str, str]]:
    """Version and path of each released schema, by fingerprint; read once."""
    if not _RELEASED:
        for version in versions(released_root()):
            for fingerprint, path in read_index(released_root() / version).items():
                _RELEASED[fingerprint] = version, path
    return _RELEASED
