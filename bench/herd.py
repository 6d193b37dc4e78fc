"""`herd`: jobs that are due at one instant, through the whole of `horolog up` but for HTTP.

python -m bench.herd [JOBS] [SLOTS]
"""

import asyncio
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.report import percentile, report
from horolog.api.values import instant_text
from horolog.cli.embedded import Embedded
from horolog.schemas.records import CreateJob, JobDefinition, JobId, Schedule, Target
from horolog.workers.clock import wall_us
from horolog.workers.context import Context

REGISTERED_PER_S = 700
"""A lower bound, to choose an instant that comes after the last registration."""
AT_ONCE = 500


def main() -> None:
    """Print the figures."""
    jobs_count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    slots = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    late_s: list[float] = []
    done = threading.Event()
    due_s = wall_us() // 1_000_000 + 10 + jobs_count // REGISTERED_PER_S

    def handler(_context: Context) -> None:
        late_s.append(wall_us() / 1_000_000 - due_s)
        if len(late_s) == jobs_count:
            done.set()

    with tempfile.TemporaryDirectory() as folder:
        server = Embedded(Path(folder), partitions=2, slots=slots, handlers={"noop": handler})
        server.start()
        registered_s = asyncio.run(register(server, jobs_count, due_s))
        done.wait(due_s + 120 - time.time())
        server.stop()
    late_s.sort()
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
        registered_per_s=round(jobs_count / registered_s),
    )


async def register(server: Embedded, jobs_count: int, due_s: int) -> float:
    """Register the jobs; how long it took, in seconds."""
    definition = JobDefinition(
        schedule=Schedule(at=instant_text(due_s * 1_000_000)), target=Target(handler="noop")
    )
    begun = time.perf_counter()
    for first in range(0, jobs_count, AT_ONCE):
        await asyncio.gather(
            *(
                server.submit(
                    CreateJob(
                        command_id=f"create {number}",
                        job_id=JobId(f"tenant{number % 10}.job{number}"),
                        definition=definition,
                    )
                )
                for number in range(first, min(first + AT_ONCE, jobs_count))
            )
        )
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
