"""Rounds of kills: a workload, faults at random and at failpoints, then the checker."""

import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tests.torture.acks import Acks
from tests.torture.api import Client
from tests.torture.checker import Checked, check, is_worked_off
from tests.torture.failpoints import POINTS
from tests.torture.figures import Figures
from tests.torture.processes import Place, placed, removed
from tests.torture.witness import command
from tests.waiting import until

KILLS_A_ROUND: Final = 25
INLINE_JOBS: Final = 30
REMOTE_JOBS: Final = 10
COMMAND_JOBS: Final = 4
CLIENTS: Final = 2
WORKERS: Final = 2
WORKER_KILLS: Final = 0.15
"""Chance that a worker goes with its server."""
LIFE_S: Final = 3.0
FAILPOINT_S: Final = 6.0
MANUAL_JOBS: Final = 6
DRAINED_S: Final = 120.0


class Kill(NamedTuple):
    """How the server ended and how long it took until it decided again."""

    how: str
    recovery_s: float | None
    """None: it ended before."""


class Round(msgspec.Struct, kw_only=True):
    """What a round did and found."""

    seed: int
    kills: list[Kill]
    worker_kills: int
    checked: Checked


def definition(target: dict[str, object], every: str | None = None) -> dict[str, object]:
    """A job that survives as many lost leases as it takes."""
    schedule: dict[str, object] = {} if every is None else {"schedule": {"every": every}}
    return {
        **schedule,
        "target": target,
        "catchUp": "all",
        "leaseTerm": "10s",
        "killGrace": "1s",
        "retry": {"max": 50, "backoff": "1s", "maxBackoff": "2s", "lostMax": 100},
    }


def register(place: Place) -> None:
    """The workload's jobs."""
    jobs = {f"inline{n}": definition({"handler": "inline"}, "2s") for n in range(INLINE_JOBS)}
    jobs |= {f"remote{n}": definition({"handler": "remote"}, "3s") for n in range(REMOTE_JOBS)}
    program = command(place.witness, 0.1)
    jobs |= {f"command{n}": definition({"command": program}, "5s") for n in range(COMMAND_JOBS)}
    jobs |= {f"manual{n}": definition({"handler": "inline"}) for n in range(MANUAL_JOBS - 2)}
    jobs |= {f"manual{n}": definition({"handler": "remote"}) for n in (4, 5)}
    for name, spec in jobs.items():
        place.register(name, spec)


def kill_round(folder: Path, seed: int, kills: int) -> Round:
    """A new data folder, so many kills of its server, then the checks."""
    chance = random.Random(f"kills {seed}")
    acks = Acks()
    with placed(folder) as place:
        place.start()
        register(place)
        assert place.server is not None
        place.server.end()
        for _ in range(WORKERS):
            place.work()
        jobs = [f"manual{n}" for n in range(MANUAL_JOBS)]
        clients = [Client(place.port, acks, f"client{n}", jobs, 0.05) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        found: list[Kill] = []
        worker_kills = 0
        for number in range(kills):
            found.append(_kill(place, chance, seed * KILLS_A_ROUND + number))
            if chance.random() < WORKER_KILLS:
                chance.choice(place.workers).end()
                place.work()
                worker_kills += 1
        place.start()
        for client in clients:
            client.halt()
            assert client.failure is None, client.failure
        checked = drained(place, acks)
    return Round(seed=seed, kills=found, worker_kills=worker_kills, checked=checked)


def drained(
    place: Place,
    acks: Acks,
    *,
    marks_are_timed: bool = True,
    frozen: bool = False,
    witnessed: bool = True,
) -> Checked:
    """Let the server work off what is due, end it and the workers in peace, and check."""
    until(lambda: is_worked_off(place.data) or None, "the backlog is worked off", DRAINED_S)
    for worker in place.workers:
        if worker.is_running:
            assert worker.end(signal.SIGTERM) == 0, worker.log.read_text()
    assert place.server is not None
    assert place.server.end(signal.SIGTERM) == 0, place.log.read_text()
    return check(
        place.data,
        place.witness,
        acks,
        marks_are_timed=marks_are_timed,
        frozen=frozen,
        witnessed=witnessed,
    )


def _kill(place: Place, chance: random.Random, number: int) -> Kill:
    """Start the server, with a failpoint every other time, and see to its end."""
    names = list(POINTS)
    name = names[number // 2 % len(names)] if number % 2 else ""
    began_s = time.monotonic()
    point = f"{name}:{chance.randint(1, POINTS[name].passes_max)}" if name else ""
    server = place.launch(point)
    recovery_s = None
    if place.await_ready():
        recovery_s = time.monotonic() - began_s
    wait_s = FAILPOINT_S if name else chance.uniform(0.0, LIFE_S)
    try:
        server.popen.wait(wait_s)
    except subprocess.TimeoutExpired:
        name = ""
    status = server.end()
    assert status == -signal.SIGKILL, place.log.read_text()
    return Kill(name or "random", recovery_s)


def killed(folder: Path, faults: int, seed: int) -> Figures:
    """Rounds of kills until there were so many; the folder of a round that failed stays."""
    found = Figures(
        fault="F1 F9 F19 F21: server and workers killed with -9",
        how="at a random instant, or at one of the named failpoints",
        count=0,
        seed=seed,
        checked=Checked(),
    )
    points = Counter[str]()
    for number in range(-(-faults // KILLS_A_ROUND)):
        place = folder / f"kills-{seed + number}"
        kills = min(KILLS_A_ROUND, faults - number * KILLS_A_ROUND)
        done = kill_round(place, seed + number, kills)
        found.checked.add(done.checked)
        found.count += len(done.kills) + done.worker_kills
        found.recovery_s += [one.recovery_s for one in done.kills if one.recovery_s is not None]
        points.update(kill.how for kill in done.kills)
        points["worker"] += done.worker_kills
        if done.checked.wrong:
            found.checked.wrong.append(f"repeat it with: make torture FAULTS=25 SEED={done.seed}")
            break
        removed(place)
    found.more["points"] = dict(sorted(points.items()))
    return found
