"""`doctor`: what is not as it should be, and what to do about it.

Asks a running server over its API, and looks at the data folder if it is on this machine. Nothing
is changed but for one small file, written and removed to see how long the disk takes.
"""

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from horolog.cli.client import Object
from horolog.cli.exits import Exit, Stop
from horolog.cli.output import Column
from horolog.cli.session import Session
from horolog.projections.stores.sqlite import SqliteHistory
from horolog.schemas.errors import HorologError
from horolog.streams.host.snapshots import fold
from horolog.streams.host.tzdata import tzdata_version
from horolog.streams.log.sqlite import SqliteLog

ROOM_WRONG_BYTES: Final = 200 * 1024 * 1024
ROOM_ODD_BYTES: Final = 2 * 1024 * 1024 * 1024
SYNC_ODD_S: Final = 0.05
SYNCS: Final = 5
LAG_ODD_S: Final = 5.0
WAITING_ODD_S: Final = 60.0
SNAPSHOT_ODD_S: Final = 300.0
SKEW_ODD_S: Final = 2.0
_MIB: Final = 1024 * 1024


class Level(StrEnum):
    """How bad it is."""

    FINE = "fine"
    ODD = "odd"
    WRONG = "wrong"


class Finding(NamedTuple):
    """What was looked at, what was seen, what to do."""

    check: str
    level: Level
    seen: str
    do: str = ""


def doctor(session: Session, data: Path | None) -> None:
    """Look at everything; exit 1 if something is wrong, 5 if there is nothing to look at."""
    folder = data or Path(session.settings.data)
    findings = [*_server(session), *_folder(folder)]
    items: list[Object] = [
        {"id": each.check, "level": each.level.value, "seen": each.seen, "do": each.do}
        for each in findings
    ]
    cells = [[each.check, each.level.value, each.seen, each.do] for each in findings]
    columns = [Column("CHECK"), Column("IS"), Column("SEEN"), Column("DO")]
    session.out.rows(items, columns, cells, empty="nothing to look at")
    wrong = [each for each in findings if each.level is Level.WRONG]
    if all(each.check in {"server", "folder"} for each in findings):
        raise Stop(
            Exit.UNAVAILABLE,
            "there is neither a server nor a data folder to look at",
            hint="start one with `horolog up`, or name one with --server or --data",
        )
    if wrong:
        raise Stop(Exit.FAILED, f"{len(wrong)} of {len(findings)} checks are wrong")


# --- a server


def _server(session: Session) -> Iterator[Finding]:
    client = session.client
    try:
        ready = client.probe("/readyz")
        text = client.text("/metrics")
    except Stop as stop:
        do = "start one with `horolog up`, or name another with --server"
        yield Finding("server", Level.ODD, stop.message, do)
        return
    detail = str(ready.object.get("detail", ""))
    if ready.status == 200:
        level = Level.ODD if detail else Level.FINE
        yield Finding("server", level, detail or f"{client.server} decides and answers")
    else:
        yield Finding("server", Level.WRONG, detail, "see the page of the code it names")
    yield from _readings(_Readings(text))


class _Readings:
    """The samples of a scrape, by name; labels stay as text."""

    def __init__(self, text: str) -> None:
        self._samples: list[tuple[str, str, float]] = []
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                plain, _, labels = name.partition("{")
                self._samples.append((plain, labels.rstrip("}"), float(value)))

    def one(self, name: str) -> float:
        """The value without labels; 0 if it is not there."""
        return next((value for found, _, value in self._samples if found == name), 0.0)

    def all(self, name: str) -> list[tuple[str, float]]:
        """Labels and values."""
        return [(labels, value) for found, labels, value in self._samples if found == name]


def _readings(read: _Readings) -> Iterator[Finding]:
    skew_s = read.one("horolog_clock_skew_seconds")
    yield _judged(
        "clock", abs(skew_s) > SKEW_ODD_S, f"{skew_s:+.1f} s beyond the time believed",
        "have it set by NTP, slowly; a step is believed after 60 s (docs/time.md)",
    )  # fmt: skip
    lag_s = read.one("horolog_projection_lag_seconds")
    yield _judged(
        "history", lag_s > LAG_ODD_S, f"{lag_s:.1f} s behind the log",
        "the disk or the processor is busy; runs are not affected",
    )  # fmt: skip
    age_s = read.one("horolog_snapshot_age_seconds")
    yield _judged(
        "snapshots", age_s > SNAPSHOT_ODD_S, f"oldest change without one: {age_s:.0f} s",
        "a restart reads more; report it if it goes on",
    )  # fmt: skip
    waiting = read.all("horolog_oldest_waiting_seconds")
    for labels, oldest_s in waiting:
        yield _judged(
            "backlog", oldest_s > WAITING_ODD_S, f"{labels}: the oldest waits {oldest_s:.0f} s",
            "is a worker there for this pool, with free slots (`workers.slots`)?",
        )  # fmt: skip
    if not waiting:
        yield Finding("backlog", Level.FINE, "nothing waits")
    dead = read.one("horolog_dead_letters_total")
    yield _judged(
        "dead letters", dead > 0, f"{dead:.0f} since the start", "`horolog dead` lists them"
    )
    expired = read.one("horolog_leases_expired_total")
    yield _judged(
        "leases", expired > 0, f"{expired:.0f} ended without a report since the start",
        "workers died, or were cut off or stopped for long",
    )  # fmt: skip


def _judged(check: str, is_odd: bool, seen: str, do: str) -> Finding:
    return Finding(check, Level.ODD if is_odd else Level.FINE, seen, do if is_odd else "")


# --- a data folder


def _folder(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        yield Finding("folder", Level.ODD, f"{folder} is not there", "name it with --data")
        return
    yield from _disk(folder)
    yield from _looked("log", lambda: _log(folder))
    if (folder / "history.db").exists():
        yield from _looked("history file", lambda: _history(folder))


def _disk(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    level = Level.FINE
    if free < ROOM_ODD_BYTES:
        level = Level.WRONG if free < ROOM_WRONG_BYTES else Level.ODD
    yield Finding(
        "room", level, f"{free // _MIB} MiB free",
        "" if level is Level.FINE else "make room: without it nothing is decided",
    )  # fmt: skip
    try:
        sync_s = _sync_s(folder)
    except OSError as error:
        yield Finding(
            "disk", Level.WRONG, f"{folder}: {error.strerror}", "give this user the right to write"
        )
        return
    yield _judged(
        "disk", sync_s > SYNC_ODD_S, f"a synchronous write takes {sync_s * 1_000:.1f} ms",
        "every answer waits for one: use a local disk, not a network's",
    )  # fmt: skip


def _sync_s(folder: Path) -> float:
    """Median time of a small write that has reached the disk."""
    place = folder / f".doctor-{os.getpid()}"
    took: list[float] = []
    try:
        with place.open("wb") as file:
            for _ in range(SYNCS):
                begun = time.perf_counter()
                file.write(b"." * 4_096)
                file.flush()
                os.fsync(file.fileno())
                took.append(time.perf_counter() - begun)
    finally:
        place.unlink(missing_ok=True)
    return statistics.median(took)


def _looked(check: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What was found, or why it could not be looked at."""
    try:
        yield from look()
    except HorologError as error:
        yield Finding(
            check, Level.WRONG, error.detail, f"{error.error.hint} ({error.error.number})"
        )


def _log(folder: Path) -> Iterator[Finding]:
    log = SqliteLog(folder, readonly=True)
    try:
        for partition in range(log.partitions):
            state = fold(log, partition)
            yield Finding(
                f"log, partition {partition}", Level.FINE,
                f"whole up to seq {state.seq}: {len(state.jobs)} jobs, epoch {state.writer_epoch}",
            )  # fmt: skip
            mine = tzdata_version()
            yield _judged(
                "time zones", bool(state.tzdata) and state.tzdata > mine,
                f"the log has {state.tzdata or 'none'}, this release {mine}",
                "this release is older than the one that wrote the log: upgrade it",
            )  # fmt: skip
    finally:
        log.close()


def _history(folder: Path) -> Iterator[Finding]:
    log, history = SqliteLog(folder, readonly=True), SqliteHistory(folder / "history.db")
    try:
        behind = {
            partition: log.last_seq(partition) - history.positions().get(partition, 0)
            for partition in range(log.partitions)
        }
        worst = max(behind.values(), default=0)
        yield _judged(
            "history file", worst > 100_000 or min(behind.values(), default=0) < 0,
            f"{worst} events behind the log",
            "a running server catches up by itself; without `history.db` it is built anew",
        )  # fmt: skip
    finally:
        history.close()
        log.close()
