"""A server killed with -9 again and again loses nothing it acknowledged and doubles no slot."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from horolog.schemas.ids import slot_of
from horolog.schemas.records import (
    RunId,
    RunPlanned,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
)
from horolog.streams.audit import audit
from horolog.streams.host.replay import verify
from horolog.streams.log.sqlite import SqliteLog
from tests.waiting import until

KILLS = 20
JOBS = 100
EVERY_S = 3
SEED = 3


class Server:
    """The victim, started and killed."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.witness = folder / "witness"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it has answered."""
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "tests.acceptance.victim",
                str(self.data),
                str(self.witness),
                str(JOBS),
                str(EVERY_S),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def live(self, seconds: float) -> None:
        """Let it work; it must not end by itself."""
        assert self.process is not None
        with pytest.raises(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end."""
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return status


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A victim that is ended with the test."""
    victim = Server(tmp_path)
    yield victim
    if victim.process is not None:
        victim.end(signal.SIGKILL)


@pytest.mark.timeout(300)
def test_20_kills_within_2000_slots_lose_none_and_double_none(server: Server) -> None:
    chance = random.Random(SEED)
    for _ in range(KILLS):
        server.start()
        server.live(chance.uniform(0.2, 3.0))
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
    server.start()
    until(lambda: is_worked_off(server) or None, "the backlog is worked off", within_s=90)
    assert server.end(signal.SIGTERM) == 0

    log = SqliteLog(server.data, readonly=True)
    report = audit(log)
    assert not report.unexplained
    assert not report.doubled
    assert not report.violations
    assert report.slots_count >= 2_000
    for partition in range(log.partitions):
        assert verify(log, partition).difference == ""
    started, ended = Counter[str](), Counter[str]()
    tokens = set[tuple[str, int]]()
    for partition in range(log.partitions):
        for batch in log.read(partition, 0):
            for event in batch.events:
                if isinstance(event, RunStarted):
                    started[event.run_id] += 1
                    tokens.add((event.run_id, event.generation * 2**40 + event.seq))
                elif isinstance(event, RunSucceeded):
                    ended[event.run_id] += 1
    assert set(ended.values()) == {1}
    witnessed = [line.split() for line in server.witness.read_text().splitlines()]
    seen = Counter((run_id, int(token)) for run_id, token in witnessed)
    # Executed only under a committed grant, and no grant executed twice.
    assert set(seen) <= tokens
    assert set(seen.values()) == {1}
    assert {run_id for run_id, _ in seen} >= set(ended)


def is_worked_off(server: Server) -> bool:
    """Whether every run that was due 5 s before the log's end has ended."""
    log = SqliteLog(server.data, readonly=True)
    for partition in range(log.partitions):
        last_us, waiting = 0, set[RunId]()
        for batch in log.read(partition, 0):
            for event in batch.events:
                last_us = event.at_us
                if isinstance(event, RunPlanned):
                    waiting.add(event.run_id)
                elif isinstance(event, RunSucceeded | RunSkipped | RunRevoked):
                    waiting.discard(event.run_id)
        if any((slot_of(run_id) or 0) < last_us - 5_000_000 for run_id in waiting):
            return False
    log.close()
    return True
