"""Makes the request of an HTTP target: success is a 2xx answer to exactly this request.

No redirect is followed: a login page that answers 200 is no success. The time-out covers the whole
exchange, so a body that comes a byte a second does not get past it. Every address of the name is
checked (`egress`) and the checked one is connected to, with the name in Host and TLS. Proxies of
the environment are not used.
"""

import asyncio
import datetime as dt
import socket
from typing import Final

import httpx2
import standardwebhooks

from horolog.schemas.ids import slot_text
from horolog.schemas.records import Grant, HttpTarget, RunResult
from horolog.workers.capture import Capture
from horolog.workers.clock import wall_us
from horolog.workers.egress import refusal
from horolog.workers.executors.protocol import StopSignal
from horolog.workers.leases import Outcome, Why

BODY_BYTES: Final = 64 * 1024
OUTPUT_BYTES: Final = 4 * 1024
CONNECT_S: Final = 10.0
CONNECTIONS: Final = 256
_RETRYABLE_4XX: Final = frozenset({408, 409, 423, 425, 429})


class HttpExecutor:
    """Calls HTTP targets. One connection pool; used from the agent's event loop."""

    def __init__(self, *, allow_private: bool, secret: str | None = None) -> None:
        """`allow_private`: whether targets may have private and loopback addresses. `secret`: a
        Standard Webhooks secret (`whsec_...`) to sign requests with; None = unsigned.
        """
        self._allow_private = allow_private
        self._signer = None if secret is None else standardwebhooks.Webhook(secret)
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def execute(self, grant: Grant, capture: Capture, stop: StopSignal) -> Outcome:
        """See `Executor`. A time-out or cancel ends the exchange; what the target does with the
        request it got is unknown then, and its idempotency key is the same at the next attempt.
        """
        target = grant.target.http
        assert target is not None, "a grant for HTTP names a request"
        exchange = asyncio.create_task(self._exchange(target, grant, capture))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((exchange, stopping), return_when=asyncio.FIRST_COMPLETED)
            if exchange.done():
                return exchange.result()
            return _stopped(stop)
        finally:
            for task in (exchange, stopping):
                task.cancel()
            await asyncio.gather(exchange, stopping, return_exceptions=True)

    async def _exchange(self, target: HttpTarget, grant: Grant, capture: Capture) -> Outcome:
        try:
            url = httpx2.URL(target.url)
        except httpx2.InvalidURL as error:
            return _failed(f"{target.url} is no address: {error}", retryable=False)
        try:
            address = await self._address(url)
        except OSError as error:
            return _failed(f"{url.host} is not found: {error}")
        if isinstance(address, Outcome):
            return address
        try:
            return await self._request(target, url, address, grant, capture)
        except httpx2.ConnectError as error:
            return _failed(f"{target.url} cannot be reached: {error}")
        except httpx2.ConnectTimeout:
            return _failed(f"{target.url} did not accept a connection within {CONNECT_S:.0f} s")
        except httpx2.HTTPError as error:
            return _failed(
                f"the exchange with {target.url} broke off ({type(error).__name__} {error}); "
                "whether the target did its work is unknown"
            )

    async def _address(self, url: httpx2.URL) -> str | Outcome:
        """The checked address to connect to. All of a name's addresses must be allowed."""
        port = url.port or (443 if url.scheme == "https" else 80)
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        addresses = [str(info[4][0]) for info in found]
        for address in addresses:
            why = refusal(address, allow_private=self._allow_private)
            if why:
                return _failed(f"{url.host} is refused: {why}", retryable=False)
        return addresses[0]

    async def _request(
        self, target: HttpTarget, url: httpx2.URL, address: str, grant: Grant, capture: Capture
    ) -> Outcome:
        client = self._client
        if client is None:
            client = self._client = httpx2.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                timeout=httpx2.Timeout(None, connect=CONNECT_S),
                limits=httpx2.Limits(max_connections=CONNECTIONS),
            )
        request = client.build_request(
            target.method,
            url.copy_with(host=address),
            headers=self._headers(target, url, grant),
            content=grant.payload,
            extensions={"sni_hostname": url.host},
        )
        response = await client.send(request, stream=True)
        try:
            body = await _body(response, capture)
        finally:
            await response.aclose()
        return _outcome(response, body)

    def _headers(self, target: HttpTarget, url: httpx2.URL, grant: Grant) -> dict[str, str]:
        headers = {
            "Content-Type": grant.content_type,
            **target.headers,
            "Host": url.netloc.decode("ascii"),
            "Idempotency-Key": grant.run_id,
            "Horolog-Run-Id": grant.run_id,
            "Horolog-Attempt": str(grant.attempt),
            "Horolog-Fencing-Token": str(grant.token),
        }
        if grant.slot_us is not None:
            headers["Horolog-Slot"] = slot_text(grant.slot_us)
        if self._signer is not None:
            headers |= _signature(self._signer, grant)
        return headers


def _signature(signer: standardwebhooks.Webhook, grant: Grant) -> dict[str, str]:
    """Standard Webhooks 1.0: HMAC-SHA256 over id, time and body; the ID is the run's."""
    at = dt.datetime.fromtimestamp(wall_us() / 1_000_000, dt.UTC)
    text = grant.payload.decode("utf-8", errors="surrogateescape")
    return {
        "webhook-id": grant.run_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signer.sign(grant.run_id, at, text),
    }


async def _body(response: httpx2.Response, capture: Capture) -> bytes:
    """Read the body to its end; the first 64 KiB are logged."""
    kept = bytearray()
    async for data in response.aiter_bytes():
        room = BODY_BYTES - len(kept)
        if room > 0:
            kept += data[:room]
            capture.write(data[:room])
    return bytes(kept)


def _outcome(response: httpx2.Response, body: bytes) -> Outcome:
    status = response.status_code
    if response.is_success:
        return Outcome(result=RunResult.SUCCEEDED, exit_code=status, output=body[:OUTPUT_BYTES])
    error = f"status {status} {response.reason_phrase}".rstrip()
    if 300 <= status < 400:
        location = response.headers.get("location", "nowhere")
        error += f", a redirect to {location}; redirects are not followed"
    return Outcome(
        result=RunResult.FAILED,
        exit_code=status,
        error=error,
        output=body[:OUTPUT_BYTES],
        retryable=status >= 500 or status < 400 or status in _RETRYABLE_4XX,
    )


def _failed(error: str, *, retryable: bool = True) -> Outcome:
    return Outcome(result=RunResult.FAILED, error=error, retryable=retryable)


def _stopped(stop: StopSignal) -> Outcome:
    if stop.why is Why.TIMED_OUT:
        return Outcome(
            result=RunResult.TIMED_OUT,
            error="the time-out was reached; whether the target did its work is unknown",
        )
    return stop.outcome()
