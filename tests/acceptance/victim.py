"""A server to be killed: `python -m tests.acceptance.victim DATA WITNESS JOBS EVERY_S`.

Runs handlers that write their run and token to the witness file, registers its jobs (again and
again the same ones) and prints `ready`. TERM drains it.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from horolog.cli.embedded import Embedded
from horolog.schemas.records import (
    CatchUp,
    CreateJob,
    JobDefinition,
    JobId,
    RetryPolicy,
    Schedule,
    Target,
)
from horolog.workers.context import Context


def main() -> None:
    """Run until TERM, or KILL."""
    data, witness, jobs_count, every_s = (
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
    out = os.open(witness, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def handler(context: Context) -> None:
        # One write, so that lines of threads and of a killed process never mix.
        os.write(out, f"{context.run_id} {context.fencing_token}\n".encode())

    server = Embedded(data, partitions=2, slots=32, handlers={"witness": handler})
    server.start()
    asyncio.run(_serve(server, jobs_count, every_s))
    server.stop()


async def _serve(server: Embedded, jobs_count: int, every_s: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    definition = JobDefinition(
        schedule=Schedule(every_us=every_s * 1_000_000),
        target=Target(handler="witness"),
        catch_up=CatchUp.ALL,
        lease_term_us=20_000_000,
        kill_grace_us=1_000_000,
        retry=RetryPolicy(lost_max=50),
    )
    await asyncio.gather(
        *(
            server.submit(
                CreateJob(
                    command_id=f"create {number}",
                    job_id=JobId(f"default.job{number}"),
                    definition=definition,
                )
            )
            for number in range(jobs_count)
        )
    )
    print("ready", flush=True)  # noqa: T201 - read by the test
    await stop.wait()


if __name__ == "__main__":
    main()
