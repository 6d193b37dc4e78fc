"""Damage to the files of a SQLite log is refused or read to a prefix (F20, F22)."""

import random
import shutil
from pathlib import Path

import pytest

from horolog.schemas.errors import Corrupt
from horolog.streams.log.check import BrokenSequence
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.log.sqlite_file import FILE
from horolog.streams.scheduler.snapshot import tombstone
from tests.builders.core import JOB
from tests.conformance.log.test_log import ledger_of
from tests.integration.log.files import damage, filled, firsts, read_all, read_to_fault


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batches SET data = zeroblob(length(data)) WHERE last_seq = 39",
        "UPDATE batches SET data = substr(data, 1, length(data) - 9) WHERE last_seq = 39",
        "UPDATE batches SET data = data || x'00' WHERE last_seq = 39",
        "UPDATE batches SET data = (SELECT data FROM batches LIMIT 1) WHERE last_seq = 39",
        "UPDATE batches SET crc = crc + 1 WHERE last_seq = 39",
        "UPDATE batches SET last_seq = 38 WHERE last_seq = 39",
        "DELETE FROM batches WHERE last_seq = 39",
    ],
)
def test_damaged_row_is_never_read_over(tmp_path: Path, statement: str) -> None:
    filled(tmp_path)[0].close()
    damage(tmp_path, statement)
    with pytest.raises(Corrupt):
        read_all(tmp_path)
    assert read_to_fault(tmp_path) == firsts(9)


def test_row_of_another_partition_is_refused(tmp_path: Path) -> None:
    log, _ = filled(tmp_path)
    log.append([ledger_of(log, 1).take_over()])
    log.close()
    damage(
        tmp_path,
        "UPDATE batches SET (data, crc) = (SELECT data, crc FROM batches WHERE partition = 0 "
        "AND last_seq = 3) WHERE partition = 1",
    )
    damage(tmp_path, "UPDATE heads SET crc = (SELECT crc FROM batches WHERE partition = 1)")
    with pytest.raises(Corrupt):
        SqliteLog(tmp_path, readonly=True)


@pytest.mark.parametrize("kept", range(10))
def test_log_that_lost_its_tail_is_refused_and_says_what_was_known(
    tmp_path: Path, kept: int
) -> None:
    filled(tmp_path)[0].close()
    end = firsts(10)[kept] - 1
    damage(tmp_path, f"DELETE FROM batches WHERE last_seq > {end}")
    for readonly in (True, False):
        with pytest.raises(BrokenSequence, match=f"seq 79, the last one known.*ends at {end}"):
            SqliteLog(tmp_path, readonly=readonly)


def test_snapshot_that_was_changed_is_refused(tmp_path: Path) -> None:
    log, ledger = filled(tmp_path)
    log.append([ledger.batch(snapshots=[("job/x", tombstone(JOB, 1))])])
    assert list(log.snapshots(0)) == [("job/x", tombstone(JOB, 1))]
    log.close()
    damage(tmp_path, "UPDATE snapshots SET key = 'job/y'")
    with pytest.raises(Corrupt, match="snapshot job/y"):
        list(SqliteLog(tmp_path, readonly=True).snapshots(0))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM snapshots WHERE key = 'job/x'",
        "UPDATE snapshots SET (data, crc) = (SELECT data, crc FROM old.snapshots)",
    ],
)
def test_snapshot_that_is_missing_or_of_another_time_is_refused(
    tmp_path: Path, statement: str
) -> None:
    log, ledger = filled(tmp_path / "a")
    log.append([ledger.batch(snapshots=[("job/x", tombstone(JOB, 1))])])
    log.backup(tmp_path / "b")
    log.append([ledger.batch(snapshots=[("job/x", tombstone(JOB, 70))])])
    assert list(log.snapshots(0)) == [("job/x", tombstone(JOB, 70))]
    log.close()
    damage(tmp_path / "a", f"ATTACH '{tmp_path / 'b' / FILE}' AS old; {statement}")
    with pytest.raises(Corrupt, match="not all of one time"):
        list(SqliteLog(tmp_path / "a", readonly=True).snapshots(0))


def test_snapshots_of_a_release_that_kept_no_sum_are_read_and_given_one(tmp_path: Path) -> None:
    log, ledger = filled(tmp_path)
    log.append([ledger.batch(snapshots=[("job/x", tombstone(JOB, 1))])])
    log.close()
    damage(tmp_path, "DELETE FROM meta WHERE key LIKE 'snapshots.%'")
    log = SqliteLog(tmp_path)
    assert list(log.snapshots(0)) == [("job/x", tombstone(JOB, 1))]
    log.append([ledger.batch(snapshots=[("job/y", tombstone(JOB, 2))])])
    assert len(list(log.snapshots(0))) == 2
    log.close()
    damage(tmp_path, "DELETE FROM snapshots WHERE key = 'job/x'")
    with pytest.raises(Corrupt, match="not all of one time"):
        list(SqliteLog(tmp_path, readonly=True).snapshots(0))


def test_copy_without_its_wal_is_a_prefix_and_never_has_a_gap(tmp_path: Path) -> None:
    log, _ = filled(tmp_path / "a", 400)
    (tmp_path / "b").mkdir()
    shutil.copy(tmp_path / "a" / FILE, tmp_path / "b" / FILE)
    log.close()
    found = read_to_fault(tmp_path / "b")
    assert found == firsts(len(found))
    assert len(found) < 400


@pytest.mark.parametrize("cut", range(1, 16))
def test_wal_that_was_cut_gives_a_prefix(tmp_path: Path, cut: int) -> None:
    log, _ = filled(tmp_path / "a", 40)
    (tmp_path / "b").mkdir()
    for name in (FILE, f"{FILE}-wal"):
        data = (tmp_path / "a" / name).read_bytes()
        (tmp_path / "b" / name).write_bytes(data if name == FILE else data[: -cut * 3_001])
    log.close()
    found = read_to_fault(tmp_path / "b")
    assert found == firsts(len(found))
    assert 0 < len(found) < 40


def test_files_changed_at_random_are_refused_or_read_to_a_prefix(tmp_path: Path) -> None:
    log, _ = filled(tmp_path / "a", 100)
    log.close()
    whole = (tmp_path / "a" / FILE).read_bytes()
    place = tmp_path / "b" / FILE
    place.parent.mkdir()
    chance = random.Random(20)
    for _ in range(200):
        data = bytearray(whole)
        at = chance.randrange(len(data))
        size = chance.choice([1, 16, 512, 4096])
        match chance.randrange(4):
            case 0:
                data[at : at + size] = chance.randbytes(size)
            case 1:
                data[at : at + size] = bytes(size)
            case 2:
                del data[at:]
            case _:
                page = at // 4096 * 4096
                other = chance.randrange(len(data)) // 4096 * 4096
                data[page : page + 4096] = data[other : other + 4096]
        place.write_bytes(data)
        found = read_to_fault(tmp_path / "b")
        # Whatever is read is what was written, from the first batch on.
        assert found == firsts(len(found))
