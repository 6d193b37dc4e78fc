"""`project`: folding a ledger into the tables, with the writes to SQLite.

    python -m bench.project [RUNS]

A life is planned, started and succeeded: three events and the share of its batches' `InputsRead`.
Batches are those of a host that reads up to 500 inputs a step; a transaction is what the projector
takes at once. `apart`: the plans are written some batches before the rest, as with the lookahead of
30 s, so that each run is an insert and an update; `together`: all of a life is one write. `busy`:
beside a thread that computes all the time, as the host's does in a herd.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.report import median, report
from horolog.projections.fold import Batch, Fold
from horolog.projections.projector import EVENTS_AT_ONCE
from horolog.projections.store import Store
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.stores.sqlite import SqliteHistory
from horolog.schemas.records import JobId
from tests.builders.ledger import MINUTE_US, T0, Ledger, RunLife

ROUNDS: Final = 3
STEP: Final = 500
JOBS: Final = 500


def ledger_of(runs_count: int, *, together: bool) -> Ledger:
    """Whole lives of runs of some jobs."""
    ledger = Ledger()
    jobs = [JobId(f"acme.job-{number:05}") for number in range(JOBS)]
    for job_id in jobs:
        ledger.create(job_id)
    ledger.commit()
    at_once = STEP if together else runs_count
    for begin in range(0, runs_count, at_once):
        runs: list[RunLife] = []
        for number in range(begin, min(begin + at_once, runs_count)):
            runs.append(ledger.plan(jobs[number % JOBS], T0 + number // JOBS * MINUTE_US))
            _commit(ledger, number)
        for number, run in enumerate(runs):
            ledger.start(run)
            _commit(ledger, number)
        for number, run in enumerate(runs):
            ledger.succeed(run)
            _commit(ledger, number)
    ledger.commit()
    return ledger


def _commit(ledger: Ledger, number: int) -> None:
    """After each step's inputs."""
    if number % STEP == STEP - 1:
        ledger.commit()


def seconds(ledger: Ledger, batches: Sequence[Batch], store: Store) -> tuple[float, float, int]:
    """Seconds in all, of that in writes, and the number of events."""
    fold = Fold(ledger.log, store)
    writing_s = 0.0
    events = 0
    begun = time.perf_counter()
    for batch in batches:
        fold.fold(batch)
        events += len(batch.events)
        if fold.events_pending >= EVENTS_AT_ONCE:
            write = time.perf_counter()
            fold.write()
            writing_s += time.perf_counter() - write
    write = time.perf_counter()
    fold.write()
    end = time.perf_counter()
    return end - begun, writing_s + end - write, events


def figures(ledger: Ledger, batches: Sequence[Batch]) -> dict[str, float]:
    """Of some rounds, each on a file of its own: microseconds an event."""
    rounds: list[tuple[float, float, int]] = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            store = SqliteHistory(Path(folder) / "history.db")
            rounds.append(seconds(ledger, batches, store))
            store.close()
    events = rounds[0][2]
    total = median([each[0] for each in rounds]) / events * 1e6
    return {
        "us_per_event": round(total, 1),
        "of_it_writing": round(median([each[1] for each in rounds]) / events * 1e6, 1),
        "events_per_s": round(1e6 / total),
    }


def beside_a_busy_thread(measure: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Measure while another thread of this process computes."""
    is_done = threading.Event()

    def compute() -> None:
        count = 0
        while not is_done.is_set():
            count += 1

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    try:
        return measure()
    finally:
        is_done.set()
        thread.join()


def main() -> None:
    """Print the figures."""
    runs_count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    apart, together = (ledger_of(runs_count, together=each) for each in (False, True))
    lives = {
        "apart": (apart, apart.batches[0]),
        "together": (together, together.batches[0]),
    }
    found = {name: figures(*each) for name, each in lives.items()}
    found["busy"] = beside_a_busy_thread(lambda: figures(*lives["apart"]))
    memory_s, _, events = seconds(*lives["apart"], MemoryHistory())
    report(
        "project",
        "fold of runs, attempts and use of the tenant, coalesced, and the SQLite transactions; no "
        "reading or decoding of the log, no queries beside it",
        runs=runs_count,
        jobs=JOBS,
        events=events,
        memory_us_per_event=round(memory_s / events * 1e6, 1),
        **found,
    )


if __name__ == "__main__":
    main()
