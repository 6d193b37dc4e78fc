"""The whole of `horolog up` but for HTTP, for benchmarks: jobs are registered in bulk, no-op
handlers note how late they were called, and each phase says what it cost of the processor.
"""

import asyncio
import contextlib
import os
import resource
import tempfile
import threading
import time
from collections.abc import Generator, Iterable
from pathlib import Path

from horolog.api.values import instant_text
from horolog.cli.embedded import Embedded
from horolog.schemas.records import CreateJob, JobDefinition, JobId, Schedule, Target
from horolog.workers.clock import wall_us
from horolog.workers.executors.handler import Handler

HANDLER = "noop"
SLOTS = 64
PARTITIONS = 2
AT_ONCE = 500
SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US


@contextlib.contextmanager
def serving(
    handler: Handler, *, slots: int = SLOTS, folder: Path | None = None
) -> Generator[Embedded]:
    """A server that runs, on a data directory of its own unless one is given."""
    with tempfile.TemporaryDirectory() as own:
        server = Embedded(
            folder or Path(own), partitions=PARTITIONS, slots=slots, handlers={HANDLER: handler}
        )
        server.start()
        try:
            yield server
        finally:
            server.stop()


def at(instant_us: int) -> JobDefinition:
    """A job of one slot."""
    return defined(Schedule(at=instant_text(instant_us)))


def defined(schedule: Schedule) -> JobDefinition:
    """A job that calls the handler."""
    return JobDefinition(schedule=schedule, target=Target(handler=HANDLER))


def register(server: Embedded, jobs: Iterable[tuple[JobId, JobDefinition]]) -> float:
    """Register jobs, 500 commands at a time; how long it took, in seconds."""
    commands = [
        CreateJob(command_id=f"create {job_id}", job_id=job_id, definition=definition)
        for job_id, definition in jobs
    ]
    begun = time.perf_counter()
    asyncio.run(_submit(server, commands))
    return time.perf_counter() - begun


async def _submit(server: Embedded, commands: list[CreateJob]) -> None:
    for first in range(0, len(commands), AT_ONCE):
        replies = await asyncio.gather(
            *(server.submit(command) for command in commands[first : first + AT_ONCE])
        )
        assert all(reply.code in ("", "ok") for reply in replies), replies[0]


class Calls:
    """How late a handler was called, against the instant it should have been."""

    def __init__(self, expected: int) -> None:
        """`expected`: after so many calls `wait` returns."""
        self.late_s: list[float] = []
        self._expected = expected
        self._all = threading.Event()

    def note(self, due_us: int) -> None:
        """From the first line of a handler."""
        self.late_s.append((wall_us() - due_us) / SECOND_US)
        if len(self.late_s) >= self._expected:
            self._all.set()

    def wait(self, until_s: float) -> None:
        """Until all calls have been, or until a wall-clock time in seconds."""
        self._all.wait(max(until_s - time.time(), 0))


class Usage:
    """Seconds and processor seconds of this process since it was made."""

    def __init__(self) -> None:
        """From now on."""
        self._begun = time.perf_counter()
        self._cpu = cpu_s()

    @property
    def cpu_s(self) -> float:
        """Processor seconds, user and system, all threads."""
        return cpu_s() - self._cpu

    @property
    def seconds(self) -> float:
        """Seconds."""
        return time.perf_counter() - self._begun


def cpu_s() -> float:
    """Processor seconds of this process and of the one that writes the history."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime + sum(map(_cpu_s_of, _children()))


def _children() -> list[str]:
    tasks = Path("/proc/self/task")
    return [pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()]


def _cpu_s_of(pid: str) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def caught_up(server: Embedded) -> None:
    """Wait until the history has all that is committed."""
    for partition in range(server.partitions):
        server.projector.wait_for(partition, server.log.last_seq(partition), 60.0)


def sleep_until(instant_us: int) -> None:
    """Until a wall-clock instant."""
    threading.Event().wait(max(instant_us - wall_us(), 0) / SECOND_US)


def resident_kib() -> int:
    """Resident memory of this process."""
    with Path("/proc/self/status").open(encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
