"""Servers for the time of a test or a session of tests.

    KAFKA_FOR_TESTS   the address of a broker that is there already
    else              jars from Maven, run with the machine's Java (`jars`)

They end with this process, whatever ends it: their keeper reads a pipe that only this one holds.
"""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from tests.servers.jars import ServerMissing

ROOT: Final = Path(__file__).parents[2]


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What the keeper says."""

    kafka: str
    """As `bootstrap.servers` has it."""
    pids: list[int] = []
    """Brokers' processes; none are ours to kill at an address that was given."""


def given() -> Ready | None:
    """The broker whose address somebody gave."""
    address = os.environ.get("KAFKA_FOR_TESTS")
    return Ready(kafka=address) if address else None


@contextmanager
def brokers(count: int) -> Generator[Ready, None, None]:
    """A cluster of so many brokers of our own. Raises ServerMissing."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.servers", str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        said = keeper.stdout.readline()
        if not said:
            raise ServerMissing("the servers did not start; what is wrong stands above")
        yield msgspec.json.decode(said, type=Ready)
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()
