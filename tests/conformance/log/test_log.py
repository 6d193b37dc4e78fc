"""What every log does, whoever implements it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from horolog.schemas.errors import Corrupt
from horolog.schemas.records import EpochStarted, InputsRead, RunPlanned
from horolog.streams.log import Batch, Log
from horolog.streams.log.memory import MemoryLog
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.scheduler.snapshot import tombstone
from tests.builders.core import JOB, T0, run_at

Maker = Callable[[], Log]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    """Makes logs with two partitions; a SQLite one is opened again at the second call."""
    if request.param == "memory":
        return lambda: MemoryLog(partitions=2)
    return lambda: SqliteLog(tmp_path, partitions=2)


def batch(first_seq: int, events: int = 1, partition: int = 0, epoch: int = 1) -> Batch:
    """A batch of so many planned runs, and its end."""
    made = [
        RunPlanned(
            seq=first_seq + number,
            writer_epoch=epoch,
            at_us=T0 + first_seq + number,
            batch=first_seq,
            job_id=JOB,
            run_id=run_at(T0 + (first_seq + number) * 1_000_000),
            slot_us=T0,
            due_us=T0,
        )
        for number in range(events)
    ]
    end = InputsRead(
        seq=first_seq + events,
        writer_epoch=epoch,
        at_us=T0 + first_seq + events,
        batch=first_seq,
        records=events + 1,
    )
    return Batch(partition=partition, events=(*made, end))


def test_batches_come_back_as_they_were_written(make: Maker) -> None:
    log = make()
    written = [batch(1, 3), batch(5, 2)]
    log.append(written)
    assert list(log.read(0, 0)) == written
    assert log.last_seq(0) == 7
    assert log.last_seq(1) == 0


def test_reading_from_within_a_batch_gives_its_rest(make: Maker) -> None:
    log = make()
    log.append([batch(1, 3), batch(5, 1)])
    seqs = [event.seq for read in log.read(0, 2) for event in read.events]
    assert seqs == [3, 4, 5, 6]


def test_partitions_are_apart(make: Maker) -> None:
    log = make()
    log.append([batch(1), batch(1, partition=1)])
    log.append([batch(3, partition=1)])
    assert (log.last_seq(0), log.last_seq(1)) == (2, 4)
    assert all(read.partition == 1 for read in log.read(1, 0))


def test_snapshots_are_replaced_and_removed_by_key(make: Maker) -> None:
    log = make()
    first, second = tombstone(JOB, 1), tombstone(JOB, 2)
    for number, record in enumerate((first, second, None)):
        made = batch(1 + 2 * number)
        log.append([Batch(partition=0, events=made.events, snapshots=(("job/x", record),))])
        expected = [] if record is None else [("job/x", record)]
        assert list(log.snapshots(0)) == expected
    assert not list(log.snapshots(1))


def test_batch_that_does_not_follow_is_refused_and_nothing_of_it_is_kept(make: Maker) -> None:
    log = make()
    log.append([batch(1)])
    with pytest.raises(Corrupt):
        log.append([batch(4)])
    assert log.last_seq(0) == 2
    log.append([batch(3)])
    assert log.last_seq(0) == 4


def test_reader_in_the_middle_sees_what_was_committed_and_goes_on(make: Maker) -> None:
    log = make()
    log.append([batch(1)])
    reader = log.read(0, 0)
    assert next(reader).first_seq == 1
    log.append([batch(3)])
    assert [read.first_seq for read in log.read(0, 2)] == [3]


def test_epoch_event_is_read_like_any_other(make: Maker) -> None:
    log = make()
    opening = batch(1, 0, epoch=1)
    started = EpochStarted(
        seq=2, writer_epoch=2, at_us=T0 + 20, batch=2, last_good_seq=1, owner="me"
    )
    end = InputsRead(seq=3, writer_epoch=2, at_us=T0 + 21, batch=2, records=2)
    log.append([opening, Batch(partition=0, events=(started, end))])
    assert [event.seq for read in log.read(0, 0) for event in read.events] == [1, 2, 3]
