"""The SQLite log on real files: locks, damage, full disks, copies, other releases."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from horolog.schemas import errors
from horolog.schemas.errors import Corrupt, InvalidInput, Unavailable
from horolog.streams.log.datadir import DataDir
from horolog.streams.log.sqlite import FILE, SqliteLog
from tests.conformance.log.test_log import batch


def filled(folder: Path, batches: int = 20) -> SqliteLog:
    """A log with some batches in its first partition."""
    folder.mkdir(exist_ok=True)
    log = SqliteLog(folder, partitions=2)
    for number in range(batches):
        log.append([batch(1 + 4 * number, 3)])
    return log


def read_all(folder: Path) -> list[int]:
    """First `seq` of each batch that can be read."""
    log = SqliteLog(folder, readonly=True)
    return [read.first_seq for read in log.read(0, 0)]


def test_second_process_on_the_same_data_is_refused_with_the_pid_of_the_first(
    tmp_path: Path,
) -> None:
    held = DataDir(tmp_path)
    code = (
        "import sys; from pathlib import Path; from horolog.streams.log.datadir import DataDir\n"
        "from horolog.schemas.errors import Unavailable\n"
        "try: DataDir(Path(sys.argv[1]))\n"
        "except Unavailable as error: print(error)"
    )
    found = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert errors.DATA_DIR_LOCKED.number in found.stdout
    assert f"process {os.getpid()}" in found.stdout
    held.release()
    DataDir(tmp_path).release()


def test_data_directory_that_is_a_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("x")
    with pytest.raises(Unavailable, match="--data"):
        DataDir(place)


def test_log_is_opened_again_with_all_it_had(tmp_path: Path) -> None:
    filled(tmp_path).close()
    log = SqliteLog(tmp_path)
    assert (log.partitions, log.last_seq(0)) == (2, 80)
    log.append([batch(81)])
    assert log.last_seq(0) == 82


def test_another_number_of_partitions_is_refused(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with pytest.raises(InvalidInput, match="was made with 2"):
        SqliteLog(tmp_path, partitions=4)


def test_log_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    with sqlite3.connect(tmp_path / FILE) as file:
        file.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    with pytest.raises(Corrupt, match="format 99"):
        SqliteLog(tmp_path)


def test_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all, but long enough to look at" * 100)
    with pytest.raises(Corrupt):
        SqliteLog(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE batches SET data = zeroblob(length(data)) WHERE last_seq = 40",
        "UPDATE batches SET crc = crc + 1 WHERE last_seq = 40",
        "DELETE FROM batches WHERE last_seq = 40",
        "UPDATE batches SET data = substr(data, 1, length(data) - 9) WHERE last_seq = 40",
    ],
)
def test_damaged_row_is_never_read_over(tmp_path: Path, damage: str) -> None:
    filled(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as file:
        file.execute(damage)
    seen: list[int] = []
    with pytest.raises(Corrupt):
        seen.extend(read_before_fault(tmp_path))
    log = SqliteLog(tmp_path, readonly=True)
    good: list[int] = []
    with pytest.raises(Corrupt):
        for read in log.read(0, 0):
            good.append(read.first_seq)  # noqa: PERF402 - what came before the fault counts
    assert good == [1 + 4 * number for number in range(9)]


def read_before_fault(folder: Path) -> Iterator[int]:
    """Batches up to the fault, which is raised."""
    yield from read_all(folder)


def test_copy_without_its_wal_is_a_prefix_and_never_has_a_gap(tmp_path: Path) -> None:
    log = filled(tmp_path / "a")
    (tmp_path / "b").mkdir()
    shutil.copy(tmp_path / "a" / FILE, tmp_path / "b" / FILE)
    log.close()
    try:
        firsts = read_all(tmp_path / "b")
    except Corrupt:
        firsts = []
    assert firsts == [1 + 4 * number for number in range(len(firsts))]


@pytest.mark.parametrize("cut", range(8))
def test_cut_file_is_refused_or_read_to_a_prefix(tmp_path: Path, cut: int) -> None:
    log = filled(tmp_path, 200)
    log._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # noqa: SLF001 - all in one file
    log.close()
    place = tmp_path / FILE
    whole = place.read_bytes()
    place.write_bytes(whole[: len(whole) * (cut + 1) // 9])
    try:
        firsts = read_all(tmp_path)
    except (Corrupt, Unavailable):
        return
    assert firsts == [1 + 4 * number for number in range(len(firsts))]


def test_full_disk_writes_nothing_says_so_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    log = filled(tmp_path)
    writer = log._writer  # noqa: SLF001 - the limit stands for a full disk
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages}")
    large = batch(81, 2_000)
    with pytest.raises(Unavailable) as refused:
        log.append([large])
    assert refused.value.error is errors.DISK_FULL
    assert log.last_seq(0) == 80
    writer.execute("PRAGMA max_page_count = 1000000")
    log.append([large])
    assert len(read_all(tmp_path)) == 21


def test_backup_of_a_log_that_is_written_is_whole_and_gets_a_generation_of_its_own(
    tmp_path: Path,
) -> None:
    log = filled(tmp_path / "a")
    log.backup(tmp_path / "b")
    log.append([batch(81)])
    copy = SqliteLog(tmp_path / "b")
    assert copy.last_seq(0) == 80
    assert copy.new_generation() == log.generation + 1
    copy.close()
    assert SqliteLog(tmp_path / "b").generation == log.generation + 1
