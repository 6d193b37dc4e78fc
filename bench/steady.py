"""`steady`: so many runs a second, evenly spread, through the whole life of a run.

    python -m bench.steady [RUNS_PER_S] [SECONDS]

Jobs that recur each five seconds, each with a jitter of its own, so that runs fall due evenly.
"""

import sys
from collections.abc import Sequence

from bench.report import percentile, report
from bench.server import (
    SECOND_US,
    Usage,
    caught_up,
    defined,
    register,
    serving,
    sleep_until,
)
from horolog.schemas.ids import job_of, slot_of
from horolog.schemas.records import JobId, RunId, Schedule
from horolog.streams.calendar.jitter import jitter_of
from horolog.workers.clock import wall_us
from horolog.workers.context import Context

EVERY_S = 5
SLOTS = 256


def main() -> None:
    """Print the figures."""
    runs_per_s = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    called: list[tuple[RunId, int]] = []

    def handler(context: Context) -> None:
        called.append((context.run_id, wall_us()))

    every_us = EVERY_S * SECOND_US
    jitter_us = every_us - SECOND_US
    definition = defined(Schedule(every_us=every_us, jitter_us=jitter_us))
    with serving(handler, slots=SLOTS) as server:
        register(
            server,
            ((JobId(f"tenant{n % 10}.job{n}"), definition) for n in range(runs_per_s * EVERY_S)),
        )
        # What fell due meanwhile is no steady load.
        begin_us = wall_us() + EVERY_S * SECOND_US
        sleep_until(begin_us)
        running = Usage()
        sleep_until(begin_us + seconds * SECOND_US)
        cpu_s, taken_s = running.cpu_s, running.seconds
        caught_up(server)
    calls = [(due_of(run_id, jitter_us), at_us) for run_id, at_us in called]
    late_s, runs_count = _late(calls, begin_us, begin_us + seconds * SECOND_US)
    report(
        "steady",
        "recurring jobs with jitter: planning, dispatch, claim, commit with synchronous=FULL, "
        "grant, a no-op Python handler, completion, history; from due to the handler's first line",
        asked_per_s=runs_per_s,
        seconds=seconds,
        slots=SLOTS,
        runs=runs_count,
        held_per_s=round(runs_count / seconds),
        p50_s=round(percentile(late_s, 0.5), 3),
        p99_s=round(percentile(late_s, 0.99), 3),
        max_s=round(late_s[-1], 3),
        behind_at_the_end_s=round((calls[-1][1] - calls[-1][0]) / SECOND_US, 3),
        cpu_us_per_run=round(cpu_s / max(runs_count, 1) * 1e6),
        cores_used=round(cpu_s / taken_s, 2),
    )


def due_of(run_id: RunId, jitter_us: int) -> int:
    """When a run of a slot is due."""
    slot_us = slot_of(run_id)
    assert slot_us is not None
    return slot_us + jitter_of(job_of(run_id), jitter_us)


def _late(calls: Sequence[tuple[int, int]], begin_us: int, end_us: int) -> tuple[list[float], int]:
    """Lateness of the runs due in a stretch of time, in order, and their number."""
    late_s = sorted(
        (at_us - due_us) / SECOND_US for due_us, at_us in calls if begin_us <= due_us < end_us
    )
    return late_s, len(late_s)


if __name__ == "__main__":
    main()
