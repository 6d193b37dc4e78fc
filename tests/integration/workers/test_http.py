"""Requests: success, redirects, time-outs, headers, addresses."""

import asyncio
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
import standardwebhooks

from horolog.schemas.records import RunResult
from horolog.workers.capture import Capture
from horolog.workers.egress import refusal
from horolog.workers.executors import StopSignal
from horolog.workers.executors.http import HttpExecutor
from horolog.workers.leases import Outcome, Why
from tests.builders.grants import Printed, grant, url
from tests.builders.target import HttpTargetServer, answer, serving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def server() -> Iterator[HttpTargetServer]:
    """A target."""
    with serving() as target:
        yield target


def call(
    address: str,
    *,
    attempt: int = 1,
    timeout_s: float | None = None,
    allow_private: bool = True,
    secret: str | None = None,
) -> Outcome:
    """Make a request to its end."""
    given = grant(url(address), payload=b'{"a": 1}', attempt=attempt)

    async def run() -> Outcome:
        executor = HttpExecutor(allow_private=allow_private, secret=secret)
        signal = StopSignal()
        if timeout_s is not None:
            asyncio.get_running_loop().call_later(timeout_s, signal.ask, Why.TIMED_OUT)
        try:
            return await executor.execute(given, Capture(given, Printed().emit), signal)
        finally:
            await executor.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "status, location",
    [
        (302, "/login"),
        (301, "/run2"),
        (307, "/run2"),
        (308, "https://other-host.example/run"),
        (302, "/run"),
    ],
)
def test_x01_redirect_is_a_failure_with_status_and_location(
    server: HttpTargetServer, status: int, location: str
) -> None:
    server.answers["/run"] = answer(status, location=location)
    outcome = call(f"{server.url}/run")
    assert outcome.result is RunResult.FAILED
    assert str(status) in outcome.error
    assert location in outcome.error
    assert [request.path for request in server.received] == ["/run"]


def test_x03_headers_tell_the_run_and_the_key_is_the_same_for_all_attempts(
    server: HttpTargetServer,
) -> None:
    for attempt in (1, 2):
        assert call(f"{server.url}/run", attempt=attempt).result is RunResult.SUCCEEDED
    first, second = (request.headers for request in server.received)
    assert first["idempotency-key"] == second["idempotency-key"] == first["horolog-run-id"]
    assert (first["horolog-attempt"], second["horolog-attempt"]) == ("1", "2")
    assert first["horolog-fencing-token"] == "7"
    assert first["horolog-slot"] == "20240506T120000Z"
    assert first["content-type"] == "application/json"
    assert server.received[0].body == b'{"a": 1}'
    assert server.received[0].method == "POST"


def test_x03_body_that_comes_a_byte_at_a_time_does_not_get_past_the_time_out(
    server: HttpTargetServer,
) -> None:
    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            for _ in range(10_000):
                request.wfile.write(b".")
                request.wfile.flush()
                server.arrived.clear()
                server.arrived.wait(0.02)
        except OSError:
            return

    server.answers["/run"] = drip
    outcome = call(f"{server.url}/run", timeout_s=0.3)
    assert outcome.result is RunResult.TIMED_OUT
    assert "unknown" in outcome.error


def test_x03_refused_connection_is_retryable_and_said() -> None:
    outcome = call("http://127.0.0.1:9/run")
    assert outcome.result is RunResult.FAILED
    assert outcome.retryable
    assert "cannot be reached" in outcome.error


def test_x03_broken_exchange_says_that_the_outcome_is_unknown(server: HttpTargetServer) -> None:
    def hang_up(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True
        request.connection.close()

    server.answers["/run"] = hang_up
    outcome = call(f"{server.url}/run")
    assert outcome.result is RunResult.FAILED
    assert "unknown" in outcome.error


@pytest.mark.parametrize("status, retryable", [(500, True), (429, True), (400, False)])
def test_status_tells_whether_a_retry_would_help(
    server: HttpTargetServer, status: int, retryable: bool
) -> None:
    server.answers["/run"] = answer(status)
    outcome = call(f"{server.url}/run")
    assert (outcome.result, outcome.exit_code, outcome.retryable) == (
        RunResult.FAILED,
        status,
        retryable,
    )


def test_request_is_signed_as_standard_webhooks_say(server: HttpTargetServer) -> None:
    call(f"{server.url}/run", secret=SECRET)
    request = server.received[0]
    verified = standardwebhooks.Webhook(SECRET).verify(request.body, request.headers)
    assert verified == {"a": 1}


# Spellings of loopback, private, link-local and metadata addresses, as resolvers take them.
FORBIDDEN = [
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "0x7f.1",
    "2130706433",
    "0177.0.0.1",
    "0x7f000001",
    "017700000001",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[::127.0.0.1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:192.168.1.1]",
    "[2002:c0a8:101::]",
    "[2002:a00:1::]",
    "[64:ff9b::a00:1]",
    "[64:ff9b::c0a8:101]",
    "[64:ff9b:1::1]",
    "10.0.0.1",
    "10.255.255.255",
    "10.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1",
    "192.0.0.8",
    "100.64.0.1",
    "100.127.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "0.0.0.0",
    "0",
    "0x0",
    "169.254.169.254",
    "169.254.0.1",
    "2852039166",
    "0xa9fea9fe",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[fc00::1]",
    "[fdff::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[::]",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "100.100.100.200",
    "[2001:db8::1]",
    "[100::1]",
    "[2001::1]",
    "①②⑦.0.0.1",
]


@pytest.mark.parametrize("host", FORBIDDEN)
def test_s1_address_that_is_not_public_is_refused_before_any_connection(
    server: HttpTargetServer, host: str
) -> None:
    port = server.url.rpartition(":")[2]
    outcome = call(f"http://{host}:{port}/run", allow_private=False)
    assert outcome.result is RunResult.FAILED
    assert not server.received


def test_s1_corpus_is_large_enough() -> None:
    assert len(FORBIDDEN) >= 60


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "fe80::1", "224.0.0.1"])
def test_s1_metadata_and_link_local_are_refused_also_where_private_is_allowed(
    address: str,
) -> None:
    assert refusal(address, allow_private=True)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_s1_public_addresses_are_allowed(address: str) -> None:
    assert not refusal(address, allow_private=False)
