"""Limits of tenants: kept in the compacted topic `tenant-settings`, told to the dispatcher."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from horolog.schemas.codec import encode
from horolog.schemas.errors import VERSION_MISMATCH, InvalidInput
from horolog.schemas.records import TenantId, TenantSettings
from horolog.streams.log.compacted import CompactedTopic

TOPIC: Final = "tenant-settings"


class TenantLimits:
    """Limits in force. Any thread may read and set them."""

    def __init__(self, directory: Path, tell: Callable[[TenantSettings], None]) -> None:
        """Tells the dispatcher all that is kept, for it must know before it releases anything.

        tell: takes limits for the dispatcher; must not block. Raises Unavailable, Corrupt.
        """
        self._topic = CompactedTopic(directory, TOPIC, TenantSettings)
        self._tell = tell
        self._lock = threading.Lock()
        self._in_force = {one.tenant: one for one in self._topic.all().values()}
        for settings in self._in_force.values():
            tell(settings)

    def of(self, tenant: TenantId) -> TenantSettings | None:
        """Limits of a tenant; None: nobody has set any."""
        return self._in_force.get(tenant)

    def all(self) -> Mapping[TenantId, TenantSettings]:
        """Limits by tenant, of those that somebody has set some for."""
        return dict(self._in_force)

    def put(self, settings: TenantSettings, if_tag: str | None = None) -> None:
        """Set limits, written before they take effect.

        if_tag: `tag_of` what shall be in force before; None: whatever is. Raises InvalidInput
        (version_mismatch) if that is not so, Unavailable if they cannot be written.
        """
        tenant = settings.tenant
        with self._lock:
            before = self._in_force.get(tenant) or TenantSettings(tenant=tenant)
            if if_tag is not None and if_tag != tag_of(before):
                detail = f"the limits of {tenant} have the tag {tag_of(before)}, not {if_tag}"
                raise InvalidInput(VERSION_MISMATCH, detail)
            self._topic.put(tenant, settings)
            self._in_force[tenant] = settings
            self._tell(settings)

    def close(self) -> None:
        """Give the file up."""
        self._topic.close()


def tag_of(settings: TenantSettings) -> str:
    """What tells these limits from others."""
    return hashlib.sha256(encode(settings)).hexdigest()[:16]
