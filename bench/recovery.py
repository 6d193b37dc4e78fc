"""`recovery`: from the start of a process to its first trigger, with many recurring jobs.

    python -m bench.recovery [JOBS]

One process registers the jobs and ends without a drain, as by kill -9; another one starts on its
data. The first trigger is that of a job that recurs every second.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.report import report
from bench.server import HOUR_US, SECOND_US, defined, register, resident_kib, serving
from horolog.schemas.records import JobId, Schedule
from horolog.streams.host.snapshots import Recovery
from horolog.streams.log.sqlite import SqliteLog
from horolog.workers.context import Context


def prepare(folder: Path, jobs_count: int) -> None:
    """Register the jobs and end at once."""
    hourly = defined(Schedule(every_us=HOUR_US, jitter_us=HOUR_US // 2))
    with serving(lambda _: None, folder=folder) as server:
        register(server, ((JobId(f"tenant{n % 10}.job{n}"), hourly) for n in range(jobs_count)))
        each_second = defined(Schedule(every_us=SECOND_US))
        register(server, [(JobId("tenant0.every-second"), each_second)])
        os.kill(os.getpid(), signal.SIGKILL)


def restart(folder: Path, jobs_count: int, began_s: float) -> None:
    """Start on the data and print the figures. `began_s`: when the process did, wall clock."""
    begun = time.perf_counter()
    log = SqliteLog(folder, readonly=True)
    tails = [Recovery(log, partition).recent for partition in range(log.partitions)]
    recovered_s = time.perf_counter() - begun
    events = sum(log.last_seq(partition) for partition in range(log.partitions))
    tail = sum(map(len, tails))
    log.close()
    del tails
    first = threading.Event()

    def handler(_context: Context) -> None:
        first.set()

    # Recovered once more: the measurement before is no part of this one.
    began_s += time.perf_counter() - begun
    with serving(handler, folder=folder):
        first.wait(60)
        triggered_s = time.time() - began_s
        report(
            "recovery",
            "after kill -9: start of Python, snapshots and tail of the ledger, a new epoch, the "
            "next run of an every-second job called; recovery alone: reading, decoding, folding",
            jobs=jobs_count,
            events=events,
            tail_events=tail,
            recovered_s=round(recovered_s, 2),
            jobs_per_s=round(jobs_count / recovered_s),
            first_trigger_s=round(triggered_s, 2),
            resident_mib=resident_kib() // 1024,
        )


def main() -> None:
    """In processes of their own, so that nothing is remembered."""
    jobs_count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    if len(sys.argv) > 3:
        if sys.argv[2] == "prepare":
            prepare(Path(sys.argv[3]), jobs_count)
        else:
            restart(Path(sys.argv[3]), jobs_count, float(sys.argv[4]))
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.recovery", str(jobs_count)]
        subprocess.run([*command, "prepare", folder], check=False)
        subprocess.run([*command, "restart", folder, str(time.time())], check=True)


if __name__ == "__main__":
    main()
