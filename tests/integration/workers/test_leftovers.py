"""Programs that outlived their server are ended, and no others."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from horolog.workers.executors.leftovers import Leftovers
from horolog.workers.executors.protocol import CLAIM_VARIABLE


@contextmanager
def program(script: str, claim_id: str) -> Generator[subprocess.Popen[str]]:
    """A shell with a claim, once it has said that it is ready."""
    with subprocess.Popen(
        ["sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin", CLAIM_VARIABLE: claim_id},
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_leftover_program_and_what_it_started_are_ended_and_others_left_alone() -> None:
    script = "setsid sh -c 'echo ready; exec sleep 600' & wait"
    with program(script, "claim-lost") as lost, program(script, "claim-other") as other:
        leftovers = Leftovers({"claim-lost", "claim-gone"})
        assert leftovers.end() == 2
        leftovers.close()
        assert lost.wait(30) != 0
        assert lost.stdout is not None
        # The end of the pipe: nothing that inherited it runs any more.
        assert lost.stdout.read() == ""
        assert other.poll() is None
        found = Leftovers({"claim-other"})
        assert found.end() == 2
        found.close()


@pytest.mark.parametrize("grace_s", [0.01, 600])
def test_leftover_program_that_ignores_term_is_killed(grace_s: float) -> None:
    with program("trap '' TERM; echo ready; while :; do sleep 0.1; done", "deaf") as deaf:
        leftovers = Leftovers({"deaf"}, grace_s=grace_s)
        assert leftovers.end() >= 1
        if grace_s > 1:
            leftovers.close()
        assert deaf.wait(30) == -9


def test_leftovers_without_live_leases_are_none() -> None:
    assert Leftovers(()).end() == 0
