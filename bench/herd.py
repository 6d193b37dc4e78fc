"""`herd`: jobs that are due at one instant, through the whole of `horolog up` but for HTTP.

python -m bench.herd [JOBS] [SLOTS]
"""

import sys

from bench.report import percentile, report
from bench.server import (
    SECOND_US,
    SLOTS,
    Calls,
    Usage,
    at,
    caught_up,
    register,
    serving,
    sleep_until,
)
from horolog.schemas.records import JobId
from horolog.workers.clock import wall_us
from horolog.workers.context import Context

REGISTERED_PER_S = 1_000
"""A lower bound, to choose an instant that comes after the last registration."""


def main() -> None:
    """Print the figures."""
    jobs_count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    slots = int(sys.argv[2]) if len(sys.argv) > 2 else SLOTS
    due_us = (wall_us() // SECOND_US + 8 + jobs_count // REGISTERED_PER_S) * SECOND_US
    calls = Calls(jobs_count)

    def handler(_context: Context) -> None:
        calls.note(due_us)

    with serving(handler, slots=slots) as server:
        registering = Usage()
        registered_s = register(
            server,
            ((JobId(f"tenant{n % 10}.job{n}"), at(due_us)) for n in range(jobs_count)),
        )
        registered_cpu_s = registering.cpu_s
        caught_up(server)
        sleep_until(due_us - SECOND_US // 100)
        running = Usage()
        calls.wait(due_us / SECOND_US + 120)
        started_cpu_s = running.cpu_s
        caught_up(server)
        all_cpu_s = running.cpu_s
    late_s = sorted(calls.late_s)
    report(
        "herd",
        "one-time jobs due at one instant, from the slot to the first line of a no-op Python "
        "handler in the same process: planning, dispatch, claim, commit with synchronous=FULL, "
        "grant, call; history is written beside it",
        jobs=jobs_count,
        slots=slots,
        started=len(late_s),
        p50_s=round(percentile(late_s, 0.5), 3),
        p99_s=round(percentile(late_s, 0.99), 3),
        max_s=round(late_s[-1], 3),
        starts_per_s=round(len(late_s) / max(late_s[-1], 0.001)),
        cpu_us_per_run=round(started_cpu_s / jobs_count * 1e6),
        cpu_us_per_run_with_history=round(all_cpu_s / jobs_count * 1e6),
        registered_per_s=round(jobs_count / registered_s),
        registered_cpu_us=round(registered_cpu_s / jobs_count * 1e6),
    )


if __name__ == "__main__":
    main()
