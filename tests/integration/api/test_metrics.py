"""The metrics of a real server: each moves when what it counts happens."""

import re
from collections.abc import Callable, Iterator, Mapping

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.server import ROOT, Server, serving
from tests.integration.api.conforming import client
from tests.waiting import until

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]
GONE = {"horolog_input_lag_records": "no topics on one machine"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that executes commands."""
    with serving(tmp_path_factory.mktemp("metrics")) as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """A client of it."""
    with client(server.url) as made:
        yield made


def scrape(http: httpx2.Client) -> Samples:
    """A scrape, read by the official parser."""
    answer = http.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """One sample; 0 if it is not there yet."""
    return samples.get((name, frozenset(labels.items())), 0.0)


def becomes(http: httpx2.Client, is_so: Callable[[Samples], bool], what: str) -> None:
    """Wait until a scrape shows it."""
    until(lambda: is_so(scrape(http)) or None, what)


def create(http: httpx2.Client, name: str, command: list[str], **changes: object) -> None:
    """Register a job."""
    body = {"name": name, "target": {"command": command}, **changes}
    assert http.post("/v1/jobs", json=body).status_code == 201


def trigger(http: httpx2.Client, name: str, key: str) -> httpx2.Response:
    """Ask for a run."""
    return http.post(f"/v1/jobs/default.{name}:trigger", json={"idempotencyKey": key})


def test_every_metric_of_the_interface_is_there_with_its_name(http: httpx2.Client) -> None:
    text = http.get("/metrics").text
    served = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    page = (ROOT / "docs" / "metrics.md").read_text()
    named = set(re.findall(r"^\| `(horolog_\w+)", page, re.MULTILINE))
    assert named - GONE.keys() == {name for name in served if name.startswith("horolog_")}
    assert "process_cpu_seconds_total" in served


def test_slot_that_runs_moves_latencies_outcomes_and_durations(http: httpx2.Client) -> None:
    create(http, "ticks", ["true"], schedule={"every": "1s"}, priority="high")
    place = {"tier": "high", "pool": "default"}
    becomes(
        http,
        lambda seen: (
            value(seen, "horolog_slots_total", outcome="run") >= 2
            and value(seen, "horolog_start_latency_seconds_count", **place) >= 2
            and value(seen, "horolog_fire_latency_seconds_count", **place) >= 2
            and value(seen, "horolog_runs_total", status="succeeded") >= 2
            and value(seen, "horolog_run_duration_seconds_count") >= 2
            and value(seen, "horolog_transaction_seconds_count") > 0
        ),
        "runs of slots are counted",
    )
    http.post("/v1/jobs/default.ticks:pause", json={})
    http.post("/v1/jobs/default.ticks:resume", json={})
    until(
        lambda: http.post("/v1/jobs/default.ticks:pause", json={}).status_code == 200 or None,
        "it is paused",
    )


def test_dead_letter_and_repeated_trigger_are_counted(http: httpx2.Client) -> None:
    before = scrape(http)
    create(http, "fails", ["false"])
    first = trigger(http, "fails", "k")
    assert trigger(http, "fails", "k").json()["runId"] == first.json()["runId"]
    becomes(
        http,
        lambda seen: (
            value(seen, "horolog_dead_letters_total")
            == value(before, "horolog_dead_letters_total") + 1
            and value(seen, "horolog_runs_total", status="dead") >= 1
            and value(seen, "horolog_duplicates_suppressed_total")
            > value(before, "horolog_duplicates_suppressed_total")
        ),
        "the dead run and the repeat are counted",
    )


def test_run_that_no_worker_takes_is_in_the_backlog(http: httpx2.Client) -> None:
    create(http, "nobody", ["true"], target={"handler": "nowhere"}, priority="low", pool="far")
    trigger(http, "nobody", "k")
    place = {"tier": "low", "pool": "far"}
    becomes(
        http,
        lambda seen: (
            value(seen, "horolog_backlog_runs", **place) == 1
            and value(seen, "horolog_oldest_waiting_seconds", **place) > 0
        ),
        "it waits",
    )


def test_report_with_a_wrong_token_is_counted(http: httpx2.Client) -> None:
    create(http, "remote", ["true"], target={"handler": "x"}, pool="remote")
    run_id = trigger(http, "remote", "k").json()["runId"]
    body = {"fencingToken": 7, "claimId": "c", "ok": True}
    assert http.post(f"/v1/runs/{run_id}:complete", json=body).status_code == 409
    becomes(http, lambda seen: value(seen, "horolog_reports_rejected_total") >= 1, "it is counted")


def test_no_job_run_or_tenant_is_a_label(http: httpx2.Client) -> None:
    allowed = {"tier", "pool", "outcome", "status", "le", "partition", "generation", "topic"}
    for name, labels in scrape(http):
        assert {label for label, _ in labels} <= allowed, name
