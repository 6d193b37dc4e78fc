"""What people do with one server, from the command line: import, run, stop, break, ask why."""

import json
import signal
import socket
from pathlib import Path

import pytest

from horolog.cli.exits import Exit
from tests.acceptance.server import Server, serving
from tests.waiting import until

CRONTAB = """\
SHELL=/bin/sh
MAILTO=root
# a comment
* * * * *   root  echo from crontab
17 *  * * * root  cd / && run-parts --report /etc/cron.hourly
CRON_TZ=Asia/Tokyo
0 9 * * *   root  printf 'tokyo'%line one%line two
@reboot     root  echo once
0 25 * * *  root  echo no such hour
0 0 31 2 *  root  echo no such day
"""


def runs_of(server: Server, name: str, *statuses: str) -> list[dict[str, object]]:
    """Runs of a job, newest first."""
    wanted = [part for status in statuses for part in ("--status", status)]
    found: list[dict[str, object]] = json.loads(server.ok("runs", name, "-o", "json", *wanted))
    return found


def test_crontab_is_imported_with_its_zones_and_a_due_line_runs(tmp_path: Path) -> None:
    place = tmp_path / "crontab"
    place.write_text(CRONTAB)
    with serving(tmp_path) as server:
        dry = server.cli("import", "crontab", str(place), "--user-field", "--dry-run")
        assert dry.status == 0, dry
        assert "@reboot" in dry.err
        assert f'{place}:9: "25": hour' in dry.err
        assert f'{place}:10: "0 0 31 2 *": never fires' in dry.err
        assert "3 lines can be carried over, 3 cannot" in dry.err
        assert server.cli("jobs", "-o", "json").out.strip() == "[]"
        said = server.cli("import", "crontab", str(place), "--user-field", "--yes")
        assert said.status == 0, said
        assert "3 created" in said.err
        again = server.cli("import", "crontab", str(place), "--user-field", "--yes")
        assert "0 created, 0 updated, 3 unchanged" in again.err
        jobs = json.loads(server.ok("jobs", "-o", "json"))
        by_cron = {job["schedule"]["cron"]: job for job in jobs}
        assert by_cron["0 9 * * *"]["schedule"]["timezone"] == "Asia/Tokyo"
        assert by_cron["0 9 * * *"]["next"][0].endswith("T00:00:00Z")
        minutely = by_cron["* * * * *"]["name"]
        done = until(
            lambda: runs_of(server, minutely, "succeeded") or None, "the due line", within_s=70
        )
        assert server.ok("logs", str(done[0]["runId"])) == "from crontab\n"
        tokyo = by_cron["0 9 * * *"]["name"]
        said = server.cli("trigger", tokyo, "--wait", "--logs")
        assert "tokyo" in said.out


def test_restart_goes_on_with_what_was_missed_made_up_by_policy(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.ok("add", "often", "--every", "1s", "--", "true")
        until(lambda: runs_of(server, "often", "succeeded") or None, "a run")
        assert server.end(signal.SIGINT) == 0
        server.start()
        seen = {str(run["slot"]) for run in runs_of(server, "often", "succeeded")}
        until(
            lambda: {str(r["slot"]) for r in runs_of(server, "often", "succeeded")} - seen or None,
            "a run after the restart",
        )
        assert server.end(signal.SIGTERM) == 0
    said = server.cli("audit")
    assert said.status == 0, said
    assert server.cli("replay", "--verify").status == 0


def test_stop_lets_what_runs_finish(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.ok("add", "slow", "--every", "1h", "--", "sh", "-c", "echo begun; sleep 1; echo end")
        server.ok("trigger", "slow", "--key", "k")
        until(lambda: runs_of(server, "slow", "running") or None, "it runs")
        assert server.end(signal.SIGINT) == 0
        server.start()
        assert [run["status"] for run in runs_of(server, "slow", "succeeded")] == ["succeeded"]
        assert server.ok("logs", "slow") == "begun\nend\n"


def test_cancel_ends_a_run_and_its_children(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.ok("add", "long", "--every", "1h", "--", "sh", "-c", "sleep 600 & sleep 600")
        run_id = server.ok("trigger", "long").strip()
        until(lambda: runs_of(server, "long", "running") or None, "it runs")
        server.ok("cancel", run_id, "--reason", "enough")
        until(lambda: runs_of(server, "long", "cancelled") or None, "it is cancelled")


def test_pause_is_said_by_why_and_resume_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.ok("add", "often", "--every", "1s", "--", "true")
        server.ok("pause", "often", "--reason", "weekend")
        trail = server.ok("why", "often")
        assert "paused" in trail
        assert "weekend" in trail
        server.ok("resume", "often")
        until(lambda: runs_of(server, "often", "succeeded") or None, "a run after the pause")
        server.ok("delete", "often")
        assert server.cli("job", "often").status == Exit.NOT_FOUND


def test_idempotency_key_names_one_run(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.ok("add", "job", "--every", "1h", "--", "true")
        first = server.ok("trigger", "job", "--key", "k")
        assert server.ok("trigger", "job", "--key", "k") == first
        other = server.cli("trigger", "job", "--key", "k", "--payload", "other")
        assert other.status == Exit.REFUSED
        assert "another payload" in other.err


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("add", "j", "--cron", "61 * * * *", "--", "true"), "minute"),
        (("add", "j", "--cron", "0 0 30 2 *", "--", "true"), "never"),
        (("add", "j", "--cron", "* * * * *", "--tz", "Europe/Pari", "--", "true"), "Europe/Paris"),
        (("add", "j", "--cron", "* * * * *", "--every", "1m", "--", "true"), "every"),
        (("add", "Bad Name", "--every", "1m", "--", "true"), "name"),
        (("add", "j", "--every", "1m"), "--"),
        (("trigger", "nothing"), "no job"),
        (("run", "default.nothing@manual-x"), "no run"),
        (("jobs", "-o", "xml"), "xml"),
        (("jbos",), "jobs"),
    ],
)
def test_bad_input_is_refused_and_says_what_would_be_right(
    tmp_path_factory: pytest.TempPathFactory, arguments: tuple[str, ...], told: str
) -> None:
    with serving(tmp_path_factory.mktemp("bad")) as server:
        said = server.cli(*arguments)
    assert said.status in (Exit.USAGE, Exit.REFUSED, Exit.NOT_FOUND), said
    assert told in said.err
    assert "Traceback" not in said.err


def test_port_in_use_and_data_in_use_are_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = Server(tmp_path).cli("up", "--port", port, "--data", str(tmp_path / "d"))
    assert said.status == Exit.UNAVAILABLE
    assert "--port" in said.err
    with serving(tmp_path) as server:
        said = server.cli("up", "--port", "0")
        assert said.status == Exit.UNAVAILABLE
        assert "in use by the process" in said.err


def test_setting_that_is_not_obeyed_is_refused_and_none_is_ignored(tmp_path: Path) -> None:
    server = Server(tmp_path)
    (tmp_path / "horolog.toml").write_text('log = "kafka://localhost:9092"\n')
    said = server.cli("up", "--port", "0")
    assert said.status == Exit.USAGE
    assert "kafka://localhost:9092" in said.err
    (tmp_path / "horolog.toml").write_text('dta = "x"\n')
    assert "data" in server.cli("up", "--port", "0").err


def test_help_imports_no_server() -> None:
    import subprocess
    import sys

    code = (
        "import sys; sys.argv = ['horolog', '--help']\n"
        "from horolog.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = [n for n in ('fastapi', 'uvicorn', 'pydantic') if n in sys.modules]\n"
        "print('HEAVY', heavy)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert "HEAVY []" in done.stdout
