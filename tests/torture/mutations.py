"""Changes to the files of a data folder, and what a server makes of the result."""

import contextlib
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from horolog.schemas.errors import HorologError
from horolog.streams.host.replay import digest_of, state_at
from horolog.streams.host.snapshots import Recovery
from horolog.streams.log.sqlite import SqliteLog
from tests.torture.checker import Checked
from tests.torture.figures import Figures
from tests.torture.processes import Place, placed
from tests.torture.rounds import definition
from tests.torture.witness import marks
from tests.waiting import until

PAGE: Final = 4096
LEDGER: Final = "ledger.db"
WAL: Final = "ledger.db-wal"


class Mutated(msgspec.Struct, kw_only=True):
    """What became of the changed folders."""

    count: int = 0
    refused: int = 0
    recovered: int = 0
    """Opened; of these the state is that of a prefix of the log that was written."""
    lost_events: int = 0
    """Events after the prefixes, over all that were opened."""
    silent: list[str] = msgspec.field(default_factory=list[str])
    kinds: dict[str, int] = msgspec.field(default_factory=dict[str, int])


def mutated(source: Path, folder: Path, count: int, seed: int) -> Mutated:
    """Change so many copies of a folder, open each as a new owner would, and compare its state with
    that of the original log at the same `seq`.
    """
    found = Mutated()
    kinds = Counter[str]()
    reference = folder / "reference"
    shutil.copytree(source, reference)
    log = SqliteLog(reference, readonly=True)
    for number in range(count):
        place = folder / f"mutated{number}"
        what = mutate(source, place, seed * 10_000 + number)
        found.count += 1
        kinds[what.split(" at ")[0]] += 1
        try:
            other = SqliteLog(place, readonly=True)
        except HorologError:
            found.refused += 1
        else:
            _compare(log, other, what, found)
            other.close()
        shutil.rmtree(place)
    log.close()
    found.kinds = dict(sorted(kinds.items()))
    return found


def files(folder: Path, faults: int, seed: int) -> Figures:
    """Two thirds as many mutations as faults: 200 of 300."""
    count = max(faults * 2 // 3, 1)
    with placed(folder / f"files-{seed}") as place:
        worked(place, 10)
        fold_wal(place.data)
        worked(place, 10)
    found = mutated(place.data, folder / f"mutated-{seed}", count, seed)
    checked = Checked(wrong=found.silent)
    return Figures(
        fault="F20 F22: files of the data folder changed",
        how=", ".join(found.kinds),
        count=count,
        seed=seed,
        checked=checked,
        more={"refused": found.refused, "prefix": found.recovered, "silent": len(found.silent)},
    )


def worked(place: Place, runs: int) -> None:
    """A server that has done so many runs more, and was killed."""
    place.start()
    done = len(list(marks(place.witness)))
    place.api.call("PUT", "/v1/jobs/default.fast", definition({"handler": "inline"}, "1s"))
    until(lambda: len(list(marks(place.witness))) >= done + 2 * runs or None, "it works")
    assert place.server is not None
    place.server.end()


def _compare(log: SqliteLog, other: SqliteLog, what: str, found: Mutated) -> None:
    if other.log_id != log.log_id:
        found.silent.append(f"{what}: another log")
        return
    lost = 0
    for partition in range(log.partitions):
        try:
            state = Recovery(other, partition).state
        except HorologError:
            found.refused += 1
            return
        known = state_at(log, partition, state.seq) if state.seq else None
        if known is not None and digest_of(known) != digest_of(state):
            found.silent.append(f"{what}: partition {partition} at seq {state.seq}")
            return
        lost += log.last_seq(partition) - state.seq
    found.recovered += 1
    found.lost_events += lost


def mutate(source: Path, place: Path, seed: int) -> str:
    """Copy a folder and change it; what was done, in words."""
    chance = random.Random(f"mutation {seed}")
    shutil.copytree(source, place)
    # The index of the WAL is not part of the data; a process makes it anew.
    (place / f"{LEDGER}-shm").unlink(missing_ok=True)
    name = chance.choice(list(_KINDS))
    return f"{name} at {_KINDS[name](source, place, chance)} (seed {seed})"


def fold_wal(place: Path) -> None:
    """Fold the WAL into the file, with no thought of whose it is."""
    with contextlib.closing(sqlite3.connect(place / LEDGER)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _flip(_: Path, place: Path, chance: random.Random) -> str:
    file = place / chance.choice((LEDGER, WAL))
    bit = 1 << chance.randrange(8)
    return f"{file.name} {_write(file, chance, lambda data: bytes([data[0] ^ bit]), 1)}"


def _noise(_: Path, place: Path, chance: random.Random) -> str:
    file = place / chance.choice((LEDGER, WAL))
    size = chance.choice((16, 512, PAGE))
    return f"{file.name} {_write(file, chance, lambda data: chance.randbytes(len(data)), size)}"


def _zeros(_: Path, place: Path, chance: random.Random) -> str:
    file = place / chance.choice((LEDGER, WAL))
    size = chance.choice((16, 512, PAGE))
    return f"{file.name} {_write(file, chance, lambda data: bytes(len(data)), size)}"


def _cut(_: Path, place: Path, chance: random.Random) -> str:
    file = place / chance.choice((LEDGER, WAL))
    data = file.read_bytes()
    kept = chance.randrange(len(data)) if data else 0
    file.write_bytes(data[:kept])
    return f"{file.name} {kept}"


def _swap_pages(_: Path, place: Path, chance: random.Random) -> str:
    """A page where another one belongs, as a torn or misdirected write leaves it."""
    file = place / LEDGER
    data = bytearray(file.read_bytes())
    pages = len(data) // PAGE
    if pages < 2:
        return "nothing"
    one, other = chance.randrange(pages), chance.randrange(pages)
    data[one * PAGE : (one + 1) * PAGE] = data[other * PAGE : (other + 1) * PAGE]
    file.write_bytes(data)
    return f"page {one} from {other}"


def _old_pages(_: Path, place: Path, chance: random.Random) -> str:
    """Some pages as they were before the WAL was folded in, the rest as after."""
    before = (place / LEDGER).read_bytes()
    fold_wal(place)
    data = bytearray((place / LEDGER).read_bytes())
    pages = [number for number in range(len(before) // PAGE) if chance.random() < 0.5]
    for number in pages:
        data[number * PAGE : (number + 1) * PAGE] = before[number * PAGE : (number + 1) * PAGE]
    (place / LEDGER).write_bytes(data)
    return f"{len(pages)} pages"


def _without_wal(_: Path, place: Path, _chance: random.Random) -> str:
    (place / WAL).unlink(missing_ok=True)
    return "the end"


def _foreign_wal(_: Path, place: Path, _chance: random.Random) -> str:
    """A WAL beside a file that it does not belong to."""
    wal = (place / WAL).read_bytes()
    fold_wal(place)
    (place / WAL).write_bytes(wal[: len(wal) // 2])
    return "its half"


_KINDS: Final[Mapping[str, Callable[[Path, Path, random.Random], str]]] = {
    "a bit flipped": _flip,
    "noise written": _noise,
    "zeros written": _zeros,
    "the end cut": _cut,
    "a page in the place of another": _swap_pages,
    "old pages kept": _old_pages,
    "the WAL left out": _without_wal,
    "half of an old WAL put back": _foreign_wal,
}


def _write(file: Path, chance: random.Random, change: Callable[[bytes], bytes], size: int) -> str:
    data = bytearray(file.read_bytes())
    if not data:
        return "nothing"
    at = chance.randrange(len(data))
    data[at : at + size] = change(bytes(data[at : at + size]))
    file.write_bytes(data)
    return f"{at}+{size}"
