"""Who asks. The tenant comes from the credential; in mode `none` every tenant is open."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from horolog.schemas.records import TenantId


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The bearer of a credential.

    name: for the history. tenant: the one meant where none is named. every_tenant: whether the
    objects of all tenants are open; else those of others do not exist for it.
    """

    name: str
    tenant: TenantId
    every_tenant: bool = False

    def may_see(self, tenant: str) -> bool:
        """Whether a tenant's objects exist for this principal."""
        return self.every_tenant or tenant == self.tenant


class Authenticator(Protocol):
    """Tells who asks."""

    def principal(self, headers: Mapping[str, str]) -> Principal:
        """The principal of a request; raises Denied for no or a wrong credential."""
        ...


class OpenHouse:
    """Mode `none`: whoever reaches the server may do everything, which is why it listens on the
    loopback only.
    """

    def __init__(self, tenant: str = "default") -> None:
        self._principal = Principal(name="local", tenant=TenantId(tenant), every_tenant=True)

    def principal(self, headers: Mapping[str, str]) -> Principal:
        """Always the same."""
        del headers
        return self._principal
