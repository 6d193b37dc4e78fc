"""The process that writes the history of a server: it follows, dies, is begun again, rebuilds."""

import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from horolog.cli.history_process import HistoryProcess
from horolog.cli.history_writer import HISTORY_FILE, held
from horolog.projections.known import RETENTION_US
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.stores.sqlite import SqliteHistory, SqliteReading
from horolog.schemas.errors import Unavailable
from horolog.schemas.records import TenantId
from horolog.streams.log.sqlite import SqliteLog
from tests.builders.histories import digests, fold_all, interleaved
from tests.builders.ledger import MINUTE_US, T0, Ledger
from tests.builders.ledger_life import JOBS
from tests.waiting import until

JOB = JOBS[0]
ACME = TenantId("acme")
LONG_S = 30.0


class Place:
    """A log on disk that goes on, and the process that writes its history."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = SqliteLog(folder, partitions=2)
        self.ledger = Ledger(2, log_id=self.log.log_id)
        for batches in self.ledger.batches:
            self.log.append(batches)
        self.ledger.create(JOB)
        self._commit()
        SqliteHistory(folder / HISTORY_FILE).close()
        self.reading = SqliteReading(folder / HISTORY_FILE)
        self.process = HistoryProcess(folder, self.reading, positions={}, retention_us=RETENTION_US)

    def _commit(self) -> None:
        batches = self.ledger.commit()
        self.log.append(batches)

    def live(self, count: int, first: int = 0) -> None:
        """Whole lives of runs."""
        for number in range(first, first + count):
            run = self.ledger.plan(JOB, T0 + number * MINUTE_US)
            self.ledger.start(run)
            self.ledger.succeed(run)
            self._commit()
            self.process.offer(())

    def wait(self) -> None:
        """Until the history has all that is committed."""
        for partition in range(2):
            assert self.process.wait_for(partition, self.log.last_seq(partition), LONG_S)

    def started(self) -> int:
        """Runs that the tables say were started."""
        return self.reading.tenant_use(ACME).started_count

    def writer(self) -> int:
        """The process's id."""
        tasks = Path("/proc/self/task")
        (pid,) = {
            int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()
            if b"history_writer" in Path(f"/proc/{pid}/cmdline").read_bytes()
        }  # fmt: skip
        return pid

    def digests(self) -> dict[str, str]:
        """Of the tables on disk, after the end."""
        store = SqliteHistory(self.folder / HISTORY_FILE)
        try:
            return digests(store)
        finally:
            store.close()

    def expected(self) -> dict[str, str]:
        """Of the same ledger, folded in memory."""
        store = MemoryHistory()
        fold_all(self.ledger.log, store, interleaved(self.ledger.batches, [0]))
        return digests(store)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """One whose process runs."""
    place = Place(tmp_path)
    place.process.start()
    yield place
    place.process.stop()
    place.reading.close()
    place.log.close()


def test_process_follows_the_log_and_at_its_end_has_all_of_it(place: Place) -> None:
    told: list[int] = []
    place.process.on_moved = lambda positions: told.append(sum(positions.values()))
    place.live(3)
    place.wait()
    assert place.started() == 3
    place.live(20, first=3)
    place.process.stop()
    assert place.started() == 23
    assert place.digests() == place.expected()
    assert told == sorted(told)


def test_process_that_is_killed_is_begun_again_and_goes_on(place: Place) -> None:
    place.live(5)
    place.wait()
    for number in range(1, 3):
        before = place.writer()
        os.kill(before, signal.SIGKILL)
        place.live(5, first=5 * number)
        place.wait()
        assert place.started() == 5 * (number + 1)
        assert place.writer() != before
    assert place.process.failure is None
    assert place.process.unavailable is None
    place.process.stop()
    assert place.digests() == place.expected()


def test_rebuild_goes_on_beside_readers_and_writes(place: Place) -> None:
    place.live(30)
    place.wait()
    seen: list[int] = []
    done = threading.Event()

    def read_on() -> None:
        while not done.is_set():
            seen.append(place.started())

    readers = [threading.Thread(target=read_on) for _ in range(3)]
    for reader in readers:
        reader.start()
    progress: list[int] = []
    for number in range(2):
        place.live(5, first=30 + 10 * number)
        place.process.rebuild(lambda step: progress.append(step.seq))
        place.live(5, first=35 + 10 * number)
    place.wait()
    done.set()
    for reader in readers:
        reader.join()
    assert progress
    assert min(seen) == 30
    place.process.stop()
    assert place.started() == 50
    assert place.digests() == place.expected()


def test_rebuild_whose_process_dies_is_told_so_and_the_old_tables_stay(place: Place) -> None:
    place.live(10)
    place.wait()
    with pytest.raises(Unavailable, match="old tables stay"):
        place.process.rebuild(lambda _: os.kill(place.writer(), signal.SIGKILL))
    place.live(1, first=10)
    place.wait()
    assert place.started() == 11


def test_writer_of_a_server_that_is_gone_ends_and_leaves_the_tables_to_the_next(
    tmp_path: Path,
) -> None:
    first = Place(tmp_path)
    server = os.fork()
    if server == 0:
        first.process.start()
        first.process.wait_for(0, first.log.last_seq(0), LONG_S)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(server, 0)
    until(partial(is_free, tmp_path), "the writer has ended", LONG_S)
    first.process.start()
    first.live(2)
    first.wait()
    first.process.stop()
    assert first.started() == 2
    first.reading.close()
    first.log.close()


def is_free(folder: Path) -> bool | None:
    """Whether nobody writes the history."""
    with held(folder):
        return True
