"""Workers over HTTP and in the server: listed, drained, told so."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from horolog.cli.exits import Exit
from tests.acceptance.server import Server, serving
from tests.integration.api.conforming import client
from tests.waiting import until

FUNCTION = """\
import pathlib
from horolog.workers import Worker
worker = Worker("{url}", concurrency=2)
@worker.job("slow")
def slow(ctx):
    pathlib.Path("begun").touch()
    while not pathlib.Path("go").exists():
        ctx.cancelled.wait(0.05)
worker.run()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with one slot of its own."""
    with serving(tmp_path, "--workers", "1") as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """A client of it."""
    with client(server.url) as made:
        yield made


def listed(http: httpx2.Client) -> dict[str, dict[str, object]]:
    """Workers by kind."""
    return {str(one["kind"]): one for one in http.get("/v1/workers").json()["items"]}


def ask(http: httpx2.Client, wait_s: int = 0) -> httpx2.Response:
    """A worker over HTTP asks for a run."""
    body = {"workerId": "raw:1", "handlers": ["x"], "slots": 3}
    return http.post("/v1/runs:lease", json=body, headers={"Prefer": f"wait={wait_s}"})


def test_raw_worker_is_listed_with_its_runs_and_told_to_drain(http: httpx2.Client) -> None:
    http.post("/v1/jobs", json={"name": "x", "target": {"handler": "x"}})
    for _ in range(2):
        http.post("/v1/jobs/default.x:trigger", json={})
    (held,) = until(lambda: ask(http, 5).json() or None, "a lease")
    shown = listed(http)["http"]
    assert (shown["workerId"], shown["pools"], shown["handlers"]) == ("raw:1", ["default"], ["x"])
    assert (shown["slots"], shown["runs"], shown["draining"]) == (3, [held["runId"]], False)
    assert http.post("/v1/workers/raw:1:drain?validateOnly=true").json()["draining"] is False
    drained = http.post("/v1/workers/raw:1:drain")
    assert (drained.status_code, drained.json()["draining"]) == (200, True)
    refused = ask(http)
    assert (refused.json(), refused.headers["horolog-draining"]) == ([], "true")
    proof = {name: held[name] for name in ("fencingToken", "claimId")}
    beat = http.post(f"/v1/runs/{held['runId']}:heartbeat", json=proof).json()
    assert (beat["status"], beat["draining"]) == ("RENEWED", True)
    done = http.post(f"/v1/runs/{held['runId']}:complete", json={**proof, "ok": True})
    assert done.status_code == 200
    assert listed(http)["http"]["running"] == 0
    assert http.post("/v1/workers/nobody:drain").json()["code"] == "HRL2004"


def test_worker_that_waits_for_a_run_is_told_at_once_that_it_drains(
    server: Server, http: httpx2.Client
) -> None:
    answers: list[httpx2.Response] = []

    def wait() -> None:
        with httpx2.Client(base_url=server.url, timeout=60, trust_env=False) as other:
            answers.append(ask(other, 30))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: listed(http).get("http"), "it asks")
    http.post("/v1/workers/raw:1:drain")
    http.post("/v1/jobs", json={"name": "x", "target": {"handler": "x"}})
    http.post("/v1/jobs/default.x:trigger", json={})
    waiting.join()
    assert [answer.json() for answer in answers] == [[]]
    assert answers[0].headers["horolog-draining"] == "true"


def test_agent_that_drains_ends_its_run_and_takes_no_other(server: Server) -> None:
    command = ["sh", "-c", f"until test -e {server.folder}/go; do sleep 0.05; done"]
    server.ok("add", "slow", "--", *command)
    first = server.ok("trigger", "slow").strip()
    until(lambda: ("running" in server.ok("run", first)) or None, "it runs")
    (agent,) = json.loads(server.ok("workers", "-o", "json"))
    assert (agent["kind"], agent["slots"], agent["runs"]) == ("agent", 1, [first])
    said = server.ok("drain", agent["workerId"])
    assert said.strip() == f"{agent['workerId']} takes nothing new, 1 runs go on"
    second = server.ok("trigger", "slow").strip()
    (server.folder / "go").touch()
    until(lambda: ("succeeded" in server.ok("run", first)) or None, "the first ends")
    (agent,) = json.loads(server.ok("workers", "-o", "json"))
    assert (agent["draining"], agent["running"]) == (True, 0)
    table = server.ok("workers").splitlines()
    assert "0 of 1" in table[1]
    assert "draining" in table[1]
    assert "succeeded" not in server.ok("run", second)
    assert server.cli("drain", "nobody").status == Exit.NOT_FOUND


def test_sdk_worker_that_is_drained_finishes_what_runs_and_ends(server: Server) -> None:
    (server.folder / "mine.py").write_text(FUNCTION.format(url=server.url))
    process = subprocess.Popen([sys.executable, "-P", "mine.py"], cwd=server.folder)
    try:
        until(lambda: server.cli("job", "slow").status == 0 or None, "the job is registered")
        run_id = server.ok("trigger", "slow").strip()
        until(lambda: (server.folder / "begun").exists() or None, "it runs")
        listed = json.loads(server.ok("workers", "-o", "json"))
        sdk = next(one for one in listed if one["kind"] == "sdk")
        assert (sdk["slots"], sdk["handlers"], sdk["runs"]) == (2, ["slow"], [run_id])
        server.ok("drain", sdk["workerId"])
        (server.folder / "go").touch()
        assert process.wait(timeout=60) == 0
        assert "succeeded" in server.ok("run", run_id)
    finally:
        process.kill()
        process.wait()
