"""`memory`: what a recurring job costs while nothing is due: memory, processor, registration.

python -m bench.memory [JOBS] [IDLE_SECONDS]
"""

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from bench.report import report
from bench.server import (
    HOUR_US,
    Usage,
    caught_up,
    defined,
    register,
    resident_kib,
    serving,
)
from horolog.schemas.records import JobId, Schedule

SETTLE_S = 5.0


def fill(folder: Path, jobs_count: int) -> None:
    """Register the jobs and print what it took."""
    daily = defined(Schedule(every_us=24 * HOUR_US, jitter_us=12 * HOUR_US))
    with serving(lambda _: None, folder=folder) as server:
        used = Usage()
        registered_s = register(
            server, ((JobId(f"tenant{n % 10}.job{n}"), daily) for n in range(jobs_count))
        )
        cpu_s = used.cpu_s
        caught_up(server)
    report(
        "memory",
        "registration of recurring jobs, 500 commands at a time: the command's life, commit with "
        "synchronous=FULL, reply; history is written beside it; no HTTP",
        jobs=jobs_count,
        registered_per_s=round(jobs_count / registered_s),
        cpu_us_per_job=round(cpu_s / jobs_count * 1e6),
    )


def idle(folder: Path, jobs_count: int, seconds: float) -> None:
    """Start on the data, with nothing due, and print what it takes."""
    with tempfile.TemporaryDirectory() as empty, serving(lambda _: None, folder=Path(empty)):
        before_kib = resident_kib()
    with serving(lambda _: None, folder=folder) as server:
        threading.Event().wait(SETTLE_S)
        caught_up(server)
        after_kib = resident_kib()
        used = Usage()
        threading.Event().wait(seconds)
        share = used.cpu_s / used.seconds
    report(
        "memory",
        "a server that has recovered so many recurring jobs, none due for hours: resident memory "
        "beyond that of a server without jobs, and its share of a core",
        jobs=jobs_count,
        seconds=seconds,
        bytes_per_job=round((after_kib - before_kib) * 1024 / jobs_count),
        resident_mib=after_kib // 1024,
        idle_core_share=round(share, 4),
    )


def main() -> None:
    """In processes of their own, so that nothing is remembered."""
    jobs_count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    if len(sys.argv) > 4:
        if sys.argv[3] == "fill":
            fill(Path(sys.argv[4]), jobs_count)
        else:
            idle(Path(sys.argv[4]), jobs_count, seconds)
        return
    with tempfile.TemporaryDirectory() as folder:
        for step in ("fill", "idle"):
            arguments = [str(jobs_count), str(seconds), step, folder]
            subprocess.run([sys.executable, "-m", "bench.memory", *arguments], check=True)


if __name__ == "__main__":
    main()
