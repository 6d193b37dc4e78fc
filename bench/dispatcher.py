"""`dispatcher`: what a run costs in the index, from waiting to closed, without any I/O.

    python -m bench.dispatcher [RUNS] [TENANTS]

All runs are due at one instant. Each is told as waiting, released by a hint, told as started and as
closed, in steps of up to 500; the messages are made beforehand, hints are made within.
"""

import resource
import sys
import time

from bench.report import median, report
from horolog.schemas.records import (
    DispatchStatus,
    Hints,
    InventoryBegan,
    InventoryEnded,
    RunId,
    RunState,
    RunStates,
    TenantId,
    TenantSettings,
)
from horolog.streams.dispatcher import Dispatcher
from horolog.streams.limits import MILLISECOND_US, SECOND_US

ROUNDS = 5
STEP = 500
NOW_US = 1_800_000_000 * SECOND_US
DUE_US = NOW_US + 30 * SECOND_US
STEP_US = 20 * MILLISECOND_US


def ready() -> Dispatcher:
    """A dispatcher that knows all open runs: none."""
    index = Dispatcher(dispatcher=0, epoch=1, ledger_partitions=1)
    index.tick(NOW_US)
    marks = {"partition": 0, "writer_epoch": 1, "seq": 1, "dispatcher": 0, "epoch": 1}
    index.receive(InventoryBegan(**marks), NOW_US)
    index.receive(InventoryEnded(**marks, runs_count=0), NOW_US)
    return index


def states_of(runs: int, tenants: int, status: DispatchStatus) -> dict[RunId, RunState]:
    """The states of all runs, spread over the tenants."""
    return {
        run_id: RunState(
            run_id=run_id,
            tenant=TenantId(f"team-{number % tenants}"),
            plan=number + 1,
            attempt=int(status is DispatchStatus.STARTED),
            status=status,
            not_before_us=DUE_US,
            due_us=DUE_US,
        )
        for number in range(runs)
        for run_id in [RunId(f"team-{number % tenants}.job-{number}@20270115T080030Z")]
    }


def told(states: list[RunState], seq: int) -> list[RunStates]:
    """Messages of up to a step each."""
    return [
        RunStates(partition=0, writer_epoch=1, seq=seq, runs=tuple(states[first : first + STEP]))
        for first in range(0, len(states), STEP)
    ]


def one_round(runs: int, tenants: int, *, limited: bool) -> dict[str, float]:
    """Seconds by phase."""
    index = ready()
    for number in range(tenants if limited else 0):
        settings = TenantSettings(tenant=TenantId(f"team-{number}"), concurrency=runs)
        index.receive(settings, NOW_US)
    waiting = told(list(states_of(runs, tenants, DispatchStatus.WAITING).values()), 2)
    started = states_of(runs, tenants, DispatchStatus.STARTED)
    closed = states_of(runs, tenants, DispatchStatus.CLOSED)
    spent = {"waiting": 0.0, "release": 0.0, "started": 0.0, "closed": 0.0}
    begun = time.perf_counter()
    for message in waiting:
        index.receive(message, NOW_US)
    spent["waiting"] = time.perf_counter() - begun
    now_us, left = DUE_US, runs
    while left:
        begun = time.perf_counter()
        sent = index.tick(now_us)
        spent["release"] += time.perf_counter() - begun
        run_ids = [hint.run_id for each in sent if isinstance(each, Hints) for hint in each.hints]
        left -= len(run_ids)
        now_us += STEP_US
        for phase, states in (("started", started), ("closed", closed)):
            messages = told([states[run_id] for run_id in run_ids], 3)
            begun = time.perf_counter()
            for message in messages:
                index.receive(message, now_us)
            spent[phase] += time.perf_counter() - begun
    return spent


def main() -> None:
    """Print a line for one tenant, for many, and for many with quotas."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    for tenants, limited in ((1, False), (1_000, False), (1_000, True)):
        rounds = [one_round(runs, tenants, limited=limited) for _ in range(ROUNDS)]
        parts = {
            f"{phase}_us": round(median([each[phase] for each in rounds]) / runs * 1e6, 1)
            for phase in rounds[0]
        }
        report(
            "dispatcher",
            "receive(waiting), tick with release and hint, receive(started), receive(closed); "
            "messages are made beforehand, no codec, no I/O; all runs due at one instant",
            runs=runs,
            tenants=tenants,
            quotas=limited,
            **parts,
            us_per_run=round(sum(parts.values()), 1),
            resident_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        )


if __name__ == "__main__":
    main()
