"""What every log does, whoever implements it."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from horolog.schemas.errors import Corrupt, Fenced
from horolog.schemas.ids import job_of
from horolog.schemas.records import EpochStarted, Event, InputsRead, RunPlanned
from horolog.streams.log import Batch, Log, check_not_behind
from horolog.streams.log.check import BrokenSequence
from horolog.streams.log.memory import MemoryLog
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.scheduler.snapshot import tombstone
from tests.builders.core import JOB, T0, run_at
from tests.builders.events import Ledger


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """A log with two partitions."""
    made: Log = (
        MemoryLog(partitions=2) if request.param == "memory" else SqliteLog(tmp_path, partitions=2)
    )
    yield made
    made.close()


def ledger_of(log: Log, number: int = 0) -> Ledger:
    """A partition of a log, to write its batches."""
    return Ledger(number, partitions=log.partitions, log_id=log.log_id, generation=log.generation)


def runs(count: int, begin: int = 0) -> list[Event]:
    """So many planned runs."""
    return [
        RunPlanned(job_id=job_of(run), run_id=run, slot_us=T0, due_us=T0)
        for run in (run_at(T0 + (begin + number) * 1_000_000) for number in range(count))
    ]


def seqs(log: Log, partition: int = 0, after_seq: int = 0) -> list[int]:
    """All events there are."""
    return [event.seq for read in log.read(partition, after_seq) for event in read.events]


def test_batches_come_back_as_they_were_written(log: Log) -> None:
    ledger = ledger_of(log)
    written = [ledger.take_over(*runs(1)), ledger.batch(*runs(3)), ledger.batch()]
    log.append(written[:2])
    log.append(written[2:])
    assert list(log.read(0, 0)) == written
    assert log.last_seq(0) == 9
    assert log.last_seq(1) == 0


def test_many_batches_come_back_in_order_and_whole(log: Log) -> None:
    ledger = ledger_of(log)
    written = [ledger.take_over(), *(ledger.batch(*runs(2, number)) for number in range(200))]
    log.append(written)
    assert list(log.read(0, 0)) == written


@pytest.mark.parametrize("after_seq", range(9))
def test_reading_from_within_a_batch_gives_its_rest(log: Log, after_seq: int) -> None:
    ledger = ledger_of(log)
    log.append([ledger.take_over(*runs(1)), ledger.batch(*runs(3)), ledger.batch()])
    assert seqs(log, 0, after_seq) == list(range(after_seq + 1, 10))


def test_reading_from_the_end_gives_nothing(log: Log) -> None:
    log.append([ledger_of(log).take_over()])
    assert not list(log.read(0, 3))
    assert not list(log.read(1, 0))


def test_partitions_are_apart(log: Log) -> None:
    first, second = ledger_of(log, 0), ledger_of(log, 1)
    log.append([first.take_over(), second.take_over()])
    log.append([second.batch(*runs(4))])
    assert (log.last_seq(0), log.last_seq(1)) == (3, 8)
    assert [read.partition for read in log.read(1, 0)] == [1, 1]


def test_snapshots_are_replaced_and_removed_by_key(log: Log) -> None:
    ledger = ledger_of(log)
    first, second = tombstone(JOB, 1), tombstone(JOB, 2)
    log.append([ledger.take_over()])
    for record in (first, second, None):
        log.append([ledger.batch(snapshots=[("job/x", record)])])
        assert list(log.snapshots(0)) == ([] if record is None else [("job/x", record)])
    assert not list(log.snapshots(1))


def test_partition_that_begins_with_another_record_is_refused(log: Log) -> None:
    with pytest.raises(BrokenSequence, match=f"LogCreated of log {log.log_id}"):
        log.append([ledger_of(log).batch(*runs(1))])


@pytest.mark.parametrize(
    "wrong", [{"log_id": "other"}, {"partitions": 3}, {"number": 1}, {"generation": 9}]
)
def test_partition_that_names_another_log_is_refused(log: Log, wrong: dict[str, int]) -> None:
    stranger = ledger_of(log)
    for name, value in wrong.items():
        setattr(stranger, name, value)
    made = replace(stranger.take_over(), partition=0)
    with pytest.raises(BrokenSequence, match="found log"):
        log.append([made])
    assert log.last_seq(0) == 0


def a_gap(good: Batch) -> Batch:
    return replace(good, events=tuple(replace(each, seq=each.seq + 1) for each in good.events))


def a_repeat(good: Batch) -> Batch:
    return replace(good, events=tuple(replace(each, seq=each.seq - 1) for each in good.events))


def a_wrong_place(good: Batch) -> Batch:
    return replace(good, events=(replace(good.events[0], batch=2), *good.events[1:]))


def a_standing_clock(good: Batch) -> Batch:
    at_us = good.events[0].at_us
    return replace(good, events=tuple(replace(each, at_us=at_us) for each in good.events))


def no_end(good: Batch) -> Batch:
    return replace(good, events=good.events[:-1])


def an_early_end(good: Batch) -> Batch:
    first, *more = good.events
    end = InputsRead(seq=first.seq, writer_epoch=1, at_us=first.at_us, batch=first.batch, records=1)
    return replace(good, events=(end, *more))


def a_wrong_count(good: Batch) -> Batch:
    end = good.events[-1]
    assert isinstance(end, InputsRead)
    return replace(good, events=(*good.events[:-1], replace(end, records=17)))


def nothing_at_all(good: Batch) -> Batch:
    return replace(good, events=())


FAULTS: list[tuple[Callable[[Batch], Batch], str]] = [
    (a_gap, "expected seq 4, found seq 5"),
    (a_repeat, "expected seq 4, found seq 3"),
    (a_wrong_place, "expected batch 4 at seq 4, found batch 2"),
    (a_standing_clock, "expected a time after"),
    (no_end, "the end of batch 4"),
    (an_early_end, "more of batch 4"),
    (a_wrong_count, "expected 17 events"),
    (nothing_at_all, "expected a batch"),
]


@pytest.mark.parametrize("fault, told", FAULTS, ids=lambda each: getattr(each, "__name__", ""))
def test_batch_that_does_not_follow_is_refused_with_what_was_expected_and_found(
    log: Log, fault: Callable[[Batch], Batch], told: str
) -> None:
    ledger = ledger_of(log)
    log.append([ledger.take_over()])
    good = ledger.batch(*runs(2))
    with pytest.raises(BrokenSequence, match=told):
        log.append([fault(good)])
    assert seqs(log) == [1, 2, 3]
    log.append([good])
    assert seqs(log) == [1, 2, 3, 4, 5, 6]


def test_one_wrong_batch_keeps_all_of_its_append_out(log: Log) -> None:
    first, second = ledger_of(log, 0), ledger_of(log, 1)
    log.append([first.take_over(), second.take_over()])
    made = Batch(partition=0, events=first.batch().events, snapshots=(("x", tombstone(JOB, 1)),))
    with pytest.raises(Corrupt):
        log.append([made, a_gap(second.batch(*runs(1)))])
    assert (log.last_seq(0), log.last_seq(1)) == (3, 3)
    assert not list(log.snapshots(0))


def test_writer_of_an_older_epoch_is_fenced(log: Log) -> None:
    ledger = ledger_of(log)
    log.append([ledger.take_over(), ledger.take_over()])
    ledger.epoch = 1
    with pytest.raises(Fenced):
        log.append([ledger.batch()])


def test_new_owner_that_had_not_read_all_is_refused(log: Log) -> None:
    ledger = ledger_of(log)
    log.append([ledger.take_over(), ledger.batch(*runs(1))])
    ledger.epoch = 2
    with pytest.raises(Corrupt, match="had read up to seq 3 only"):
        log.append([ledger.batch(EpochStarted(last_good_seq=3))])


def test_reader_in_the_middle_sees_what_was_committed_and_goes_on(log: Log) -> None:
    ledger = ledger_of(log)
    log.append([ledger.take_over()])
    reader = log.read(0, 0)
    assert next(reader).first_seq == 1
    log.append([ledger.batch()])
    assert [read.first_seq for read in log.read(0, 3)] == [4]
    assert [read.first_seq for read in reader] in ([], [4])


def test_reader_in_another_thread_sees_whole_batches_while_they_are_written(log: Log) -> None:
    ledger = ledger_of(log)
    log.append([ledger.take_over()])
    last_seq = 3 + 50 * 3
    found: list[int] = []

    def read() -> None:
        while not found or found[-1] < last_seq:
            found.extend(seqs(log, 0, found[-1] if found else 0))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(50):
        log.append([ledger.batch(*runs(2, number))])
    thread.join()
    assert found == list(range(1, last_seq + 1))


def test_log_that_went_back_is_refused_to_who_has_read_further(log: Log) -> None:
    log.append([ledger_of(log).take_over()])
    check_not_behind(log, {0: 3, 1: 0}, "history.db")
    with pytest.raises(BrokenSequence, match=r"seq 812, which history\.db has read.*ends at 3"):
        check_not_behind(log, {0: 812}, "history.db")
