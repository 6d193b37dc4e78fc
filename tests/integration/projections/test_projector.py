"""The projector's thread beside a host: offers, gaps, failures, rebuilds, and who waits for it."""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from horolog.projections import projector as projector_module
from horolog.projections.fold import Batch
from horolog.projections.projector import Projector
from horolog.projections.rebuild import Progress
from horolog.projections.store import Checkpoints
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.stores.sqlite import SqliteHistory
from horolog.projections.tables import Changes
from horolog.schemas.errors import DATA_DIR_CORRUPT, Corrupt, Unavailable
from horolog.schemas.records import TenantId
from tests.builders.histories import digests, fold_all, interleaved
from tests.builders.ledger import MINUTE_US, T0, Ledger
from tests.builders.ledger_life import JOBS

LONG_S = 30.0
"""Only ends a test that hangs."""
JOB = JOBS[0]
ACME = TenantId("acme")


class Watched(MemoryHistory):
    """Counts transactions, and tells of failures."""

    def __init__(self) -> None:
        super().__init__()
        self.transactions = 0
        self.tried = threading.Event()

    def write(self, changes: Changes, checkpoints: Checkpoints) -> None:
        self.tried.set()
        super().write(changes, checkpoints)
        self.transactions += 1


class Readings:
    """A log that counts how often it is read, and may be broken."""

    def __init__(self, ledger: Ledger) -> None:
        self._log = ledger.log
        self.partitions = ledger.log.partitions
        self.log_id = ledger.log.log_id
        self.generation = ledger.log.generation
        self.count = 0
        self.is_broken = False

    def read(self, partition: int, after_seq: int) -> Iterable[Batch]:
        self.count += 1
        if self.is_broken:
            raise Corrupt(DATA_DIR_CORRUPT, "a gap")
        return self._log.read(partition, after_seq)


def make_runs(ledger: Ledger, count: int, first: int = 0) -> list[Batch]:
    """Whole lives of runs, three batches each."""
    batches: list[Batch] = []
    for number in range(first, first + count):
        run = ledger.plan(JOB, T0 + number * MINUTE_US)
        batches += ledger.commit()
        ledger.start(run)
        batches += ledger.commit()
        ledger.succeed(run)
        batches += ledger.commit()
    return batches


def wait(projector: Projector, ledger: Ledger) -> None:
    for partition in range(ledger.log.partitions):
        assert projector.wait_for(partition, ledger.log.last_seq(partition), LONG_S)


def test_projector_reads_what_was_there_and_follows_what_is_offered() -> None:
    ledger = Ledger(2)
    ledger.create(JOB)
    ledger.commit()
    store, source = MemoryHistory(), Readings(ledger)
    projector = Projector(source, store)
    projector.start()
    wait(projector, ledger)
    readings = source.count
    projector.offer(make_runs(ledger, 20))
    wait(projector, ledger)
    assert source.count == readings
    assert store.tenant_use(ACME).started_count == 20
    projector.stop()
    assert projector.failure is None


def test_projector_that_misses_an_offer_reads_the_log() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store, source = MemoryHistory(), Readings(ledger)
    projector = Projector(source, store)
    projector.start()
    wait(projector, ledger)
    readings = source.count
    projector.offer(make_runs(ledger, 3)[5:])
    wait(projector, ledger)
    assert source.count > readings
    assert store.tenant_use(ACME).started_count == 3
    projector.stop()


def test_projector_offered_more_than_it_keeps_reads_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(projector_module, "EVENTS_OFFERED_MAX", 10)
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store = Gated()
    projector = Projector(Readings(ledger), store)
    projector.start()
    assert store.tried.wait(LONG_S)
    # It is at its first write; of what is offered meanwhile nothing is kept.
    projector.offer(make_runs(ledger, 30))
    store.gate.set()
    wait(projector, ledger)
    assert store.tenant_use(ACME).started_count == 30
    projector.stop()


class Gated(Watched):
    """Writes when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def write(self, changes: Changes, checkpoints: Checkpoints) -> None:
        self.tried.set()
        assert self.gate.wait(LONG_S)
        super().write(changes, checkpoints)


def test_projector_offered_batches_again_and_late_changes_nothing() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store = MemoryHistory()
    projector = Projector(Readings(ledger), store)
    projector.start()
    batches = make_runs(ledger, 5)
    projector.offer(batches)
    wait(projector, ledger)
    before = digests(store)
    projector.offer(batches)
    projector.offer(batches[3:6])
    projector.stop()
    assert digests(store) == before


def test_projector_lingers_so_that_what_comes_together_is_one_transaction() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store = Watched()
    projector = Projector(Readings(ledger), store, linger_s=100 * LONG_S)
    projector.start()
    wait(projector, ledger)
    before = store.transactions
    for batch in make_runs(ledger, 10):
        projector.offer([batch])
    wait(projector, ledger)
    assert store.transactions == before + 1
    projector.stop()


def test_projector_waited_for_in_vain_says_so() -> None:
    ledger = Ledger()
    projector = Projector(Readings(ledger), MemoryHistory())
    projector.start()
    assert not projector.wait_for(0, 10**9, 0.01)
    projector.stop()
    assert not projector.wait_for(0, 10**9, LONG_S)


def test_projector_that_cannot_write_goes_on_when_it_can() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store = Watched()
    projector = Projector(Readings(ledger), store)
    store.fail_next(1)
    projector.start()
    assert store.tried.wait(LONG_S)
    projector.offer(make_runs(ledger, 2))
    wait(projector, ledger)
    assert projector.unavailable is None
    assert store.tenant_use(ACME).started_count == 2
    projector.stop()


def test_projector_that_is_stopped_while_it_cannot_write_leaves_the_rest_to_the_log() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store = Watched()
    projector = Projector(Readings(ledger), store)
    store.fail_next(10**6)
    projector.start()
    assert store.tried.wait(LONG_S)
    projector.stop()
    assert projector.unavailable is not None
    assert projector.failure is None
    assert projector.position(0) == 0
    store.fail_next(0)
    anew = Projector(Readings(ledger), store)
    anew.start()
    wait(anew, ledger)
    anew.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_projector_on_a_corrupt_log_stops_where_it_is_and_says_why() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    source = Readings(ledger)
    store = MemoryHistory()
    projector = Projector(source, store)
    ended = threading.Event()
    projector.on_failure = ended.set
    projector.start()
    wait(projector, ledger)
    source.is_broken = True
    reached = projector.position(0)
    projector.offer(make_runs(ledger, 2)[2:])
    assert ended.wait(LONG_S)
    assert isinstance(projector.failure, Corrupt)
    assert not projector.wait_for(0, reached + 1, LONG_S)
    assert projector.position(0) == reached
    projector.stop()


def test_projector_tells_positions_after_each_write() -> None:
    ledger = Ledger()
    told: list[int] = []
    projector = Projector(Readings(ledger), MemoryHistory())
    projector.on_moved = lambda positions: told.append(positions[0])
    projector.start()
    wait(projector, ledger)
    projector.offer(make_runs(ledger, 3))
    wait(projector, ledger)
    projector.stop()
    assert told[-1] == ledger.log.last_seq(0)
    assert told == sorted(told)


def test_projector_rebuilds_beside_while_it_follows_and_no_position_goes_back(
    tmp_path: Path,
) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    make_runs(ledger, 30)
    store = SqliteHistory(tmp_path / "history.db")
    projector = Projector(ledger.log, store)
    told: list[int] = []
    projector.on_moved = lambda positions: told.append(positions[0])
    projector.start()
    wait(projector, ledger)
    seen: list[int] = []
    done = threading.Event()

    def read_on() -> None:
        while not done.is_set():
            seen.append(store.tenant_use(ACME).started_count)

    readers = [threading.Thread(target=read_on) for _ in range(3)]
    for reader in readers:
        reader.start()
    progress: list[int] = []
    for round_ in range(3):
        offered = make_runs(ledger, 10, first=100 * (round_ + 1))
        projector.offer(offered[: len(offered) // 2])
        projector.rebuild(lambda step: progress.append(step.seq))
        projector.offer(offered[len(offered) // 2 :])
    wait(projector, ledger)
    done.set()
    for reader in readers:
        reader.join()
    projector.stop()
    assert projector.failure is None
    assert told == sorted(told)
    assert min(seen) == 30
    assert seen[-1] <= 60
    assert progress
    expected = MemoryHistory()
    fold_all(ledger.log, expected, interleaved(ledger.batches, [0]))
    assert digests(store) == digests(expected)
    assert not list(tmp_path.glob("*.new*"))
    store.close()


def test_projector_swaps_in_what_has_caught_up_with_what_came_during_the_rebuild() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    store = MemoryHistory()
    told: list[int] = []
    projector = Projector(Readings(ledger), store)
    projector.on_moved = lambda positions: told.append(positions[0])
    projector.start()
    rounds: list[int] = []

    def go_on(progress: Progress) -> None:
        # What was built is at the end of the log, and then the log goes on.
        assert progress.seq == ledger.log.last_seq(0)
        rounds.append(progress.seq)
        projector.offer(make_runs(ledger, 2, first=10 * len(rounds)))
        wait(projector, ledger)

    projector.rebuild(go_on)
    assert rounds
    assert store.tenant_use(ACME).started_count == 2 * len(rounds)
    assert projector.position(0) == ledger.log.last_seq(0)
    projector.stop()
    assert told == sorted(told)


def test_projector_that_does_not_run_rebuilds_nothing() -> None:
    ledger = Ledger()
    projector = Projector(Readings(ledger), MemoryHistory())
    with pytest.raises(Unavailable):
        projector.rebuild()
    projector.start()
    projector.stop()
    with pytest.raises(Unavailable):
        projector.rebuild()


def test_projector_begun_anew_goes_on_where_the_file_ends(tmp_path: Path) -> None:
    ledger = Ledger(2)
    ledger.create(JOB)
    ledger.commit()
    make_runs(ledger, 4)
    for count in (0, 3):
        make_runs(ledger, count, first=50)
        store = SqliteHistory(tmp_path / "history.db")
        source = Recording(ledger)
        projector = Projector(source, store)
        begun = dict(projector.positions())
        projector.start()
        wait(projector, ledger)
        projector.stop()
        assert source.begun == [(partition, begun.get(partition, 0)) for partition in range(2)]
        assert store.tenant_use(ACME).started_count == 4 + count
        store.close()


class Recording(Readings):
    """Remembers from where it was read."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.begun: list[tuple[int, int]] = []

    def read(self, partition: int, after_seq: int) -> Iterable[Batch]:
        self.begun.append((partition, after_seq))
        return super().read(partition, after_seq)


def test_projector_for_another_log_forgets_what_it_had(tmp_path: Path) -> None:
    first, second = Ledger(), Ledger()
    second.log.log_id = "another"
    for ledger, count in ((first, 5), (second, 2)):
        ledger.create(JOB)
        ledger.commit()
        make_runs(ledger, count)
    counts: Sequence[int] = []
    for ledger in (first, second):
        store = SqliteHistory(tmp_path / "history.db")
        projector = Projector(ledger.log, store)
        projector.start()
        wait(projector, ledger)
        projector.stop()
        counts = [*counts, store.tenant_use(ACME).started_count]
        store.close()
    assert counts == [5, 2]
