"""Page cursors: a position as a value, signed, and good for one tenant and one filter only.

The position is a keyset, never a row: it holds however many rows come or go. Signed, because a
caller who could write one could read another filter's rows past it.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from horolog.schemas.errors import INVALID_CURSOR, InvalidInput

_MAC_BYTES: Final = 16
_CURSOR_CHARS_MAX: Final = 2_048

Position: TypeAlias = tuple[int, str]
"""What rows are ordered by: an instant, and an ID among those of one instant."""


class Cursors:
    """Makes and reads cursors with one secret."""

    def __init__(self, secret: bytes) -> None:
        assert len(secret) >= 32, "a secret of 256 bits"
        self._secret = secret

    def make(self, position: Position, tenant: str, filter_: Mapping[str, object]) -> str:
        """The cursor of a position, within a tenant and a filter."""
        body = msgspec.msgpack.encode(position)
        return (
            base64.urlsafe_b64encode(self._mac(body, tenant, filter_) + body).decode().rstrip("=")
        )

    def read(
        self,
        cursor: str | None,
        tenant: str,
        filter_: Mapping[str, object],
    ) -> Position | None:
        """The position of a cursor; None for no cursor. Raises InvalidInput."""
        if not cursor:
            return None
        if len(cursor) > _CURSOR_CHARS_MAX:
            raise InvalidInput(INVALID_CURSOR, "the cursor is too long to be one", field="?cursor")
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except (binascii.Error, ValueError) as error:
            raise InvalidInput(
                INVALID_CURSOR, "the cursor is no cursor", field="?cursor"
            ) from error
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body, tenant, filter_)):
            raise InvalidInput(
                INVALID_CURSOR,
                "the cursor does not belong to this filter; a filter stays the same while paging",
                field="?cursor",
            )
        try:
            return msgspec.msgpack.decode(body, type=tuple[int, str])
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidInput(
                INVALID_CURSOR, "the cursor is of another release", field="?cursor"
            ) from error

    def _mac(self, body: bytes, tenant: str, filter_: Mapping[str, object]) -> bytes:
        bound = msgspec.json.encode([tenant, sorted(filter_.items(), key=lambda item: item[0])])
        length = len(bound).to_bytes(4, "big")
        return hmac.digest(self._secret, length + bound + body, hashlib.sha256)[:_MAC_BYTES]
