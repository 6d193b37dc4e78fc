"""The README's first five minutes, line by line, and its other examples."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.server import ROOT, serving
from tests.builders.target import serving as target
from tests.waiting import until

README = (ROOT / "README.md").read_text(encoding="utf-8")
_MASKS = (
    (re.compile(r"@manual-\w+"), "@manual-KEY"),
    (re.compile(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "INSTANT"),
    (re.compile(r"\s+"), " "),
)


def block(after: str) -> str:
    """The first fenced block after a text."""
    rest = README.partition(after)[2]
    return rest.split("```", 2)[1].partition("\n")[2]


def masked(text: str) -> list[str]:
    """Lines without what differs each time."""
    for pattern, instead in _MASKS[:2]:
        text = pattern.sub(instead, text)
    # The year of the test's day is whatever it is.
    text = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "INSTANT", text)
    return [_MASKS[2][0].sub(" ", line).strip() for line in text.splitlines()]


def test_first_five_minutes_do_and_say_what_the_readme_says(tmp_path: Path) -> None:
    commands = block("<!-- run by tests/acceptance/test_readme.py -->").split("$ ./horolog ")[1:]
    assert len(commands) >= 10
    with serving(tmp_path) as server:
        for each in commands:
            line, _, expected = each.partition("\n")
            said = server.cli(*shlex.split(line))
            assert said.status == 0, (line, said)
            printed = masked(said.out + "\n" + said.err)
            for wanted in masked(expected):
                assert wanted in printed, (line, wanted, printed)
        assert server.end(signal.SIGINT) == 0
        server.start()
        assert "hello" in server.ok("jobs")


def test_job_file_of_the_readme_is_applied_and_its_http_job_calls_a_real_server(
    tmp_path: Path,
) -> None:
    with target() as web, serving(tmp_path) as server:
        text = block("## Jobs as files").replace("http://127.0.0.1:9000", web.url)
        (tmp_path / "jobs.yaml").write_text(text)
        shown = server.cli("apply", "-f", "jobs.yaml", "--dry-run", "--detailed-exitcode")
        assert (shown.status, web.received) == (10, [])
        server.ok("apply", "-f", "jobs.yaml")
        assert server.cli("apply", "-f", "jobs.yaml", "--detailed-exitcode").status == 0
        assert server.cli("diff", "-f", "jobs.yaml").status == 0
        server.ok("trigger", "nightly-report", "--wait")
        (request,) = web.received
        assert (request.method, request.path, request.body) == ("POST", "/run", b'{"region":"eu"}')
        assert request.headers["idempotency-key"].startswith("default.nightly-report@manual-")
        assert server.ok("logs", "nightly-report") == "done"


def test_python_function_of_the_readme_is_leased_and_called(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        code = block("## Python functions").replace("http://127.0.0.1:8700", server.url)
        (tmp_path / "mine.py").write_text(code)
        process = subprocess.Popen([sys.executable, "-P", str(tmp_path / "mine.py")])
        try:
            until(lambda: server.cli("job", "nightly").status == 0 or None, "the job is registered")
            said = server.cli("trigger", "nightly", "--wait", "--logs")
            assert said.status == 0, said
            assert "attempt 1" in said.out
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
