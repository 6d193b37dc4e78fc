"""The file of the tables: damage, other versions, other processes, and what a query looks at."""

import contextlib
import multiprocessing
import sqlite3
import threading
from collections.abc import Callable, Generator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from horolog.projections.fold import Fold
from horolog.projections.rebuild import rebuild, verify
from horolog.projections.runs import STATUS
from horolog.projections.schema import RUNS
from horolog.projections.store import Checkpoint
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.stores.sqlite import SqliteHistory
from horolog.projections.stores.sqlite_queries import SqliteQueries
from horolog.projections.tables import Changes, Upsert
from horolog.schemas.errors import Unavailable
from horolog.streams.log.sqlite import SqliteLog
from tests.builders.histories import digests
from tests.builders.ledger import SECOND_US, Ledger
from tests.builders.ledger_life import JOBS, LedgerLife

JOB = JOBS[0]
CHOICES = [(number * 7919) % 4001 for number in range(150)]


def test_history_of_a_log_on_disk_equals_that_of_the_one_in_memory(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path, partitions=3)
    life = LedgerLife(3, log_id=log.log_id).live(CHOICES)
    for batches in life.batches:
        for batch in batches:
            log.append([batch])
    store = SqliteHistory(tmp_path / "history.db")
    rebuild(log, store)
    expected = MemoryHistory()
    rebuild(life.log, expected)
    assert digests(store) == digests(expected)
    with store.snapshot() as live:
        assert verify(log, live, MemoryHistory()) is None
    store.close()
    log.close()


@pytest.mark.parametrize("spoil", [b"not a database, but long enough to be read as one" * 40, b"x"])
def test_a_file_that_is_no_database_is_made_anew(tmp_path: Path, spoil: bytes) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(spoil)
    store = SqliteHistory(path)
    assert dict(store.positions()) == {}
    assert store.tenants() == []
    store.close()


def test_a_file_of_another_format_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.executescript("CREATE TABLE meta (version INTEGER); PRAGMA user_version = 999;")
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store = SqliteHistory(path)
    rebuild(ledger.log, store)
    assert store.job(JOB) is not None
    store.close()


def test_rows_and_positions_belong_together_after_each_batch(tmp_path: Path) -> None:
    life = LedgerLife(2).live(CHOICES)
    store = SqliteHistory(tmp_path / "history.db")
    for partition, batches in enumerate(life.batches):
        for batch in batches:
            rebuild(life.log, store, upto={partition: batch.events[-1].seq})
            with store.snapshot() as live:
                assert verify(life.log, live, MemoryHistory()) is None
    store.close()


def fold_until_killed(path: Path, told: Connection) -> None:
    """A process that folds, a batch a transaction, and says so after each."""
    ledger = ledger_of_runs()
    fold = Fold(ledger.log, SqliteHistory(path))
    for batch in ledger.batches[0]:
        fold.fold(batch)
        if fold.events_pending:
            fold.write()
            told.send(batch.events[-1].seq)


def ledger_of_runs() -> Ledger:
    """Some hundred batches."""
    ledger = Ledger()
    ledger.create(JOB)
    for number in range(200):
        run = ledger.plan(JOB, number * SECOND_US)
        ledger.commit()
        ledger.start(run)
        ledger.commit()
        ledger.succeed(run)
    ledger.commit()
    return ledger


def test_a_writer_killed_within_a_transaction_leaves_whole_ones(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    spawning = multiprocessing.get_context("spawn")
    ledger = ledger_of_runs()
    reached = 0
    for batches in (5, 3, 8):
        reader, writer = spawning.Pipe(duplex=False)
        victim = spawning.Process(target=fold_until_killed, args=(path, writer))
        victim.start()
        for _ in range(batches):
            reader.recv()
        victim.kill()
        victim.join()
        store = SqliteHistory(path)
        with store.snapshot() as live:
            assert verify(ledger.log, live, MemoryHistory()) is None
        position = store.positions()[0]
        assert reached < position < ledger.log.last_seq(0)
        reached = position
        store.close()


def test_a_file_that_another_process_reads_is_not_swapped(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    path = tmp_path / "history.db"
    store = SqliteHistory(path)
    rebuild(ledger.log, store)
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM jobs").fetchone() == (1,)
        beside = store.beside()
        rebuild(ledger.log, beside)
        with pytest.raises(Unavailable, match="open in another process"):
            beside.promote()
        beside.abandon()
        assert store.job(JOB) is not None
        ledger.create(JOBS[1])
        ledger.commit()
        rebuild(ledger.log, store)
        assert other.execute("SELECT count(*) FROM jobs").fetchone() == (2,)
    assert not list(tmp_path.glob("*.new*"))
    store.close()


def test_many_threads_may_read_while_one_writes(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store = SqliteHistory(tmp_path / "history.db")
    rebuild(ledger.log, store)
    done = threading.Event()
    faults: list[str] = []

    def read() -> None:
        while not done.is_set():
            page = store.runs(JOB, statuses=(), from_us=None, to_us=None, after=None, limit=1_000)
            # Each batch makes two runs: a page of one instant holds an even number.
            if len(page.rows) % 2:
                faults.append(f"{len(page.rows)} rows as of {page.as_of}")

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(60):
        ledger.plan(JOB, number * 2 * SECOND_US)
        ledger.plan(JOB, (number * 2 + 1) * SECOND_US)
        ledger.commit()
        rebuild(ledger.log, store)
    done.set()
    for reader in readers:
        reader.join()
    assert faults == []
    store.close()


def test_a_closed_history_answers_no_more(tmp_path: Path) -> None:
    store = SqliteHistory(tmp_path / "history.db")
    with store.snapshot():
        store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.tenants()
    # The last connection that closes removes these.
    assert not list(tmp_path.glob("history.db-*"))


@pytest.fixture(name="counted")
def _counted(tmp_path: Path) -> Generator[Callable[[], tuple[SqliteQueries, list[int]]]]:
    """Queries over 20,000 succeeded and 3 dead runs, and the steps SQLite took for them."""
    path = tmp_path / "history.db"
    store = SqliteHistory(path)
    changes = Changes()
    for number in range(20_000):
        status = "dead" if number in (5, 9_000, 15_000) else "succeeded"
        changes.add(
            Upsert(RUNS, (JOB, number, f"r{number}"), STATUS, 1, (status, "", None, None, ""))
        )
    store.write(changes, {("runs", 0): Checkpoint(1, 1)})
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    @contextlib.contextmanager
    def read() -> Generator[sqlite3.Connection]:
        yield connection

    connection.set_progress_handler(count, 1)
    yield lambda: (SqliteQueries(read), steps)
    connection.close()


def test_rare_statuses_are_found_without_a_look_at_the_others(
    counted: Callable[[], tuple[SqliteQueries, list[int]]],
) -> None:
    queries, steps = counted()
    page = queries.runs(
        JOB, statuses=("dead", "cancelled"), from_us=None, to_us=None, after=None, limit=50
    )
    assert [row.at_us for row in page.rows] == [15_000, 9_000, 5]
    assert steps[0] < 3_000


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_page_deep_in_the_history_costs_no_more_than_the_first(
    counted: Callable[[], tuple[SqliteQueries, list[int]]], *, newest_first: bool
) -> None:
    queries, steps = counted()
    costs: list[int] = []
    for after in (None, (10_000, "r10000")):
        steps[0] = 0
        page = queries.runs(
            JOB,
            statuses=(),
            from_us=None,
            to_us=None,
            after=after,
            limit=50,
            newest_first=newest_first,
        )
        assert len(page.rows) == 50
        costs.append(steps[0])
    assert max(costs) < 8_000
