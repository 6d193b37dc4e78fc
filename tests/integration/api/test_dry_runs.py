"""`validateOnly` on every write, the past by `asOf`, slots by pages, tables built anew."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from horolog.api.app import routed
from horolog.cli.exits import Exit
from tests.acceptance.server import Server, serving
from tests.integration.api.conforming import client
from tests.waiting import until

JOB = {"schedule": {"cron": "0 6 * * *"}, "target": {"handler": "x"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that executes nothing by itself."""
    with serving(tmp_path_factory.mktemp("dry"), "--workers", "0") as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """A client of it."""
    with client(server.url) as made:
        yield made


def ledger(http: httpx2.Client) -> list[object]:
    """Types of all events of all jobs and how far the tables are."""
    jobs = [job["id"] for job in http.get("/v1/jobs?limit=1000").json()["items"]]
    events = [http.get(f"/v1/jobs/{job}/events?limit=1000").json()["items"] for job in sorted(jobs)]
    return [jobs, *events, http.get("/v1/tenants").json()]


def seen(response: httpx2.Response) -> dict[str, str]:
    """Header with which a read sees a write."""
    return {"Horolog-Position": response.headers["horolog-position"]}


WRITES: dict[str, tuple[dict[str, object] | None, int]] = {
    "POST /v1/jobs": ({"name": "new", **JOB}, 200),
    "POST /v1/jobs/default.dry:trigger": ({"idempotencyKey": "k"}, 200),
    "POST /v1/jobs/default.dry:pause": ({}, 200),
    "POST /v1/jobs/default.dry:resume": ({}, 200),
    "POST /v1/jobs/default.dry:backfill": (
        {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"},
        200,
    ),
    "PUT /v1/jobs/default.dry": ({**JOB, "timeout": "5m"}, 200),
    "PATCH /v1/jobs/default.dry": ({"timeout": "5m"}, 200),
    "DELETE /v1/jobs/default.dry": (None, 200),
    "POST /v1/runs/default.dry@manual-open:cancel": ({}, 200),
    "POST /v1/runs/default.dry@manual-open:retry": ({}, 200),
    "POST /v1/dead-letters:redrive": ({"runIds": ["default.dry@manual-open"]}, 200),
    "POST /v1/dead-letters:discard": ({"runIds": ["default.dry@manual-open"]}, 200),
    "PUT /v1/tenants/default": ({"jobs": 3}, 200),
    "POST /v1/workers/none:drain": (None, 404),
    "POST /v1/projections/history:rebuild": (None, 200),
}
"""Each write, with a body that it would do, and the status of its dry run."""

NO_DRY = {
    "POST /v1/runs:lease",
    "POST /v1/runs/{run}:heartbeat",
    "POST /v1/runs:heartbeat",
    "POST /v1/runs/{run}:complete",
    "POST /v1/runs/{run}/logs",
    "POST /v1/schedules:explain",
}
"""What a worker does with its lease; and what writes nothing."""


def routes() -> set[str]:
    """Every route that may write, from the document of the app itself."""
    paths = routed().openapi()["paths"]
    return {
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method in methods
        if method not in ("get", "parameters")
    }


def names(concrete: str, route: str) -> bool:
    """Whether a concrete request is one of a route."""
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/:]+", route), concrete) is not None


def test_every_write_of_the_app_has_a_dry_run_in_the_table() -> None:
    tried = {route for route in routes() if any(names(concrete, route) for concrete in WRITES)}
    assert routes() - tried == NO_DRY


@pytest.mark.parametrize("write", sorted(WRITES))
def test_dry_run_answers_and_changes_nothing(http: httpx2.Client, write: str) -> None:
    http.post("/v1/jobs", json={"name": "dry", **JOB})
    opened = http.post("/v1/jobs/default.dry:trigger", json={"idempotencyKey": "open"})
    assert http.get("/v1/jobs/default.dry/events", headers=seen(opened)).status_code == 200
    before = ledger(http)
    method, _, path = write.partition(" ")
    body, status = WRITES[write]
    kind = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
    answer = http.request(method, f"{path}?validateOnly=true", json=body, headers=kind)
    assert answer.status_code == status, answer.text
    assert "horolog-position" not in answer.headers
    assert ledger(http) == before


@pytest.mark.parametrize(
    "write",
    [
        "POST /v1/jobs/default.nothing:trigger",
        "POST /v1/jobs/default.nothing:pause",
        "POST /v1/runs/default.nothing@manual-x:cancel",
    ],
)
def test_dry_run_of_what_would_be_refused_is_refused_alike(http: httpx2.Client, write: str) -> None:
    method, _, path = write.partition(" ")
    dry = http.request(method, f"{path}?validateOnly=true", json={})
    real = http.request(method, path, json={})
    assert (dry.status_code, dry.json()["code"]) == (real.status_code, real.json()["code"])


def paused_for_three_days(http: httpx2.Client, name: str) -> str:
    """A job whose slots of three past days were skipped."""
    begin = datetime.now(UTC) - timedelta(days=4)
    schedule = {"cron": "0 */6 * * *", "start": begin.strftime("%Y-%m-%dT%H:%M:%SZ")}
    body = {"name": name, "schedule": schedule, "target": {"handler": "x"}, "catchUp": "skip"}
    made = http.post("/v1/jobs", json=body)
    assert made.status_code == 201, made.text
    return made.headers["horolog-position"]


def test_backfill_says_which_slots_before_it_makes_them(
    http: httpx2.Client, server: Server
) -> None:
    paused_for_three_days(http, "gaps")
    path = "/v1/jobs/default.gaps:backfill"
    to = datetime.now(UTC) - timedelta(days=1)
    begin = to - timedelta(days=2)
    span = {"from": f"{begin:%Y-%m-%d}T00:00:00Z", "to": f"{to:%Y-%m-%d}T00:00:00Z"}
    dry = http.post(f"{path}?validateOnly=true", json=span).json()
    assert dry.get("changed"), dry
    assert dry["slots"] == {
        "count": 8,
        "first": f"{begin:%Y-%m-%d}T00:00:00Z",
        "last": f"{to - timedelta(days=1):%Y-%m-%d}T18:00:00Z",
    }
    told = server.ok("backfill", "gaps", "--from", span["from"], "--to", span["to"], "--dry-run")
    assert told.startswith("would run 8 slots of default.gaps")
    assert http.get("/v1/jobs/default.gaps/runs").json()["items"] == []
    done = http.post(path, json=span)
    runs = http.get("/v1/jobs/default.gaps/runs", headers=seen(done)).json()["items"]
    assert len(runs) == 8


def test_slots_are_paged_without_gap_or_repeat(http: httpx2.Client) -> None:
    paused_for_three_days(http, "paged")
    to = datetime.now(UTC)
    span = {
        "from": f"{to - timedelta(days=3):%Y-%m-%d}T00:00:00Z",
        "to": f"{to:%Y-%m-%d}T00:00:00Z",
    }
    done = http.post("/v1/jobs/default.paged:backfill", json=span)
    path = "/v1/jobs/default.paged/slots"
    whole = http.get(path, headers=seen(done)).json()
    assert whole["nextCursor"] == ""
    assert len(whole["items"]) >= 12
    paged: list[object] = []
    cursor = ""
    while True:
        page = http.get(path, params={"limit": 5, "cursor": cursor}).json()
        paged += page["items"]
        cursor = page["nextCursor"]
        if not cursor:
            break
    assert paged == whole["items"]
    foreign = http.get(path, params={"cursor": "AAAA", "limit": 5})
    assert foreign.status_code == 400


def test_job_and_run_are_shown_as_they_were(http: httpx2.Client, server: Server) -> None:
    path = "/v1/jobs/default.past"
    made = http.post("/v1/jobs", json={"name": "past", **JOB})
    first = http.get(path, headers=seen(made)).json()
    triggered = http.post(f"{path}:trigger", json={"idempotencyKey": "k"})
    run = f"/v1/runs/{triggered.json()['runId']}"
    waiting = http.get(run, headers=seen(triggered)).json()
    changed = http.patch(path, json={"timeout": "7m"})
    second = http.get(path, headers=seen(changed)).json()
    gone = http.delete(path)
    assert http.get(path, headers=seen(gone)).status_code == 404
    between = first["updatedAt"]
    was = http.get(path, params={"asOf": between}).json()
    assert was.pop("asOf") == between
    assert {**was, "next": []} == {**first, "next": []}
    assert len(was["next"]) == 3
    later = http.get(path, params={"asOf": second["updatedAt"]}).json()
    assert (later["version"], later["timeout"]) == (2, "7m")
    shown = http.get(run, params={"asOf": second["updatedAt"]}).json()
    assert (shown["status"], shown["runId"]) == (waiting["status"], waiting["runId"])
    before = http.get(path, params={"asOf": "2020-01-01T00:00:00Z"})
    assert before.status_code == 404
    assert "was no job default.past at 2020-01-01T00:00:00Z" in before.json()["detail"]
    ahead = http.get(path, params={"asOf": "2099-01-01T00:00:00Z"})
    assert ahead.status_code == 400
    assert ahead.json()["errors"][0]["pointer"] == "?asOf"
    assert "7m" in server.ok("job", "past", "--as-of", second["updatedAt"])


def test_tables_are_built_anew_under_a_reader_and_say_how_far_they_are(
    http: httpx2.Client, server: Server
) -> None:
    made = http.post("/v1/jobs", json={"name": "kept", **JOB})
    assert http.get("/v1/jobs/default.kept", headers=seen(made)).status_code == 200
    before = ledger(http)
    answer = http.post("/v1/projections/history:rebuild")
    assert answer.status_code == 200, answer.text
    assert answer.json()["events"] > 0
    assert ledger(http) == before
    until(
        lambda: (
            all(
                part["lagRecords"] == 0
                for item in http.get("/v1/projections").json()["items"]
                for part in item["partitions"]
            )
            or None
        ),
        "the tables have all",
    )
    assert '"lagRecords"' in server.ok("projections", "status", "-o", "json")
    assert server.ok("projections", "rebuild").startswith("history rebuilt from")
    assert http.post("/v1/projections/other:rebuild").json()["code"] == "HRL2017"
    refused = server.cli("projections", "rebuild", "other")
    assert refused.status == Exit.NOT_FOUND
    assert "no projection other" in refused.err
