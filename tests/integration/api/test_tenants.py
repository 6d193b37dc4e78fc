"""Limits of tenants over HTTP and from the command line, obeyed by a real server."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from horolog.cli.exits import Exit
from tests.acceptance.server import Server, serving
from tests.integration.api.conforming import client
from tests.waiting import until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that executes nothing by itself."""
    with serving(tmp_path, "--workers", "0") as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """A client of it."""
    with client(server.url) as made:
        yield made


def create(http: httpx2.Client, job_id: str, handler: str = "x") -> httpx2.Response:
    """Create a job that runs when triggered."""
    return http.post("/v1/jobs", json={"id": job_id, "target": {"handler": handler}})


def trigger(http: httpx2.Client, job_id: str) -> httpx2.Response:
    """Ask for a run."""
    return http.post(f"/v1/jobs/{job_id}:trigger", json={})


def lease(http: httpx2.Client, most: int, wait_s: int = 0) -> list[dict[str, object]]:
    """Runs that may be executed now."""
    body = {"workerId": "w", "max": most, "handlers": ["x"]}
    found: list[dict[str, object]] = http.post(
        "/v1/runs:lease", json=body, headers={"Prefer": f"wait={wait_s}"}
    ).json()
    return found


def complete(http: httpx2.Client, held: dict[str, object]) -> None:
    """End a run well."""
    proof = {name: held[name] for name in ("fencingToken", "claimId")}
    answer = http.post(f"/v1/runs/{held['runId']}:complete", json={**proof, "ok": True})
    assert answer.status_code == 200, answer.text


def test_backlog_limit_is_exact_and_a_refusal_is_not_remembered(http: httpx2.Client) -> None:
    assert create(http, "acme.job").status_code == 201
    assert http.put("/v1/tenants/acme", json={"backlog": 3}).status_code == 200
    answers = [trigger(http, "acme.job") for _ in range(6)]
    assert sorted(answer.status_code for answer in answers) == [202] * 3 + [429] * 3
    refused = next(answer for answer in answers if answer.status_code == 429)
    problem = refused.json()
    assert (problem["code"], problem["retryable"]) == ("HRL2012", True)
    assert "horolog tenant set" in problem["hint"]
    assert problem["detail"] == "acme has 3 waiting runs, 3 at most"
    assert int(refused.headers["retry-after"]) >= 1
    # The others have limits of their own, or none.
    assert create(http, "other.job").status_code == 201
    assert all(trigger(http, "other.job").status_code == 202 for _ in range(5))
    for held in lease(http, 10, 10):
        if str(held["jobId"]) == "acme.job":
            complete(http, held)
    until(lambda: trigger(http, "acme.job").status_code == 202 or None, "there is room again")


def test_concurrency_limit_holds_through_a_restart(server: Server, http: httpx2.Client) -> None:
    create(http, "acme.job")
    put = http.put("/v1/tenants/acme", json={"concurrency": 2})
    assert put.json()["concurrency"] == 2
    for _ in range(5):
        assert trigger(http, "acme.job").status_code == 202
    held = until(lambda: lease(http, 10, 5) or None, "two runs")
    held += lease(http, 10) if len(held) < 2 else []
    assert len(held) == 2
    assert lease(http, 10) == []
    assert server.end() == 0
    server.start()
    with httpx2.Client(base_url=server.url, timeout=30, trust_env=False) as again:
        shown = again.get("/v1/tenants/acme").json()
        assert shown["concurrency"] == 2
        until(
            lambda: (
                again.get("/v1/tenants/acme").json()["use"]
                == {"jobs": 1, "open": 5, "waiting": 3, "running": 2, "dead": 0}
                or None
            ),
            "the use is counted",
        )
        assert lease(again, 10, 3) == []
        complete(again, held[0])
        assert len(until(lambda: lease(again, 10, 5) or None, "one more")) == 1
        assert again.put("/v1/tenants/acme", json={}).json()["concurrency"] is None
        assert len(until(lambda: lease(again, 10, 5) or None, "the rest")) == 2


def test_job_limit_refuses_one_job_too_many_by_name(http: httpx2.Client) -> None:
    assert http.put("/v1/tenants/acme", json={"jobs": 2}).status_code == 200
    statuses = [create(http, f"acme.job-{number}").status_code for number in range(4)]
    assert statuses == [201, 201, 409, 409]
    problem = create(http, "acme.job-2").json()
    assert problem["code"] == "HRL2013"
    assert problem["detail"] == "acme has 2 jobs, 2 at most"
    assert http.put("/v1/tenants/acme", json={"jobs": 3}).status_code == 200
    assert create(http, "acme.job-2").status_code == 201
    assert http.get("/v1/jobs?tenant=acme").status_code == 200


def test_limits_are_changed_only_from_what_they_were_seen_to_be(http: httpx2.Client) -> None:
    first = http.put("/v1/tenants/acme", json={"jobs": 2})
    tag = first.headers["etag"]
    assert http.get("/v1/tenants/acme").headers["etag"] == tag
    other = http.put("/v1/tenants/acme", json={"jobs": 3}, headers={"If-Match": tag})
    assert other.status_code == 200
    for stale in (tag, f"W/{other.headers['etag']}"):
        answer = http.put("/v1/tenants/acme", json={"jobs": 4}, headers={"If-Match": stale})
        assert (answer.status_code, answer.json()["code"]) == (412, "HRL2007")
    dry = http.put("/v1/tenants/acme?validateOnly=true", json={"jobs": 9})
    assert dry.json()["jobs"] == 9
    assert http.get("/v1/tenants/acme").json()["jobs"] == 3


@pytest.mark.parametrize(
    "path, body, pointer",
    [
        ("/v1/tenants/acme", {"concurency": 1}, "/concurency"),
        ("/v1/tenants/acme", {"jobs": -1}, "/jobs"),
        ("/v1/tenants/acme", {"backlog": "10"}, "/backlog"),
        ("/v1/tenants/NoTenant", {"jobs": 1}, "?tenant"),
    ],
)
def test_limit_that_is_none_is_named(
    http: httpx2.Client, path: str, body: dict[str, object], pointer: str
) -> None:
    answer = http.put(path, json=body)
    assert answer.status_code == 400, answer.text
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]


def test_command_line_sets_some_limits_and_leaves_the_others(server: Server) -> None:
    server.ok("add", "hello", "--", "true")
    assert server.cli("tenant", "set", "acme").status == Exit.USAGE
    assert server.cli("tenant", "set", "acme", "--jobs", "many").status == Exit.USAGE
    said = server.ok("tenant", "set", "acme", "--concurrency", "10", "--jobs", "5")
    assert said.splitlines() == ["acme concurrency: none -> 10", "acme jobs: none -> 5"]
    said = server.ok("tenant", "set", "acme", "--jobs", "none")
    assert said.splitlines() == ["acme jobs: 5 -> none"]
    table = server.ok("tenants").splitlines()
    assert table[0].split() == ["TENANT", "JOBS", "RUNNING", "WAITING", "DEAD"]
    assert [" ".join(line.split()) for line in table[1:]] == [
        "acme 0 0 of 10 0 0",
        "default 1 0 0 0",
    ]
    listed = json.loads(server.ok("tenants", "-o", "json"))
    assert [(one["tenant"], one["concurrency"]) for one in listed] == [
        ("acme", 10),
        ("default", None),
    ]
    assert server.ok("tenants", "-o", "name").split() == ["acme", "default"]
