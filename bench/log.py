"""`log`: appends of 1,000 small events to the SQLite log at `synchronous=FULL`, and reading back.

    python -m bench.log [DIRECTORY]

The directory is where the file is made, for a measurement of another disk; a temporary one unless
told. The events are the starts and ends of runs, half and half.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from bench.report import median, report
from horolog.schemas.ids import job_id_of, run_id_of_slot
from horolog.schemas.records import Event, InputsRead, LogCreated, RunStarted, RunSucceeded
from horolog.streams.log import Batch
from horolog.streams.log.rows import pack
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.log.sqlite_file import FILE

AT_US: Final = 1_796_083_200_000_000
EVENTS: Final = 1_000
BATCHES: Final = 60
SMALL_BATCHES: Final = 300


class Writer:
    """Stamps events for one partition."""

    def __init__(self, log: SqliteLog) -> None:
        self.seq = 0
        created = LogCreated(
            log_id=log.log_id,
            generation=log.generation,
            partition=0,
            partitions=log.partitions,
            tzdata="2026f",
        )
        log.append([self.batch([created])])

    def batch(self, events: list[Event]) -> Batch:
        """A batch of these events and its end."""
        first_seq = self.seq + 1
        stamped: list[Event] = []
        for event in [*events, InputsRead(records=len(events) + 1, lease_time_us=self.seq)]:
            self.seq += 1
            stamped.append(
                replace(
                    event, seq=self.seq, writer_epoch=1, at_us=AT_US + self.seq, batch=first_seq
                )
            )
        return Batch(partition=0, events=tuple(stamped))


def lives(count: int) -> list[Event]:
    """So many starts and ends, one after the other."""
    job_id = job_id_of("acme", "billing-close")
    made: list[Event] = []
    for number in range(count // 2):
        run_id = run_id_of_slot(job_id, AT_US + number * 1_000_000)
        made.append(
            RunStarted(
                job_id=job_id,
                run_id=run_id,
                attempt=1,
                generation=1,
                worker_id="worker-17",
                inbox="worker-17",
                claim_id="f81d4fae7dec11d0a76500a0c91e6bf6",
                term_us=30_000_000,
                version=1,
                lease_time_us=2_592_000_000_000,
            )
        )
        made.append(RunSucceeded(job_id=job_id, run_id=run_id, attempt=1, token=1 << 40))
    return made


def appends(log: SqliteLog, batches: list[Batch]) -> list[float]:
    """Seconds of each append."""
    taken: list[float] = []
    for batch in batches:
        begun = time.perf_counter()
        log.append([batch])
        taken.append(time.perf_counter() - begun)
    return taken


def measure(directory: Path) -> None:
    """Print the figures of one disk."""
    log = SqliteLog(directory, partitions=1)
    writer = Writer(log)
    events = lives(EVENTS)
    large = [writer.batch(events) for _ in range(BATCHES)]
    begun = time.perf_counter()
    size = sum(len(pack(batch.events)) for batch in large)
    encode_s = (time.perf_counter() - begun) / BATCHES
    append_s = median(appends(log, large))
    small_s = median(appends(log, [writer.batch(events[:2]) for _ in range(SMALL_BATCHES)]))
    begun = time.perf_counter()
    read = sum(len(batch.events) for batch in log.read(0, 0))
    read_s = time.perf_counter() - begun
    log.close()
    stored = (directory / FILE).stat().st_size
    report(
        "log",
        "encode, checks, checksum, SQLite transaction, fsync (synchronous=FULL)",
        events_a_batch=EVENTS,
        events_per_s=round(EVENTS / append_s),
        append_ms=round(append_s * 1e3, 2),
        encode_share=round(encode_s / append_s, 2),
        commits_per_s_of_2_events=round(1 / small_s),
        bytes_per_event=round(size / (BATCHES * (EVENTS + 1)), 1),
        stored_bytes_per_event=round(stored / read, 1),
        read_events_per_s=round(read / read_s),
    )


def main() -> None:
    """Measure where the arguments say."""
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as directory:
        measure(Path(directory))


if __name__ == "__main__":
    main()
