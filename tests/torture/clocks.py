"""F12: the wall clock of the server is set, while boot time goes on.

libfaketime shifts `time()` and `CLOCK_REALTIME` of the server alone; workers, programs and the
harness keep the machine's clock, so leases, witnesses and waits are told by true time.
"""

import time
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from horolog.schemas.records import AttemptEnded, AttemptOutcome
from horolog.streams.log.sqlite import SqliteLog
from tests.torture.acks import Acks
from tests.torture.checker import Checked, events_of
from tests.torture.figures import Figures
from tests.torture.processes import Place, placed, removed
from tests.torture.rounds import definition, drained
from tests.torture.witness import marks
from tests.waiting import until

LIBRARY: Final = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
HOUR_S: Final = 3_600
YEARS_S: Final = 10 * 365 * 24 * HOUR_S
JOBS: Final = 5
RUN_S: Final = 8.0


class Step(NamedTuple):
    """The clock is set by so much, for so long."""

    by_s: int
    runs: int
    """Runs of jobs of every second to be seen meanwhile."""
    hold_s: float = 0.0
    """So long at least."""


HELD: Final = (Step(HOUR_S, 40), Step(0, 20), Step(-HOUR_S, 40), Step(0, 20), Step(YEARS_S, 20))
"""Each is taken back before it is accepted."""


class WallClock:
    """The clock of a process that was started with its environment."""

    def __init__(self, folder: Path) -> None:
        assert LIBRARY.exists(), "libfaketime is missing: apt-get install faketime"
        self._file = folder / "clock"
        self.set(0)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a process that goes by this clock."""
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, by_s: int) -> None:
        """Show so much more than the machine's clock."""
        part = self._file.with_suffix(".part")
        part.write_text(f"{by_s:+d}\n")
        part.replace(self._file)


def clock_round(folder: Path, steps: tuple[Step, ...]) -> Checked:
    """Set the server's clock again and again; a worker holds leases all the time."""
    acks = Acks()
    with placed(folder) as place:
        clock = WallClock(folder)
        place.start(clock.environment)
        register(place)
        place.work(RUN_S)
        for number, step in enumerate(steps):
            clock.set(step.by_s)
            said = "" if step.by_s == 0 else f"clock of this machine was set by {step.by_s:+d} s"
            if not step.hold_s:
                until(partial(shows, place, said), f"it says {said!r}", 30)
            _await_runs(place, step.runs, step.hold_s)
            key = f"step-{number}"
            path = "/v1/jobs/default.manual:trigger"
            answer = place.api.call("POST", path, {"idempotencyKey": key})
            assert answer.status == 202, answer
            acks.triggered(key, answer.body["runId"])
        clock.set(0)
        until(lambda: started(place, "manual") >= len(steps) or None, "triggers ran")
        checked = drained(place, acks, marks_are_timed=False)
        lost = leases_lost(place.data)
        checked.found("leases ended by the clock", lost)
    return checked


def _await_runs(place: Place, count: int, hold_s: float) -> None:
    began_s = time.monotonic()
    seen = started(place, "fast")
    until(
        lambda: (
            (started(place, "fast") >= seen + count and time.monotonic() >= began_s + hold_s)
            or None
        ),
        f"{count} runs while the clock is wrong",
        within_s=count + hold_s + 30,
    )


def shows(place: Place, said: str) -> bool | None:
    """Whether the server's health names what is wrong with the clock; empty: that nothing is."""
    detail = place.api.call("GET", "/readyz").body["detail"]
    return (said in detail if said else not detail) or None


def register(place: Place) -> None:
    """Jobs of every second, and one whose runs outlive several heartbeats."""
    jobs = {f"fast{n}": definition({"handler": "inline"}, "1s") for n in range(JOBS)}
    jobs |= {"held": definition({"handler": "remote"}, "10s")}
    jobs |= {"manual": definition({"handler": "inline"})}
    for name, spec in jobs.items():
        place.register(name, spec)


def started(place: Place, job: str) -> int:
    """Executions that have begun of jobs whose name begins so."""
    return sum(
        mark.kind == "start" and mark.run_id.startswith(f"default.{job}")
        for mark in marks(place.witness)
    )


def leases_lost(data: Path) -> list[str]:
    """Attempts that ended because their lease did."""
    log = SqliteLog(data, readonly=True)
    try:
        return [
            f"{event.run_id} {event.token}"
            for event in events_of(log)
            if isinstance(event, AttemptEnded) and event.outcome is AttemptOutcome.LOST
        ]
    finally:
        log.close()


def clocks(folder: Path, faults: int, seed: int) -> Figures:
    """Every step held and taken back, then steps that are accepted."""
    del faults
    accepted = (Step(HOUR_S, 0, hold_s=75), Step(0, 0, hold_s=75))
    place = folder / f"clock-{seed}"
    steps = (*HELD, *accepted)
    checked = clock_round(place, steps)
    if not checked.wrong:
        removed(place)
    return Figures(
        fault="F12: the server's wall clock set",
        how="libfaketime: +1 h, -1 h, +10 years, each taken back within 60 s; then +1 h and back, "
        "each accepted after 60 s",
        count=len(steps),
        seed=seed,
        checked=checked,
    )
