"""Bad input of each kind, by API and by job file alike: refused with a message that names the
field, the value and what would be right, with its code.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.acceptance.server import Server, serving


class Bad(NamedTuple):
    """A job that cannot be, and what must be said of it."""

    job: dict[str, Any]
    pointer: str
    value: str
    right: str
    code: str = "HRL1003"


H: dict[str, Any] = {"handler": "x"}


def job(**fields: Any) -> dict[str, Any]:
    """A job with fields that are wrong."""
    return {"target": H, **fields}


def slots(**fields: Any) -> dict[str, Any]:
    """A job whose schedule is wrong."""
    return job(schedule=fields)


def container(**fields: Any) -> dict[str, Any]:
    """A job whose container is wrong."""
    return {"target": {"container": {"image": "i", **fields}}}


CASES = [
    Bad(slots(cron="61 * * * *"), "/schedule/cron", "61", "0", "HRL1005"),
    Bad(slots(cron="* * * *"), "/schedule/cron", "* * * *", "takes 5: minute", "HRL1005"),
    Bad(slots(cron="0 0 30 2 *"), "/schedule/cron", "30 2", "never", "HRL1005"),
    Bad(slots(cron="0 6 * * *", second="75"), "/schedule/second", "75", "0", "HRL1005"),
    Bad(slots(cron="0 6 * * *", timezone="Europe/Pariss"), "/schedule/timezone", "Pariss",
        "Europe/Paris", "HRL1005"),
    Bad(slots(every="90"), "/schedule/every", "90", "90s"),
    Bad(slots(every=90), "/schedule/every", "90", "90s"),
    Bad(slots(at="tomorrow"), "/schedule/at", "tomorrow", "2026-", "HRL1005"),
    Bad(slots(every="1m", gap="jump"), "/schedule/gap", "jump", "'shift' or 'skip'"),
    Bad(slots(every="1m", overlapHour="third"), "/schedule/overlapHour", "third", "'first'"),
    Bad(slots(every="1m", jitter=5), "/schedule/jitter", "5", "90s"),
    Bad(slots(every="1m", start="soon"), "/schedule/start", "soon", "2026-"),
    Bad(slots(every="1m", end="late"), "/schedule/end", "late", "2026-"),
    Bad(slots(every="1m", anchor="2026-01-01"), "/schedule/anchor", "2026-01-01", "offset"),
    Bad(slots(crn="* * * * *"), "/schedule/crn", "crn", '"cron"', "HRL1004"),
    Bad(job(retires={"max": 1}), "/retires", "retires", '"retry"', "HRL1004"),
    Bad(job(timeout=600), "/timeout", "600", "90s"),
    Bad(job(timeoutS="600"), "/timeoutS", "600", "seconds"),
    Bad(job(killGrace="long"), "/killGrace", "long", "90s"),
    Bad(job(leaseTerm=30), "/leaseTerm", "30", "90s"),
    Bad(job(startingDeadline=True), "/startingDeadline", "true", "90s"),
    Bad(job(priority="urgent"), "/priority", "urgent", "'high', 'normal' or 'low'"),
    Bad(job(catchUp="some"), "/catchUp", "some", "'one', 'all' or 'skip'"),
    Bad(job(overlap="forbid"), "/overlap", "forbid", "'allow', 'skip', 'queue' or 'replace'"),
    Bad(job(pool=5), "/pool", "5", "string"),
    Bad(job(labels={"a": 1}), "/labels/a", "1", "string"),
    Bad(job(owner={"name": 1}), "/owner/name", "1", "string"),
    Bad(job(description=1), "/description", "1", "string"),
    Bad(job(contentType=1), "/contentType", "1", "string"),
    Bad(job(retry={"max": "3"}), "/retry/max", "3", "whole number"),
    Bad(job(retry={"max": -1}), "/retry/max", "-1", "0"),
    Bad(job(retry={"backoff": "0s"}), "/retry/backoff", "0s", "1s"),
    Bad(job(retry={"maxBackoff": 5}), "/retry/maxBackoff", "5", "90s"),
    Bad(job(retry={"lostMax": "x"}), "/retry/lostMax", "x", "whole number"),
    Bad(job(retry={"onTimeout": "x"}), "/retry/onTimeout", "x", "true"),
    Bad(job(payload={"a": 1}, contentType="text/plain"), "/payload", '"a"', "string"),
    Bad(job(payloadBase64="*"), "/payloadBase64", "", "base64"),
    Bad({"target": {"shell": "x"}}, "/target/shell", "shell", "command", "HRL1004"),
    Bad({"target": {"command": "echo hi"}}, "/target/command", "echo hi", "list"),
    Bad({"target": {"http": {"url": 1}}}, "/target/http/url", "1", "string"),
    Bad({"target": {"http": {"url": "ftp://x/"}}}, "/target/http/url", "ftp", "http"),
    Bad(container(cpu="many"), "/target/container/cpu", "many", "500m"),
    Bad(container(memory="big"), "/target/container/memory", "big", "256Mi"),
    Bad(container(args="x"), "/target/container/args", "x", "list"),
    Bad(job(payload="x" * 300_000), "/payload", "", "262144", "HRL1002"),
    Bad({"target": {"handler": "x", "command": ["a"]}}, "/target", "", "one", "HRL1006"),
    Bad(slots(cron="* * * * *", every="1m"), "/schedule", "", "one", "HRL1006"),
    Bad(job(timeout="1m", timeoutS=60), "/timeoutS", "", "timeout", "HRL1006"),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that executes nothing by itself."""
    with serving(tmp_path_factory.mktemp("bad"), "--workers", "0") as running:
        yield running


@pytest.mark.parametrize("bad", CASES, ids=lambda bad: f"{bad.pointer} {bad.right}")
def test_bad_job_is_refused_by_the_api_with_field_value_and_what_is_right(
    server: Server, bad: Bad
) -> None:
    body = {"name": "bad", **bad.job}
    with httpx2.Client(base_url=server.url, timeout=30, trust_env=False) as http:
        answer = http.post("/v1/jobs", json=body)
        assert http.get("/v1/jobs/default.bad").status_code == 404
    problem = answer.json()
    assert answer.status_code in (400, 413), problem
    told = [one for one in problem["errors"] if one["pointer"].startswith(bad.pointer)]
    assert told, problem
    text = " ".join(f"{one['detail']} {one.get('hint', '')}" for one in told)
    assert bad.value in text, problem
    assert bad.right in text, problem
    assert bad.code in {one["code"] for one in told}, problem


def test_job_file_with_every_bad_job_is_refused_whole_and_each_is_named(server: Server) -> None:
    jobs = {f"bad-{number}": bad.job for number, bad in enumerate(CASES)}
    path = server.folder / "bad.json"
    path.write_text(json.dumps({"jobs": jobs}), encoding="utf-8")
    said = server.cli("apply", "--yes", "-f", str(path))
    assert said.status == 2, said
    assert "Traceback" not in said.err
    for number, bad in enumerate(CASES):
        field = f"jobs.bad-{number}{bad.pointer.replace('/', '.')}"
        lines = [line for line in said.err.splitlines() if field in line]
        assert any(bad.value in line for line in lines), (field, said.err)
    assert server.ok("jobs", "-o", "name").strip() == ""


@pytest.mark.parametrize(
    "text, told",
    [
        ("jobs: {a: &x {target: {handler: h}}, b: *x}", "has an anchor"),
        ("jobs: " + "[" * 200 + "]" * 200, "levels"),
        ("jobs: {a: {target: {handler: h}}, a: {}}", "duplicate key"),
        ("# " + "x" * 1_048_577, "1048576"),
        ("job: {}", "'job'"),
    ],
)
def test_job_file_that_is_hostile_is_refused_as_usage(server: Server, text: str, told: str) -> None:
    path = server.folder / "hostile.yaml"
    path.write_text(text, encoding="utf-8")
    said = server.cli("apply", "--yes", "-f", str(path))
    assert said.status == 2, said
    assert told in said.err
    assert "Traceback" not in said.err


def test_data_directory_that_is_a_file_is_refused_with_its_path(server: Server) -> None:
    path = server.folder / "file"
    path.write_text("x", encoding="utf-8")
    said = server.cli("up", "--port", "0", "--data", str(path))
    assert said.status == 5, said
    assert str(path) in said.err
    assert "Traceback" not in said.err
