"""`seconds`: jobs that recur every second, all due at the same instants.

python -m bench.seconds [JOBS] [SECONDS]
"""

import sys

from bench.report import percentile, report
from bench.server import SECOND_US, SLOTS, Usage, defined, register, serving, sleep_until
from horolog.schemas.ids import run_id_of_slot
from horolog.schemas.records import JobId, RunId, Schedule
from horolog.workers.clock import wall_us
from horolog.workers.context import Context

SETTLE_S = 5


def main() -> None:
    """Print the figures."""
    jobs_count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    called: list[tuple[RunId, int]] = []

    def handler(context: Context) -> None:
        called.append((context.run_id, wall_us()))

    definition = defined(Schedule(every_us=SECOND_US))
    with serving(handler) as server:
        register(server, ((job_id(number), definition) for number in range(jobs_count)))
        begin_us = (wall_us() // SECOND_US + SETTLE_S) * SECOND_US
        end_us = begin_us + seconds * SECOND_US
        sleep_until(begin_us)
        running = Usage()
        sleep_until(end_us)
        cpu_s, taken_s = running.cpu_s, running.seconds
        # Whatever of the stretch has not been called by then is lost, or too late to count.
        sleep_until(end_us + SETTLE_S * SECOND_US)
    at_us = dict(called)
    late_s: list[float] = []
    lost = 0
    for number in range(jobs_count):
        for slot_us in range(begin_us, end_us, SECOND_US):
            run_id = run_id_of_slot(job_id(number), slot_us)
            if run_id in at_us:
                late_s.append((at_us[run_id] - slot_us) / SECOND_US)
            else:
                lost += 1
    late_s.sort()
    report(
        "seconds",
        "jobs that recur every second, all at the same instants, through `horolog up` but for "
        "HTTP: from due to the first line of a no-op Python handler; lost: not called 5 s after "
        "the end",
        jobs=jobs_count,
        seconds=seconds,
        slots=SLOTS,
        runs=len(late_s),
        lost=lost,
        doubled=len(called) - len(at_us),
        p50_s=round(percentile(late_s, 0.5), 3),
        p99_s=round(percentile(late_s, 0.99), 3),
        max_s=round(late_s[-1], 3),
        cpu_us_per_run=round(cpu_s / max(len(late_s), 1) * 1e6),
        cores_used=round(cpu_s / taken_s, 2),
    )


def job_id(number: int) -> JobId:
    """ID of a job."""
    return JobId(f"tenant{number % 10}.job{number}")


if __name__ == "__main__":
    main()
