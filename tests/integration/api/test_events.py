"""The ledger over HTTP: pages of events, and a stream that goes on where it ended."""

import json
from collections.abc import Iterator

import httpx2
import pytest

from tests.acceptance.server import Server, serving
from tests.integration.api.conforming import client

Json = dict[str, object]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that executes commands."""
    with serving(tmp_path_factory.mktemp("events")) as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """A client of it."""
    with client(server.url) as made:
        yield made


def create(http: httpx2.Client, name: str) -> httpx2.Response:
    """Register a job."""
    body = {"name": name, "schedule": "0 6 * * *", "target": {"command": ["true"]}}
    made = http.post("/v1/jobs", json=body)
    assert made.status_code == 201
    return made


def trigger(http: httpx2.Client, name: str, key: str) -> tuple[str, str]:
    """Ask for a run; its ID and the position of the request."""
    answer = http.post(f"/v1/jobs/default.{name}:trigger", json={"idempotencyKey": key})
    return str(answer.json()["runId"]), answer.headers["horolog-position"]


def frames(response: httpx2.Response) -> Iterator[tuple[str, Json]]:
    """Events of a stream: ID and body; comments are left out."""
    last_id = ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            last_id = line[4:]
        elif line.startswith("data: "):
            yield last_id, json.loads(line[6:])


def until_ended(response: httpx2.Response, run_id: str) -> list[tuple[str, Json]]:
    """Events up to the success of a run."""
    found: list[tuple[str, Json]] = []
    for each in frames(response):
        found.append(each)
        if each[1]["type"] == "RunSucceeded" and each[1]["runId"] == run_id:
            return found
    raise AssertionError("the stream ended")


def test_job_has_its_events_in_order_and_in_pages(http: httpx2.Client) -> None:
    made = create(http, "paged")
    seen = {"Horolog-Position": made.headers["horolog-position"]}
    whole = http.get("/v1/jobs/default.paged/events", headers=seen).json()
    assert [each["type"] for each in whole["items"]][:2] == ["JobRequested", "JobCreated"]
    assert whole["nextAfter"] is None
    assert all(each["jobId"] == "default.paged" for each in whole["items"])
    assert whole["items"][1]["definition"]["schedule"]["cron"] == "0 6 * * *"
    assert whole["items"][1]["at"].endswith("Z")
    found: list[Json] = []
    after: object = 0
    while after is not None:
        page = http.get(
            "/v1/jobs/default.paged/events", params={"limit": 1, "after": str(after)}
        ).json()
        found += page["items"]
        after = page["nextAfter"]
    assert found == whole["items"]


def test_run_has_its_own_events_only(http: httpx2.Client) -> None:
    create(http, "two")
    first, _ = trigger(http, "two", "a")
    with http.stream("GET", "/v1/events") as response:
        second, _ = trigger(http, "two", "b")
        until_ended(response, second)
    items = http.get(f"/v1/runs/{second}/events").json()["items"]
    assert {each["runId"] for each in items} == {second}
    assert items[0]["type"] == "RunRequested"
    assert items[-1]["type"] == "RunSucceeded"
    assert first != second


def test_stream_goes_on_after_the_last_event_without_gap_or_repeat(http: httpx2.Client) -> None:
    create(http, "streamed")
    with http.stream("GET", "/v1/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        first, _ = trigger(http, "streamed", "a")
        heard = until_ended(response, first)
    second, _ = trigger(http, "streamed", "b")
    middle = len(heard) // 2
    with http.stream("GET", "/v1/events", headers={"Last-Event-ID": heard[middle][0]}) as response:
        again = until_ended(response, second)
    rest = heard[middle + 1 :]
    assert [body for _, body in again[: len(rest)]] == [body for _, body in rest]
    places = [str(body["position"]) for _, body in [*heard[: middle + 1], *again]]
    assert len(places) == len(set(places))


def test_id_of_no_event_is_refused_and_a_job_that_is_not_there_too(http: httpx2.Client) -> None:
    refused = http.get("/v1/events", headers={"Last-Event-ID": "yesterday"})
    assert refused.status_code == 400
    assert "yesterday" in refused.text
    assert http.get("/v1/events", headers={"Last-Event-ID": "99:1"}).status_code == 400
    assert http.get("/v1/jobs/default.nowhere/events").json()["items"] == []
