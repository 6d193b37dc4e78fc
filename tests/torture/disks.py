"""F18: the disk under the data folder fills up and gets room again, while the server works."""

import contextlib
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Final

from tests.torture.acks import Acks
from tests.torture.api import Answer, Api
from tests.torture.checker import Checked
from tests.torture.figures import Figures
from tests.torture.processes import Place, placed, removed
from tests.torture.rounds import definition, drained
from tests.torture.witness import command

DISK_MIB: Final = 64
BLOCK: Final = 16 * 4096
PAYLOAD: Final = "x" * 60_000
TRIES_MAX: Final = 2_000
FILLS_A_DISK: Final = 4


@contextlib.contextmanager
def small_disk(place: Path) -> Generator[Path]:
    """A file system of its own, in memory. Needs the right to mount."""
    place.mkdir(parents=True)
    options = f"size={DISK_MIB}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Write until nothing more fits; the file to remove again."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        # A write that found room for a part of it only is followed by one that finds none.
        while True:
            file.write(bytes(BLOCK))
    return ballast


def disk_round(folder: Path, cycles: int) -> tuple[Checked, list[float]]:
    """So many fills, then the checks; and the seconds from room until the server was well."""
    acks = Acks()
    recovered: list[float] = []
    with small_disk(folder / "disk") as disk, placed(folder / "place") as place:
        place.data = disk / "data"
        place.start()
        register(place)
        for cycle in range(cycles):
            ballast = fill(disk)
            refused = until_refused(place, acks, cycle)
            assert refused.status == 503, refused
            assert refused.body["code"] == "HRL4004", refused
            assert refused.body["retryable"], refused
            reads_go_on(place)
            ballast.unlink()
            recovered.append(seconds_to_ready(place))
            answer = trigger(place.api, "manual", f"after-{cycle}")
            assert answer.status == 202, answer
            acks.triggered(f"after-{cycle}", answer.body["runId"])
        checked = drained(place, acks)
    return checked, recovered


def register(place: Place) -> None:
    """Jobs that run, and one that prints."""
    jobs = {f"inline{n}": definition({"handler": "inline"}, "1s") for n in range(20)}
    jobs |= {"print": definition({"command": command(place.witness, 0)}, "1s")}
    jobs |= {"manual": definition({"handler": "inline"})}
    jobs |= {f"large{n}": definition({"handler": "inline"}) for n in range(20)}
    for name, spec in jobs.items():
        place.register(name, spec)


def trigger(api: Api, job: str, key: str, payload: str | None = None) -> Answer:
    """A trigger, sent once."""
    body = {"idempotencyKey": key, **({} if payload is None else {"payload": payload})}
    return api.call("POST", f"/v1/jobs/default.{job}:trigger", body)


def until_refused(place: Place, acks: Acks, cycle: int) -> Answer:
    """Write what needs room until that is refused: what the log freed before is used up first."""
    for number in range(TRIES_MAX):
        key = f"fill-{cycle}-{number}"
        answer = trigger(place.api, f"large{number % 20}", key, PAYLOAD)
        if answer.status == 202:
            acks.triggered(key, answer.body["runId"])
        elif answer.status != 429:
            return answer
    raise AssertionError("the disk never filled up")


def reads_go_on(place: Place) -> None:
    """What is there can be read, and the server says what is wrong."""
    assert place.api.call("GET", "/v1/jobs?limit=5").status == 200
    assert place.api.call("GET", "/v1/jobs/default.inline0/runs?limit=5").status == 200
    ready = place.api.call("GET", "/readyz")
    assert ready.status == 503, ready
    assert "HRL4004" in ready.body["detail"], ready
    assert place.api.call("GET", "/livez").status == 200


def seconds_to_ready(place: Place) -> float:
    """How long until it says that it can decide."""
    began = threading.Event()
    waited = 0.0
    while not place.is_ready():
        began.wait(0.02)
        waited += 0.02
        assert waited < 60, "room came back and the server did not"
    return waited


def disks(folder: Path, faults: int, seed: int) -> Figures:
    """A sixth as many fills as faults: 50 of 300, some on each disk, for the log grows."""
    cycles = max(faults // 6, 1)
    found = Figures(
        fault="F18: disk full",
        how=f"a file system of {DISK_MIB} MiB filled to the last block, then given room",
        count=cycles,
        seed=seed,
        checked=Checked(),
    )
    for number in range(0, cycles, FILLS_A_DISK):
        place = folder / f"disk-{seed}-{number}"
        checked, recovered = disk_round(place, min(FILLS_A_DISK, cycles - number))
        found.checked.add(checked)
        found.recovery_s += recovered
        if not checked.wrong:
            removed(place)
    return found
