"""Copies of a SQLite log, logs cut back, and their generations."""

from pathlib import Path

import pytest

from horolog.schemas.errors import Corrupt, InvalidInput
from horolog.schemas.records import LogCreated, TzdataChanged
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.scheduler.snapshot import tombstone
from tests.builders.core import JOB
from tests.conformance.log.test_log import ledger_of, seqs
from tests.integration.log.files import damage, filled


def generations(log: SqliteLog, partition: int = 0) -> list[int]:
    """Of each record that names one."""
    return [
        event.generation
        for read in log.read(partition, 0)
        for event in read.events
        if isinstance(event, LogCreated)
    ]


def test_backup_of_a_log_that_is_written_is_whole_and_goes_on_as_its_own(tmp_path: Path) -> None:
    log, ledger = filled(tmp_path / "a")
    log.append([ledger.batch(TzdataChanged(version="2027a", zones=()))])
    log.backup(tmp_path / "b")
    log.append([ledger.batch()])

    unchanged = SqliteLog(tmp_path / "b", readonly=True)
    assert (unchanged.last_seq(0), unchanged.generation) == (81, 1)
    unchanged.close()
    copy = SqliteLog(tmp_path / "b")
    assert (copy.log_id, copy.generation) == (log.log_id, 2)
    assert generations(copy) == [1, 2]
    assert seqs(copy) == list(range(1, 84))
    last = next(copy.read(0, 81)).events[0]
    assert isinstance(last, LogCreated)
    assert last.tzdata == "2027a"
    # A partition without events names the generation in its first record.
    copy.append([ledger_of(copy, 1).take_over()])
    copy.close()
    again = SqliteLog(tmp_path / "b")
    assert (again.generation, generations(again), generations(again, 1)) == (2, [1, 2], [2])


def test_backup_over_another_log_is_refused(tmp_path: Path) -> None:
    log, _ = filled(tmp_path / "a")
    filled(tmp_path / "b")[0].close()
    with pytest.raises(InvalidInput, match="exists"):
        log.backup(tmp_path / "b")


def test_tokens_after_cutting_back_are_above_all_before(tmp_path: Path) -> None:
    log, ledger = filled(tmp_path)
    log.append([ledger.batch(snapshots=[("job/x", tombstone(JOB, 80))])])
    highest = ledger.token()
    with pytest.raises(InvalidInput, match=r"seq 41: no batch ends there.*ends at 39"):
        log.new_generation({0: 41})
    assert log.last_seq(0) == 80
    assert log.new_generation({0: 39}) == 2
    assert log.last_seq(0) == 41
    assert not list(log.snapshots(0))
    ledger.seq, ledger.generation = 41, log.generation
    log.append([ledger.take_over()])
    assert ledger.token() > highest
    log.close()
    assert seqs(SqliteLog(tmp_path)) == list(range(1, 44))


def test_fault_that_is_cut_off_is_no_longer_one(tmp_path: Path) -> None:
    log, _ = filled(tmp_path)
    log.close()
    damage(tmp_path, "UPDATE batches SET crc = crc + 1 WHERE last_seq = 63")
    log = SqliteLog(tmp_path)
    with pytest.raises(Corrupt):
        log.new_generation()
    assert log.generation == 1
    with pytest.raises(Corrupt):
        log.new_generation({0: 63})
    log.new_generation({0: 59})
    assert seqs(log) == list(range(1, 62))


def test_log_can_be_cut_back_to_nothing(tmp_path: Path) -> None:
    log, _ = filled(tmp_path)
    log.new_generation({0: 0})
    assert (log.last_seq(0), log.generation) == (0, 2)
    log.append([ledger_of(log).take_over()])
    assert generations(log) == [2]
