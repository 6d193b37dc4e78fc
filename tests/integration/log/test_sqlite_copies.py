"""Copies of a SQLite log, logs cut back, and their generations."""

import shutil
from pathlib import Path

import pytest

from horolog.schemas.errors import Corrupt, InvalidInput
from horolog.schemas.records import LogCreated, TzdataChanged
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.log.sqlite_file import FILE
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


@pytest.mark.parametrize("with_wal", [True, False])
def test_copied_file_goes_on_with_tokens_above_those_of_the_log_it_was_copied_from(
    tmp_path: Path, with_wal: bool
) -> None:
    log, ledger = filled(tmp_path / "a", 40)
    (tmp_path / "b").mkdir()
    for name in (FILE, f"{FILE}-wal") if with_wal else (FILE,):
        shutil.copy(tmp_path / "a" / name, tmp_path / "b" / name)
    log.append([ledger.batch()])
    log.close()
    copy = SqliteLog(tmp_path / "b")
    assert copy.is_copy
    assert (copy.log_id, copy.generation) == (log.log_id, 2)
    made = ledger_of(copy)
    made.seq, made.at_us, made.epoch = copy.last_seq(0), ledger.at_us + 9, ledger.epoch
    made.generation = copy.generation
    copy.append([made.take_over()])
    assert made.token() > ledger.token()
    copy.close()
    again = SqliteLog(tmp_path / "b")
    assert (again.generation, again.is_copy) == (2, False)
    again.close()
    assert SqliteLog(tmp_path / "a").generation == 1


def test_folder_that_was_moved_goes_on_as_the_same_log(tmp_path: Path) -> None:
    filled(tmp_path / "a")[0].close()
    (tmp_path / "a").rename(tmp_path / "b")
    log = SqliteLog(tmp_path / "b")
    assert (log.generation, log.is_copy) == (1, False)


def test_log_of_a_release_that_noted_no_place_goes_on_and_notes_it(tmp_path: Path) -> None:
    filled(tmp_path / "a")[0].close()
    damage(tmp_path / "a", "DELETE FROM meta WHERE key = 'place'")
    SqliteLog(tmp_path / "a").close()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert SqliteLog(tmp_path / "a").generation == 1
    assert SqliteLog(tmp_path / "b").generation == 2
