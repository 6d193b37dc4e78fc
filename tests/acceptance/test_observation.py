"""What an operator looks at: `doctor` and `runs --watch`, against real servers and folders."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.server import Server, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that executes commands."""
    with serving(tmp_path) as running:
        yield running


def test_doctor_finds_nothing_wrong_with_a_server_that_is_well(server: Server) -> None:
    said = server.cli("doctor", "-o", "json")
    assert said.status == 0, said.out
    found = {each["id"]: each for each in json.loads(said.out)}
    assert {"server", "clock", "history", "backlog", "room", "disk", "history file"} <= set(found)
    assert all(each["level"] != "wrong" for each in found.values())
    table = server.cli("doctor")
    assert "CHECK" in table.out
    assert table.status == 0


def test_doctor_says_what_a_dead_letter_asks_for(server: Server) -> None:
    assert server.cli("add", "fails", "--", "false").status == 0
    assert server.cli("trigger", "fails", "--wait").status == 1
    found = {each["id"]: each for each in json.loads(server.cli("doctor", "-o", "json").out)}
    assert found["dead letters"]["level"] == "odd"
    assert "horolog dead" in found["dead letters"]["do"]


def test_doctor_of_a_stopped_server_looks_at_its_folder(server: Server) -> None:
    server.end()
    said = server.cli("doctor", "-o", "json")
    assert said.status == 0
    found = {each["id"]: each for each in json.loads(said.out)}
    assert found["server"]["level"] == "odd"
    assert "horolog up" in found["server"]["do"]
    assert found["log, partition 0"]["level"] == "fine"


def test_doctor_of_a_damaged_log_fails_and_names_the_page(server: Server) -> None:
    server.end()
    with sqlite3.connect(server.data / "ledger.db") as file:
        assert file.execute("DELETE FROM batches WHERE first_seq = 1").rowcount > 0
    said = server.cli("doctor", "-o", "json")
    assert said.status == 1
    found = {each["id"]: each for each in json.loads(said.out)}
    assert found["log"]["level"] == "wrong"
    assert "HRL5002" in found["log"]["do"]


def test_doctor_with_nothing_to_look_at_is_unavailable(server: Server, tmp_path: Path) -> None:
    server.end()
    said = server.cli("doctor", "--data", str(tmp_path / "nowhere"))
    assert said.status == 5
    assert "horolog up" in said.err


def test_watched_runs_are_told_as_they_change_and_can_be_piped(server: Server) -> None:
    assert server.cli("add", "watched", "--", "true").status == 0
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "horolog.cli", "runs", "watched", "--watch", "-o", "json"],
        stdout=subprocess.PIPE,
        text=True,
        env=server.environment,
    )
    try:
        assert server.cli("trigger", "watched", "--key", "a").status == 0
        assert process.stdout is not None
        seen: list[str] = []
        for line in process.stdout:
            seen.append(json.loads(line)["status"])
            if seen[-1] == "succeeded":
                break
        assert seen[-1] == "succeeded"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 0


def test_role_of_a_fleet_is_refused_with_what_to_do_instead(server: Server) -> None:
    said = server.cli("run", "scheduler")
    assert said.status == 2
    assert "horolog up" in said.err
