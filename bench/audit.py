"""`audit`: the proof over a ledger of a million events, read from SQLite.

    python -m bench.audit [EVENTS]

500 jobs on 20 expressions in two zones; each slot is planned, started and ends well. Making the
ledger is not measured.
"""

import heapq
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from bench.report import report
from horolog.schemas.ids import job_id_of, run_id_of_slot
from horolog.schemas.records import (
    EpochStarted,
    Event,
    InputsRead,
    JobCreated,
    JobDefinition,
    JobId,
    JobRequested,
    LogCreated,
    RunId,
    RunPlanned,
    RunStarted,
    RunSucceeded,
    Schedule,
    Target,
    TzdataChanged,
)
from horolog.streams.audit import audit
from horolog.streams.calendar import Zones, next_slot
from horolog.streams.host.tzdata import zone_rules
from horolog.streams.log import Batch
from horolog.streams.log.sqlite import SqliteLog

BEGIN_US: Final = 1_796_083_200_000_000
JOBS: Final = 500
ZONE: Final = "Europe/Paris"
EVENTS: Final = 1_000_000
SECOND_US: Final = 1_000_000


class Writer:
    """Stamps and appends the batches of one partition."""

    def __init__(self, log: SqliteLog) -> None:
        self.log = log
        self.seq = 0
        self.at_us = BEGIN_US
        self.token = 0

    def write(self, at_us: int, *events: Event) -> None:
        """A batch at a time."""
        first_seq = self.seq + 1
        self.at_us = max(self.at_us, at_us - 1)
        stamped: list[Event] = []
        for event in (*events, InputsRead(records=len(events) + 1, lease_time_us=0)):
            self.seq += 1
            self.at_us += 1
            stamped.append(
                replace(event, seq=self.seq, writer_epoch=1, at_us=self.at_us, batch=first_seq)
            )
        self.log.append([Batch(partition=0, events=tuple(stamped))])


def schedules() -> Iterator[tuple[JobId, Schedule]]:
    """The jobs' schedules: each five minutes, at twenty different minutes and seconds."""
    for number in range(JOBS):
        text = f"{number % 5}-59/5 * * * *"
        zone = ZONE if number % 2 else "UTC"
        yield (
            job_id_of("acme", f"job{number}"),
            Schedule(cron=text, second=str(number % 4), timezone=zone),
        )


def make(log: SqliteLog, events_count: int) -> None:
    """Write a ledger of about so many events."""
    writer = Writer(log)
    rules = zone_rules(ZONE)
    assert rules is not None
    writer.write(
        BEGIN_US,
        LogCreated(
            log_id=log.log_id,
            generation=log.generation,
            partition=0,
            partitions=log.partitions,
            tzdata="2026f",
        ),
        EpochStarted(last_good_seq=0),
        TzdataChanged(version="2026f", zones=(rules,)),
    )
    zones = Zones().load(ZONE, [(rules.effective_us, rules.rules)])
    queue: list[tuple[int, JobId, Schedule]] = []
    for job_id, schedule in schedules():
        definition = JobDefinition(schedule=schedule, target=Target(handler="noop"))
        writer.write(BEGIN_US, JobRequested(job_id=job_id, definition=definition))
        asked_us = writer.at_us - 1
        writer.write(
            BEGIN_US,
            JobCreated(job_id=job_id, version=1, definition=definition, accounted_to_us=asked_us),
        )
        slot_us = next_slot(schedule, job_id, asked_us, zones)
        assert slot_us is not None
        queue.append((slot_us, job_id, schedule))
    heapq.heapify(queue)
    while writer.seq < events_count:
        _second(writer, queue, zones)


def _second(writer: Writer, queue: list[tuple[int, JobId, Schedule]], zones: Zones) -> None:
    """All slots of one second: planned together, then started, then ended."""
    slot_us = queue[0][0]
    runs: list[tuple[JobId, RunId]] = []
    while queue and queue[0][0] == slot_us:
        _, job_id, schedule = queue[0]
        runs.append((job_id, run_id_of_slot(job_id, slot_us)))
        following_us = next_slot(schedule, job_id, slot_us, zones)
        assert following_us is not None
        heapq.heapreplace(queue, (following_us, job_id, schedule))
    writer.write(
        slot_us - 20 * SECOND_US,
        *(
            RunPlanned(job_id=job_id, run_id=run_id, slot_us=slot_us, due_us=slot_us)
            for job_id, run_id in runs
        ),
    )
    writer.write(slot_us, *(_started(job_id, run_id) for job_id, run_id in runs))
    first_seq = writer.seq - len(runs)
    writer.write(
        slot_us,
        *(
            RunSucceeded(
                job_id=job_id, run_id=run_id, attempt=1, token=(1 << 40) + first_seq + number
            )
            for number, (job_id, run_id) in enumerate(runs)
        ),
    )


def _started(job_id: JobId, run_id: RunId) -> RunStarted:
    return RunStarted(
        job_id=job_id,
        run_id=run_id,
        attempt=1,
        generation=1,
        worker_id="worker-17",
        inbox="worker-17",
        claim_id="f81d4fae7dec11d0a76500a0c91e6bf6",
        term_us=30_000_000,
        version=1,
        lease_time_us=0,
    )


def main() -> None:
    """Make a ledger, in a process of its own so that nothing of it is remembered, and audit it."""
    events_count = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    if len(sys.argv) > 2:
        make(SqliteLog(Path(sys.argv[2]), partitions=1), events_count)
        return
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            [sys.executable, "-m", "bench.audit", str(events_count), directory], check=True
        )
        log = SqliteLog(Path(directory), readonly=True)
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.perf_counter()
        found = audit(log)
        taken = time.perf_counter() - begun
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
        log.close()
    assert found.ok, found.violations[:3]
    report(
        "audit",
        "reading from SQLite, checksums, decoding, calendar, all rules; one core",
        events=found.events_count,
        slots=found.slots_count,
        jobs=found.jobs_count,
        seconds=round(taken, 1),
        us_per_event=round(taken / found.events_count * 1e6, 1),
        memory_grown_mib=round(grown_kib / 1024, 1),
    )


if __name__ == "__main__":
    main()
