"""The HTTP API against a real server: contracts that clients rely on."""

import json
import re
from collections.abc import Iterator

import httpx2
import pytest

from horolog.api.contract import ANSWERS
from tests.acceptance.server import ROOT, Server, serving
from tests.integration.api.conforming import client
from tests.waiting import until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that executes nothing by itself."""
    with serving(tmp_path_factory.mktemp("api"), "--workers", "0") as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """A client of it."""
    with client(server.url) as made:
        yield made


JOB = {"schedule": {"cron": "0 6 * * *"}, "target": {"handler": "x"}}


def create(http: httpx2.Client, name: str, **changes: object) -> httpx2.Response:
    """Create a job."""
    return http.post("/v1/jobs", json={"name": name, **JOB, **changes})


def seen(response: httpx2.Response) -> dict[str, str]:
    """Header with which a read sees a write."""
    return {"Horolog-Position": response.headers["horolog-position"]}


def test_job_is_created_once_found_again_and_refused_when_different(http: httpx2.Client) -> None:
    first = create(http, "once")
    assert (first.status_code, first.headers["etag"]) == (201, '"1"')
    assert create(http, "once").status_code == 200
    other = create(http, "once", timeout="5m")
    assert other.status_code == 409
    problem = other.json()
    assert other.headers["content-type"] == "application/problem+json"
    assert problem["code"] == "HRL2005"
    assert http.get(problem["type"]).status_code == 200


def test_put_right_after_a_put_changes_the_job_whatever_the_history_shows(
    http: httpx2.Client,
) -> None:
    path = "/v1/jobs/default.put-twice"
    assert http.put(path, json=JOB).status_code == 201
    again = http.put(path, json={**JOB, "timeout": "5m"})
    assert (again.status_code, again.headers["etag"]) == (200, '"2"')


def test_short_form_and_job_file_form_are_the_same_job(http: httpx2.Client) -> None:
    body = {"name": "short", "schedule": "0 6 * * *", "target": {"handler": "x"}, "timeoutS": 60}
    assert http.post("/v1/jobs", json=body).status_code == 201
    assert create(http, "short", timeout="1m").status_code == 200


def test_a07_two_people_edit_the_same_job_and_no_change_is_lost(http: httpx2.Client) -> None:
    created = create(http, "edited")
    path = "/v1/jobs/default.edited"

    def change(body: dict[str, object], **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return http.patch(path, json=body, headers={**seen(created), **named})

    cron: dict[str, object] = {"schedule": {"cron": "0 7 * * *"}}
    first = change(cron, If_Match='"1"')
    assert (first.status_code, first.headers["etag"]) == (200, '"2"')
    assert change({"timeout": "5m"}, If_Match='"1"').status_code == 412
    assert change({"timeout": "5m"}, If_Match='W/"2"').status_code == 412
    until(lambda: http.get(path).headers["etag"] == '"2"' or None, "the view has the change")
    assert change({"timeout": "5m"}).status_code == 200
    assert change({"timeout": "6m"}, If_Match="*").status_code == 200
    assert http.delete(path, headers={"If-Match": '"1"'}).status_code == 412
    now = http.get(path, headers=seen(change({"timeout": "7m"}))).json()
    assert (now["schedule"]["cron"], now["timeout"]) == ("0 7 * * *", "7m")


def test_validate_only_checks_and_writes_nothing(http: httpx2.Client) -> None:
    answer = http.post("/v1/jobs?validateOnly=true", json={"name": "dry", **JOB})
    assert answer.status_code == 200
    assert len(answer.json()["next"]) == 3
    assert http.get("/v1/jobs/default.dry").status_code == 404


@pytest.mark.parametrize(
    "body, pointer",
    [
        ({"name": "x", "schedule": "61 * * * *", "target": {"handler": "h"}}, "/schedule"),
        ({"name": "x", "schedule": "CRON_TZ=Asia/Tokyo 0 9 * * *", "target": {}}, "/schedule"),
        ({"name": "x", "target": {"handler": "h"}, "timeuot": "1m"}, "/timeuot"),
        ({"name": "x", "target": {"handler": "h"}, "timeout": 5}, "/timeout"),
        ({"name": "x", "target": {"handler": "h"}, "retry": {"backoff": "0s"}}, "/retry/backoff"),
        ({"name": "x", "target": {"handler": "h", "command": ["a"]}}, "/target"),
        ({"name": "UPPER", "target": {"handler": "h"}}, "/name"),
        ({"name": "x", "target": {"handler": "h"}, "priority": "urgent"}, "/priority"),
    ],
)
def test_bad_job_is_refused_with_a_pointer(
    http: httpx2.Client, body: dict[str, object], pointer: str
) -> None:
    answer = http.post("/v1/jobs", json=body)
    assert answer.status_code == 400, answer.text
    problem = answer.json()
    assert any(error["pointer"].startswith(pointer) for error in problem["errors"]), problem


def test_body_that_is_too_large_too_deep_or_no_json_is_refused(http: httpx2.Client) -> None:
    def post(content: bytes, kind: str = "application/json") -> int:
        headers = {"content-type": kind}
        return http.post("/v1/jobs", content=content, headers=headers).status_code

    assert post(b'"' + b"x" * (2 << 20) + b'"') == 413
    assert post(b"[" * 100 + b"]" * 100) == 400
    assert post(b"{nonsense") == 400
    assert post(b"{}", "text/plain") == 415
    assert http.put("/v1/jobs", json={}).status_code == 405
    assert http.get("/v1/nothing").status_code == 404


def test_a05_time_filter_needs_an_offset(http: httpx2.Client) -> None:
    create(http, "filtered")
    path = "/v1/jobs/default.filtered/runs"
    until(lambda: http.get(path).status_code == 200 or None, "the job is in the view")
    assert http.get(path, params={"from": "2024-01-15T00:00:00Z"}).status_code == 200
    for bad in ("2024-01-15", "2024-01-15T00:00:00", "yesterday"):
        assert http.get(path, params={"from": bad}).status_code == 400
    assert http.get(path, params={"form": "x"}).status_code == 400
    assert http.get(path, params={"cursor": "forged"}).status_code == 400


def leased(http: httpx2.Client, request_id: str, most: int = 10) -> list[dict[str, object]]:
    """Runs leased by a worker over HTTP."""
    body = {"workerId": "w", "max": most, "handlers": ["x"], "requestId": request_id}
    answer = http.post("/v1/runs:lease", json=body, headers={"Prefer": "wait=10"})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, object]] = answer.json()
    return found


def test_l05_report_without_or_with_a_wrong_token_changes_nothing(http: httpx2.Client) -> None:
    create(http, "token")
    http.post("/v1/jobs/default.token:trigger", json={})
    (lease,) = leased(http, "token")
    path = f"/v1/runs/{lease['runId']}"
    right = {"fencingToken": lease["fencingToken"], "claimId": lease["claimId"]}
    token = int(str(lease["fencingToken"]))

    def post(verb: str, body: dict[str, object]) -> int:
        return http.post(f"{path}:{verb}", json=body).status_code

    assert post("complete", {"claimId": lease["claimId"]}) == 400
    assert post("heartbeat", {"claimId": lease["claimId"]}) == 400
    assert post("heartbeat", {**right, "fencingToken": token - 1}) == 409
    assert post("complete", {**right, "fencingToken": token + 1, "ok": True}) == 409
    assert post("heartbeat", right) == 200
    assert post("complete", {**right, "ok": True, "output": "well"}) == 200
    assert post("complete", {**right, "ok": True, "output": "well"}) == 200
    until(lambda: http.get(path).json()["status"] == "succeeded" or None, "it has succeeded")


def test_l15_same_request_again_gets_the_same_leases(http: httpx2.Client) -> None:
    create(http, "batch")
    for number in range(5):
        http.post("/v1/jobs/default.batch:trigger", json={"idempotencyKey": str(number)})
    first = leased(http, "batch")
    again = leased(http, "batch")
    assert first
    assert [each["fencingToken"] for each in again] == [each["fencingToken"] for each in first]
    for each in first:
        proof = {"fencingToken": each["fencingToken"], "claimId": each["claimId"], "ok": True}
        assert http.post(f"/v1/runs/{each['runId']}:complete", json=proof).status_code == 200


def test_a01_pages_of_runs_skip_none_and_double_none(http: httpx2.Client) -> None:
    create(http, "paged")
    last = None
    for number in range(7):
        last = http.post("/v1/jobs/default.paged:trigger", json={"idempotencyKey": str(number)})
    assert last is not None
    found: list[str] = []
    cursor = ""
    while True:
        params = {"limit": "3", **({"cursor": cursor} if cursor else {})}
        page = http.get("/v1/jobs/default.paged/runs", params=params, headers=seen(last)).json()
        found += [run["runId"] for run in page["items"]]
        cursor = page["nextCursor"]
        if not cursor:
            break
    assert len(found) == len(set(found)) == 7


def test_health_documents_and_explanation_are_served(http: httpx2.Client) -> None:
    assert http.get("/livez").status_code == 200
    assert http.get("/readyz").json()["status"] == "ok"
    assert http.get("/openapi.json").json()["openapi"].startswith("3.1")
    answer = http.post(
        "/v1/schedules:explain",
        json={"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, "count": 3},
    )
    assert len(answer.json()["slots"]) == 3


def test_browser_of_another_site_may_do_nothing(http: httpx2.Client) -> None:
    headers = {"Origin": "https://evil.example"}
    answer = http.post("/v1/jobs", json={"name": "csrf", **JOB}, headers=headers)
    assert answer.status_code == 403


def test_unknown_object_is_a_404_whoever_owns_it(http: httpx2.Client) -> None:
    for path in ("/v1/jobs/default.none", "/v1/jobs/bad", "/v1/runs/default.none@manual-x"):
        assert http.get(path).status_code == 404


@pytest.mark.parametrize(
    "method, path, pointer",
    [
        ("GET", "/v1/jobs/default.wrong/next?count=many", "?count"),
        ("GET", "/v1/jobs/default.wrong/next?count=0", "?count"),
        ("GET", "/v1/jobs?paused=perhaps", "?paused"),
        ("GET", "/v1/jobs?cursr=x", "?cursr"),
        ("GET", "/v1/tenants?limit=1", "?limit"),
        ("DELETE", "/v1/jobs/default.wrong?cancelRunning=yes", "?cancelRunning"),
        ("POST", "/v1/jobs/default.wrong:pause?until=2030-01-01T00:00:00Z", "?until"),
    ],
)
def test_parameter_that_is_unknown_or_no_such_value_is_named(
    http: httpx2.Client, method: str, path: str, pointer: str
) -> None:
    made = create(http, "wrong")
    answer = http.request(method, path, headers=seen(made))
    assert answer.status_code == 400, answer.text
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]


def test_probe_of_health_may_add_what_it_likes(http: httpx2.Client) -> None:
    assert http.get("/livez", params={"t": "1"}).status_code == 200


PROOF = {"fencingToken": 1, "claimId": "c"}
RUN = "/v1/runs/default.wrong@manual-x"


@pytest.mark.parametrize(
    "path, body, pointer",
    [
        ("/v1/jobs/default.wrong:trigger", {"idempotencykey": "x"}, "/idempotencykey"),
        ("/v1/jobs/default.wrong:trigger", {"slot": "2026-12-01"}, "/slot"),
        ("/v1/jobs/default.wrong:pause", {"until": "tomorrow"}, "/until"),
        ("/v1/jobs/default.wrong:backfill", {"from": "2026-12-01T00:00:00Z"}, "/to"),
        ("/v1/dead-letters:redrive", {"runIds": []}, "/runIds"),
        ("/v1/schedules:explain", {"schedule": "0 6 * * *", "count": 0}, "/count"),
        ("/v1/schedules:explain", {"schedule": {"crn": "0 6 * * *"}}, "/schedule/crn"),
        ("/v1/runs:lease", {"workerId": "w", "max": True}, "/max"),
        ("/v1/runs:lease", {"workerId": ""}, "/workerId"),
        ("/v1/runs:heartbeat", {"runs": [PROOF]}, "/runs/0/runId"),
        (f"{RUN}:heartbeat", {"claimId": "c"}, "/fencingToken"),
        (f"{RUN}:heartbeat", {**PROOF, "fencingToken": "1"}, "/fencingToken"),
        (f"{RUN}:complete", PROOF, "/ok"),
        (f"{RUN}:complete", {**PROOF, "ok": True, "result": "failed"}, "/result"),
    ],
)
def test_body_that_is_wrong_is_refused_with_a_pointer_to_what_is(
    http: httpx2.Client, path: str, body: dict[str, object], pointer: str
) -> None:
    create(http, "wrong")
    answer = http.post(path, json=body)
    assert answer.status_code == 400, answer.text
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]


def test_document_describes_every_body_every_answer_and_all_it_refers_to(
    http: httpx2.Client,
) -> None:
    text = http.get("/openapi.json").text
    document = json.loads(text)
    schemas = document["components"]["schemas"]
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert referred == set(schemas)
    assert {(method, path) for path, each in document["paths"].items() for method in each} == set(
        ANSWERS
    )
    no_body = {"jobs_resume", "runs_retry", "workers_drain", "projections_rebuild"}
    for path in document["paths"].values():
        for method, operation in path.items():
            has_body = method in ("post", "put", "patch")
            assert ("requestBody" in operation) == (
                has_body and operation["operationId"] not in no_body
            ), operation["operationId"]


def test_committed_openapi_document_is_the_servers(http: httpx2.Client) -> None:
    committed = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert http.get("/openapi.json").json() == committed
