"""F2, F10: servers and workers stopped for longer than their leases (SIGSTOP), then let go on."""

import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from horolog.schemas.records import AttemptEnded, AttemptOutcome, RunSucceeded
from horolog.streams.log.sqlite import SqliteLog
from tests.torture.acks import Acks
from tests.torture.api import Client
from tests.torture.checker import Checked, events_of
from tests.torture.figures import Figures
from tests.torture.processes import Place, Proc, placed, removed
from tests.torture.rounds import definition, drained
from tests.torture.witness import Mark, marks
from tests.waiting import until

TERM_S: Final = 10.0
RUN_S: Final = 3.0
PAUSES_A_ROUND: Final = 10
JOBS: Final = 2


class Paused(msgspec.Struct, kw_only=True):
    """What a round of pauses found."""

    checked: Checked
    pauses: int = 0
    zombies: int = 0
    """Executions that went on after their lease had ended."""
    started_again_s: list[float] = msgspec.field(default_factory=list[float])
    """From the pause or kill of a worker until its run was executed under another token."""


def pause_round(folder: Path, seed: int, pauses: int) -> Paused:
    """Stop the server or a worker in the middle of a run, so many times."""
    chance = random.Random(f"pauses {seed}")
    acks = Acks()
    found = Paused(checked=Checked())
    with placed(folder) as place:
        place.start()
        register(place)
        for _ in range(2):
            place.work(RUN_S)
        client = Client(place.port, acks, "client", ["quick"], 0.2)
        client.start()
        for number in range(pauses):
            found.pauses += 1
            if number % 3 == 1:
                _pause_server(place, chance)
            else:
                _pause_worker(place, found)
        client.halt()
        assert client.failure is None, client.failure
        found.checked = drained(place, acks, frozen=True)
        _check_zombies(place, found)
    return found


def register(place: Place) -> None:
    """Runs of some seconds for the workers, quick ones for the server."""
    jobs = {f"remote{n}": definition({"handler": "remote"}, "5s") for n in range(JOBS)}
    jobs |= {f"inline{n}": definition({"handler": "inline"}, "1s") for n in range(JOBS)}
    jobs |= {"quick": definition({"handler": "inline"})}
    jobs |= {"edited-client": definition({"handler": "inline"})}
    for name, spec in jobs.items():
        place.register(name, spec)


def _pause_server(place: Place, chance: random.Random) -> None:
    """For less or more than a term; whoever waits for it waits, and no lease ends by it."""
    server = place.server
    assert server is not None
    server.send(signal.SIGSTOP)
    passed(chance.uniform(2.0, TERM_S * 1.5))
    server.send(signal.SIGCONT)
    until(lambda: place.is_ready() or None, "the server goes on")


def _pause_worker(place: Place, found: Paused) -> None:
    """Until another one has begun its run again; then it goes on as a zombie."""
    worker, mark = until(lambda: busy(place), "a worker executes a run")
    worker.send(signal.SIGSTOP)
    began_s = time.monotonic()
    until(lambda: again(place, mark), "its run starts again", within_s=TERM_S * 6)
    found.started_again_s.append(time.monotonic() - began_s)
    worker.send(signal.SIGCONT)
    until(lambda: has_ended(place, mark), "the zombie has seen its end")
    found.zombies += 1


def busy(place: Place) -> tuple[Proc, Mark] | None:
    """A worker that runs, and an execution of it that has just begun."""
    seen = list(marks(place.witness))
    over = {(mark.run_id, mark.token) for mark in seen if mark.kind != "start"}
    for mark in reversed(seen):
        for worker in place.workers:
            if (
                mark.pid == worker.pid
                and worker.is_running
                and (mark.run_id, mark.token) not in over
            ):
                return worker, mark
    return None


def again(place: Place, first: Mark) -> bool | None:
    """Whether the run was begun under a higher token."""
    return (
        any(
            mark.kind == "start" and mark.run_id == first.run_id and mark.token > first.token
            for mark in marks(place.witness)
        )
        or None
    )


def has_ended(place: Place, first: Mark) -> bool | None:
    """Whether that execution has ended or was stopped."""
    return (
        any(
            mark.kind != "start" and (mark.run_id, mark.token) == (first.run_id, first.token)
            for mark in marks(place.witness)
        )
        or None
    )


def passed(seconds: float) -> None:
    """Wait until so much time has passed."""
    end_s = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end_s or None, f"{seconds} s", seconds + 60)


def _check_zombies(place: Place, found: Paused) -> None:
    """No token whose lease had ended made a run succeed."""
    log = SqliteLog(place.data, readonly=True)
    lost: set[tuple[str, int]] = set()
    accepted: list[str] = []
    for event in events_of(log):
        if isinstance(event, AttemptEnded) and event.outcome is AttemptOutcome.LOST:
            lost.add((event.run_id, event.token))
        elif isinstance(event, RunSucceeded) and (event.run_id, event.token) in lost:
            accepted.append(f"{event.run_id} {event.token}")
    log.close()
    found.checked.stale_accepted += found.checked.found("zombies that succeeded", accepted)


def kill_workers(folder: Path, kills: int) -> Paused:
    """F9: kill workers in the middle of a run; another has it within a term and 5 s."""
    found = Paused(checked=Checked())
    with placed(folder) as place:
        place.start()
        register(place)
        for _ in range(2):
            place.work(RUN_S)
        for _ in range(kills):
            worker, mark = until(lambda: busy(place), "a worker executes a run")
            worker.end()
            began_s = time.monotonic()
            place.work(RUN_S)
            until(partial(again, place, mark), "its run starts again", within_s=60)
            found.started_again_s.append(time.monotonic() - began_s)
            found.pauses += 1
        found.checked = drained(place, Acks())
    return found


def pauses(folder: Path, faults: int, seed: int) -> Figures:
    """A tenth as many pauses as faults."""
    place = folder / f"pauses-{seed}"
    done = pause_round(place, seed, max(faults // 10, 3))
    if not done.checked.wrong:
        removed(place)
    return _figures(
        "F2 F10: server and workers stopped (SIGSTOP) and let go on",
        f"in the middle of a run; workers beyond their lease of {TERM_S:.0f} s",
        seed,
        done,
    )


def worker_kills(folder: Path, faults: int, seed: int) -> Figures:
    """A tenth as many kills as faults, beside those of the rounds of kills."""
    place = folder / f"workers-{seed}"
    done = kill_workers(place, max(faults // 10, 3))
    if not done.checked.wrong:
        removed(place)
    return _figures(
        "F9: workers killed with -9",
        f"in the middle of a run; leases of {TERM_S:.0f} s",
        seed,
        done,
    )


def _figures(fault: str, how: str, seed: int, done: Paused) -> Figures:
    return Figures(
        fault=fault,
        how=how,
        count=done.pauses,
        seed=seed,
        checked=done.checked,
        recovery_s=done.started_again_s,
        more={"zombies": done.zombies},
    )
