"""Bad input of every kind: refused by API, job file and command line alike, with a message that
names the field, the value and what would be right; and nothing is done.
"""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from horolog.cli.exits import Exit
from tests.acceptance.server import Server, serving


class Bad(NamedTuple):
    """What is wrong with a job that is right otherwise."""

    field: str
    """JSON pointer."""
    value: object
    says: tuple[str, ...]
    """What the message has: the value, and what would be right."""
    code: str = "HRL1003"


CRON = "/schedule/cron"
JOBS = (
    Bad(CRON, "61 * * * *", ('"61"', "0 to 59"), "HRL1005"),
    Bad(CRON, "0 6 * *", ("4 fields", "takes 5"), "HRL1005"),
    Bad(CRON, "0 6 31 2 *", ("never fires", "L in the day of month"), "HRL1005"),
    Bad(CRON, "*/7x * * * *", ("step of 1 or more",), "HRL1005"),
    Bad(CRON, 5, ("5 is not a string",)),
    Bad("/schedule/timezone", "Mars/Base", ('"Mars/Base"', "tz database"), "HRL1005"),
    Bad("/schedule/timezone", "Berlin", ('"Berlin"', "Europe/Berlin"), "HRL1005"),
    Bad("/schedule/timezone", 1, ("1 is not a string",)),
    Bad("/schedule/every", "5m", ('"5m"', "one of cron, every and at"), "HRL1006"),
    Bad("/schedule/jitter", "2d", ('"2d"', "shorter than 1d"), "HRL1005"),
    Bad("/schedule/jitter", "-1s", ('"-1s"', '"90s"')),
    Bad("/schedule/gap", "maybe", ('"maybe"', "'shift' or 'skip'")),
    Bad("/schedule/overlapHour", "third", ('"third"', "'both'")),
    Bad("/schedule/second", "75", ('"75"', "0 to 59"), "HRL1005"),
    Bad("/schedule/start", "soon", ('"soon"', "2026-")),
    Bad("/schedule/anchor", "2026-01-01", ('"2026-01-01"', "offset")),
    Bad("/schedule/crn", "0 6 * * *", ('"crn"', 'did you mean "cron"'), "HRL1004"),
    Bad("/target", {}, ("handler, command, http, container",)),
    Bad("/target", {"handler": "x", "command": ["a"]}, ("handler and command",), "HRL1006"),
    Bad("/target/handler", "", ("name of a registered function",)),
    Bad("/target/command", [], ('["/bin/echo", "hi"]',)),
    Bad("/target/command", "echo hi", ('"echo hi" is not a list',)),
    Bad("/target/command", [True], ("true is not a string",)),
    Bad("/target/http", {}, ("missing",)),
    Bad("/target/http", {"url": "ftp://x"}, ('"ftp://x"', "http or https")),
    Bad("/target/http", {"url": "http://x", "method": "get"}, ('"get"', "POST")),
    Bad("/target/container", {"image": ""}, ('""', "busybox")),
    Bad("/timeout", 5, ("5 is not a string", '"90s"')),
    Bad("/timeout", "0s", ("0s is not from 1s to 7d",)),
    Bad("/retry", 3, ("3 is not an object",)),
    Bad("/retry/max", -1, ("-1 is not from 0 to 100",)),
    Bad("/retry/max", "3", ('"3" is not a whole number',)),
    Bad("/retry/backoff", "0s", ("0s is not from 1s to 1d",)),
    Bad("/retry/maxBackoff", "1s", ("1s is less than backoff",), "HRL1006"),
    Bad("/priority", "urgent", ('"urgent"', "'high', 'normal' or 'low'")),
    Bad("/pool", "a b", ('"a b"', "lower-case letters")),
    Bad("/catchUp", "two", ('"two"', "'one', 'all' or 'skip'")),
    Bad("/overlap", "maybe", ('"maybe"', "'replace'")),
    Bad("/startingDeadline", "0s", ("0s is less than 1s", "leave it out")),
    Bad("/owner", {"name": 3}, ("3 is not a string",)),
    Bad("/owner", {"notify": "nope"}, ('"nope"', "http or https")),
    Bad("/labels", ["a"], ('["a"] is not an object',)),
    Bad("/labels", {"a b": "c"}, ('"a b"', "letters, digits")),
    Bad("/labels", {"a": 1}, ("1 is not a string",)),
    Bad("/payload", "x" * 300_000, ("300002 bytes", "262144 bytes"), "HRL1002"),
    Bad("/payloadBase64", "***", ("base64",)),
    Bad("/contentType", "nonsense", ('"nonsense"', "application/json")),
    Bad("/description", 5, ("5 is not a string",)),
    Bad("/killGrace", "2h", ("2h is not from 0s to 1m",)),
    Bad("/leaseTerm", "1s", ("1s is not from 10s to 10m",)),
    Bad("/timeoutS", "600", ('"600"', "seconds")),
    Bad("/startingDeadline", True, ("true is not a string",)),
    Bad("/retry/lostMax", "x", ('"x" is not a whole number',)),
    Bad("/retry/onTimeout", "x", ('"x"', "true or false")),
    Bad("/target/shell", "x", ('"shell"', "command"), "HRL1004"),
    Bad("/target/container", {"image": "i", "cpu": "many"}, ('"many"', "500m")),
    Bad("/target/container", {"image": "i", "memory": "big"}, ('"big"', "256Mi")),
    Bad("/target/container", {"image": "i", "args": "x"}, ('"x" is not a list',)),
    Bad("/retires", {"max": 1}, ('"retires"', 'did you mean "retry"'), "HRL1004"),
    Bad("/timeuot", "5m", ('"timeuot"', 'did you mean "timeout"'), "HRL1004"),
)


def spoiled(bad: Bad) -> dict[str, object]:
    """The job that has it."""
    job: dict[str, object] = {"schedule": {"cron": "0 6 * * *"}, "target": {"handler": "x"}}
    *path, last = bad.field.strip("/").split("/")
    at = job
    for part in path:
        inner: dict[str, object] = {}
        inner.update(at.get(part) or {})  # type: ignore[call-overload]  # an object, by the table
        at[part] = at = inner
    if path == ["target"]:
        at.clear()
    at[last] = bad.value
    return job


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that executes nothing by itself."""
    with serving(tmp_path_factory.mktemp("bad"), "--workers", "0") as running:
        yield running


def named(bad: Bad) -> str:
    """Name of a case."""
    return f"{bad.field} {json.dumps(bad.value)[:30]}"


@pytest.mark.parametrize("bad", JOBS, ids=named)
def test_api_refuses_a_bad_field_and_says_what_would_be_right(server: Server, bad: Bad) -> None:
    with httpx2.Client(base_url=server.url, timeout=30, trust_env=False) as http:
        answer = http.post("/v1/jobs", json={"name": "bad", **spoiled(bad)})
        problem = answer.json()
        assert answer.status_code in {400, 413}, problem
        fault = next(one for one in problem["errors"] if one["pointer"].startswith(bad.field))
        assert fault["code"] == bad.code, fault
        assert all(part in fault["detail"] for part in bad.says), fault
        assert http.get("/v1/jobs/default.bad").status_code == 404


def test_job_file_with_all_of_them_names_each_field_of_each_job_and_does_nothing(
    server: Server, tmp_path: Path
) -> None:
    place = tmp_path / "jobs.json"
    # Those whose values are read by the file's own reader are told before those of rules.
    rules = [bad for bad in JOBS if bad.code != "HRL1002"]
    place.write_text(json.dumps({"jobs": {f"job{n}": spoiled(bad) for n, bad in enumerate(rules)}}))
    said = server.cli("apply", "-f", str(place))
    assert said.status == Exit.USAGE
    assert "nothing was done" in said.err
    for number, bad in enumerate(rules):
        lines = [line for line in said.err.splitlines() if f"jobs.job{number}." in line]
        assert any(
            bad.field.strip("/").replace("/", ".") in line
            and all(part in line for part in bad.says)
            for line in lines
        ), (bad, lines)
    assert server.ok("jobs", "-o", "name") == ""


FILES = {
    "alias.yaml": ("jobs: &a {x: *a}\n", "an anchor"),
    "bomb.yaml": ("a: &a [x]\njobs: [*a, *a]\n", "an anchor"),
    "tag.yaml": ("jobs: !!python/object {}\n", "tag"),
    "deep.yaml": ("jobs: " + "[" * 30 + "]" * 30 + "\n", "deeper than 20"),
    "twice.yaml": ("jobs:\n  a: {}\n  a: {}\n", "duplicate"),
    "two.yaml": ("jobs: {}\n---\njobs: {}\n", "second document"),
    "broken.yaml": ("jobs: [\n", "no YAML 1.2"),
    "latin.yaml": ("jobs: {}  # \xe9\n", "not UTF-8"),
    "huge.yaml": ("#" * 1_100_000, "more than 1048576"),
    "list.yaml": ("- jobs\n", "jobs"),
    "other.yaml": ("jobs: {}\nvesion: 1\n", "'vesion'"),
    "broken.json": ('{"jobs": {', "malformed at line 1"),
    "broken.toml": ("jobs = [\n", "no TOML"),
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_file_that_cannot_be_read_is_refused_by_its_name(
    server: Server, tmp_path: Path, name: str
) -> None:
    content, says = FILES[name]
    place = tmp_path / name
    place.write_bytes(content.encode("latin-1" if name == "latin.yaml" else "utf-8"))
    for verb in ("apply", "lint", "diff"):
        said = server.cli(verb, "-f", str(place))
        assert said.status == Exit.USAGE, said
        assert name in said.err
        assert says in said.err, said


COMMANDS = (
    (("add", "x", "--cron", "61 * * * *", "--", "true"), Exit.USAGE, "0 to 59"),
    (("add", "x", "--every", "5x", "--", "true"), Exit.USAGE, "90s"),
    (("add", "x", "--at", "tomorrow", "--", "true"), Exit.USAGE, "2026-12-24T09:00"),
    (("add", "x", "--cron", "0 6 * * *", "--tz", "Mars", "--", "true"), Exit.USAGE, "time zone"),
    (("add", "UPPER", "--", "true"), Exit.USAGE, "UPPER"),
    (("add", "x", "--cron", "0 6 * * *"), Exit.USAGE, "after --"),
    (("explain", "0 25 * * *"), Exit.USAGE, "0 to 23"),
    (("job", "nothing"), Exit.NOT_FOUND, "no job default.nothing"),
    (("run", "default.x@nothing"), Exit.NOT_FOUND, "default.x@nothing"),
    (("trigger", "nothing"), Exit.NOT_FOUND, "no job default.nothing"),
    (("jbos",), Exit.USAGE, "jobs"),
    (("jobs", "-o", "xml"), Exit.USAGE, "xml"),
    (("tenant", "set", "x", "--jobs", "many"), Exit.USAGE, "many"),
    (("completion", "tcsh"), Exit.USAGE, "bash"),
    (("audit", "--from", "yesterday"), Exit.USAGE, "yesterday"),
)


@pytest.mark.parametrize("arguments, status, says", COMMANDS, ids=lambda each: str(each)[:40])
def test_command_line_refuses_bad_arguments_by_name(
    server: Server, arguments: tuple[str, ...], status: Exit, says: str
) -> None:
    said = server.cli(*arguments)
    assert said.status == status, said
    assert says in said.err, said
    assert "Traceback" not in said.err


def test_data_folder_and_port_that_cannot_be_used_are_named_with_what_to_do(
    server: Server, tmp_path: Path
) -> None:
    place = tmp_path / "file"
    place.write_text("")
    said = server.cli("up", "--data", str(place / "data"), "--port", "0")
    assert (said.status, "--data" in said.err, str(place) in said.err) == (
        Exit.UNAVAILABLE,
        True,
        True,
    )
    second = server.cli("up", "--data", str(server.data), "--port", "0")
    assert second.status == Exit.UNAVAILABLE
    assert "in use by the process" in second.err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        third = server.cli("up", "--data", str(tmp_path / "own"), "--port", str(port))
    assert third.status == Exit.UNAVAILABLE
    assert f"127.0.0.1:{port}" in third.err
    assert "--port" in third.err


def test_server_that_was_told_all_this_still_serves(server: Server) -> None:
    assert server.ok("add", "good", "--every", "1h", "--", "true")
    assert server.end(signal.SIGINT) == 0
