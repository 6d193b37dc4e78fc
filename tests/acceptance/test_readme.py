"""What the README's job file and function do to others; its commands are run by `test_pages`."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.server import ROOT, serving
from tests.builders.target import serving as target
from tests.waiting import until

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(after: str) -> str:
    """The first fenced block after a text."""
    rest = README.partition(after)[2]
    return rest.split("```", 2)[1].partition("\n")[2]


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
