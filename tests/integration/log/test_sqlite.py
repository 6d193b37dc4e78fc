"""The SQLite log on real files: locks, other releases, the end of its process, full disks."""

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from horolog.schemas import errors
from horolog.schemas.errors import Corrupt, Fenced, InvalidInput, Unavailable
from horolog.streams.log.datadir import DataDir
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.log.sqlite_file import FILE
from tests.conformance.log.test_log import runs, seqs
from tests.integration.log.files import damage, filled, firsts, read_all

MIB = 1024 * 1024


# --- one process


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
    assert str(tmp_path) in found.stdout
    held.release()
    DataDir(tmp_path).release()


def test_data_directory_that_is_a_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("x")
    with pytest.raises(Unavailable, match="--data"):
        DataDir(place)


def test_writer_that_got_round_the_lock_fences_the_other(tmp_path: Path) -> None:
    log, ledger = filled(tmp_path)
    other = SqliteLog(tmp_path)
    made = ledger.batch()
    other.append([made])
    with pytest.raises(Fenced, match="another process has written"):
        log.append([made])
    assert len(read_all(tmp_path)) == 21


def test_writer_in_another_process_is_seen_by_a_reader_as_a_prefix(tmp_path: Path) -> None:
    log, ledger = filled(tmp_path)
    reader = SqliteLog(tmp_path, readonly=True)
    log.append([ledger.batch()])
    assert reader.last_seq(0) == 79
    assert seqs(reader) == list(range(1, 81))
    with pytest.raises(AssertionError, match="opened to be read"):
        reader.append([ledger.batch()])


def test_lock_of_another_program_is_unavailable_and_the_same_batch_passes_later(
    tmp_path: Path,
) -> None:
    log, ledger = filled(tmp_path)
    own = log._own  # pyright: ignore[reportPrivateUsage] - the test must not wait 5 s
    own.execute("PRAGMA busy_timeout = 1")
    made = ledger.batch()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked; nothing was written"):
            log.append([made])
    log.append([made])
    assert log.last_seq(0) == 80


# --- opening


def test_log_is_opened_again_with_all_it_had(tmp_path: Path) -> None:
    log, ledger = filled(tmp_path)
    log_id = log.log_id
    log.close()
    log = SqliteLog(tmp_path)
    assert (log.partitions, log.log_id, log.generation) == (2, log_id, 1)
    assert log.last_seq(0) == 79
    log.append([ledger.batch()])
    assert seqs(log) == list(range(1, 81))


def test_another_number_of_partitions_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)[0].close()
    with pytest.raises(InvalidInput, match="was made with 2"):
        SqliteLog(tmp_path, partitions=4)


@pytest.mark.parametrize("number", [-1, 65])
def test_impossible_number_of_partitions_is_refused(tmp_path: Path, number: int) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 64"):
        SqliteLog(tmp_path, partitions=number)


def test_log_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)[0].close()
    damage(tmp_path, "UPDATE meta SET value = '99' WHERE key = 'format'")
    with pytest.raises(Corrupt, match="format 99, this release reads up to 1") as refused:
        SqliteLog(tmp_path)
    assert refused.value.error is errors.NEWER_FORMAT


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = 'other' WHERE key = 'log_id'",
        "UPDATE meta SET value = '0' WHERE key = 'generation'",
        "UPDATE meta SET value = 'two' WHERE key = 'partitions'",
        "DELETE FROM meta WHERE key = 'log_id'",
        "DROP TABLE meta",
        "DROP TABLE heads",
    ],
)
def test_log_that_does_not_agree_with_its_first_records_is_refused(
    tmp_path: Path, statement: str
) -> None:
    filled(tmp_path)[0].close()
    damage(tmp_path, statement)
    with pytest.raises(Corrupt):
        SqliteLog(tmp_path)


def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all, but long enough to look at" * 100)
    with pytest.raises(Corrupt):
        SqliteLog(tmp_path)


def test_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as other:
        other.execute("CREATE TABLE accounts (id INTEGER)")
    with pytest.raises(Corrupt, match="does not say which log it is"):
        SqliteLog(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("accounts",)]


def test_directory_without_a_log_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"holds no ledger\.db"):
        SqliteLog(tmp_path, readonly=True)


def test_first_start_that_was_killed_before_its_commit_begins_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    assert SqliteLog(tmp_path).generation == 1


# --- the end of a process (F19)

VICTIM = """
import sys
from pathlib import Path
from horolog.streams.log.sqlite import SqliteLog
from tests.builders.events import Ledger
from tests.conformance.log.test_log import ledger_of
log = SqliteLog(Path(sys.argv[1]), partitions=1)
last = None
for last in log.read(0, 0):
    pass
ledger = ledger_of(log)
if last is not None:
    end = last.events[-1]
    ledger.seq, ledger.epoch, ledger.at_us = end.seq, end.writer_epoch, end.at_us
log.append([ledger.take_over()])
while True:
    log.append([ledger.batch()])
    print(ledger.seq, flush=True)
"""


def test_killed_writer_loses_nothing_it_had_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(19)
    root = Path(__file__).parents[3]
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-P", "-c", VICTIM, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(root)},
        ) as victim:
            assert victim.stdout is not None
            acknowledged = 0
            for _ in range(chance.randrange(1, 120)):
                acknowledged = int(victim.stdout.readline())
            victim.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, victim.stdout.read().split("\n")[:-1])])
        log = SqliteLog(tmp_path)
        found = seqs(log)
        assert found == list(range(1, log.last_seq(0) + 1))
        assert log.last_seq(0) >= acknowledged
        log.close()


# --- a full disk (F18)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={8 * MIB}", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_disk_that_fills_up_again_and_again_loses_nothing_and_goes_on(small_disk: Path) -> None:
    log, ledger = filled(small_disk)
    own = log._own  # pyright: ignore[reportPrivateUsage] - its WAL must not fill the disk
    ballast = small_disk / "ballast"
    for _ in range(50):
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            # A write that found room for a part of it only is followed by one that finds none.
            while True:
                file.write(bytes(16 * 4096))
        made = ledger.batch(*runs(400))
        before = log.last_seq(0)
        with pytest.raises(Unavailable) as refused:
            log.append([made])
        assert refused.value.error is errors.DISK_FULL
        assert log.last_seq(0) == before
        ballast.unlink()
        log.append([made])
        # The log itself must not fill the disk over the rounds.
        own.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log.close()
    reader = SqliteLog(small_disk, readonly=True)
    assert seqs(reader) == list(range(1, ledger.seq + 1))
    reader.close()


def test_file_that_may_not_grow_writes_nothing_and_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    log, ledger = filled(tmp_path)
    own = log._own  # pyright: ignore[reportPrivateUsage] - the limit stands for a full disk
    (pages,) = own.execute("PRAGMA page_count").fetchone()
    own.execute(f"PRAGMA max_page_count = {pages}")
    large = ledger.batch(*runs(2_000))
    with pytest.raises(Unavailable) as refused:
        log.append([large])
    assert refused.value.error is errors.DISK_FULL
    assert log.last_seq(0) == 79
    own.execute("PRAGMA max_page_count = 1000000")
    log.append([large])
    assert len(read_all(tmp_path)) == 21


def test_directory_that_may_not_be_written_is_refused_or_read(small_disk: Path) -> None:
    filled(small_disk)[0].close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert read_all(small_disk) == firsts(20)
    with pytest.raises(Unavailable) as refused:
        SqliteLog(small_disk)
    assert refused.value.error is errors.DATA_DIR_UNUSABLE
