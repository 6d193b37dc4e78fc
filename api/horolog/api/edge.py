"""What is refused before anybody looks at the path: requests that a web page sends on a user's
behalf.

Without credentials the only fence is the loopback, and a browser stands inside it: any page can
post to 127.0.0.1, and a name that resolves to 127.0.0.1 makes that page same-origin (DNS
rebinding). So a request must name this host, and one that a browser sends for another site is
refused.
"""

import ipaddress
from collections.abc import Container
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from horolog.api import problems
from horolog.schemas.errors import FORBIDDEN

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class SameSite:
    """ASGI middleware for servers that ask for no credential."""

    def __init__(self, app: ASGIApp, hosts: Container[str] = ()) -> None:
        """hosts: names beside localhost and addresses by which the server may be called."""
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            why = self._why_not(Headers(scope=scope), str(scope["method"]))
            if why is not None:
                await problems.answer(FORBIDDEN, why)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _why_not(self, headers: Headers, method: str) -> str | None:
        host = headers.get("host", "")
        name = _name_of(host)
        if not (name == "localhost" or _is_address(name) or name in self._hosts):
            return (
                f"the server is not called {name!r}; use its address, or add the name to http.hosts"
            )
        if method in _SAFE_METHODS:
            return None
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return f"a page of {origin} may not write here"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "a page of another site may not write here"
        return None


def _name_of(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
