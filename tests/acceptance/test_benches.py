"""Each benchmark of `make bench` runs, small, and says what its figures include."""

import json
import subprocess
import sys

import pytest

from tests.acceptance.server import ROOT

SIZES = {
    "api": ["40"],
    "audit": ["5000"],
    "codec": [],
    "core": ["50"],
    "dispatcher": ["500"],
    "fairness": ["200", "10"],
    "herd": ["50"],
    "log": [],
    "memory": ["200", "1"],
    "project": ["100"],
    "recovery": ["200"],
    "seconds": ["20", "2"],
    "steady": ["40", "2"],
}
"""Arguments with which each is quick."""


def test_every_benchmark_is_run_here() -> None:
    there = {place.stem for place in ROOT.glob("bench/*.py")} - {"__init__", "report", "server"}
    assert there == set(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_benchmark_prints_lines_that_say_what_they_include(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *SIZES[name]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines
    for line in lines:
        assert line["benchmark"] == name
        assert line["includes"]
        assert line["python"]
        assert line["cores"]
