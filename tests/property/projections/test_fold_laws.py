"""The tables are a function of the log: however it is cut, ordered, repeated or broken off."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.projections.fold import Fold
from horolog.projections.known import RETENTION_US
from horolog.projections.rebuild import differences, rebuild, verify
from horolog.projections.runs import CANCEL
from horolog.projections.schema import RUNS
from horolog.projections.store import time_of
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.tables import Changes, Upsert, key_of
from horolog.schemas.records import RunStarted
from tests.builders.histories import (
    ForgetfulMemory,
    ForgetfulSqlite,
    content,
    digests,
    fold_all,
    interleaved,
    memory,
    sqlite,
)
from tests.builders.ledger import DAY_US
from tests.builders.ledger_life import LedgerLife, lives

PARTITIONS = 3
picks = st.lists(st.integers(0, 5), max_size=12)


def built(life: LedgerLife) -> MemoryHistory:
    store = MemoryHistory()
    rebuild(life.log, store)
    return store


@given(lives, picks, picks)
@settings(max_examples=150)
def test_any_split_and_order_of_partitions_gives_the_same_tables(
    choices: list[int], order: list[int], cuts: list[int]
) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    store = MemoryHistory()
    fold = Fold(life.log, store)
    for number, batch in enumerate(interleaved(life.batches, order)):
        fold.fold(batch)
        if not cuts or cuts[number % len(cuts)] == 0:
            fold.write()
    fold.write()
    assert content(store) == content(built(life))


@given(lives, picks)
@settings(max_examples=40)
def test_sqlite_and_memory_hold_the_same_after_each_transaction(
    choices: list[int], order: list[int]
) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    with sqlite() as one, memory() as other:
        folds = [Fold(life.log, one), Fold(life.log, other)]
        for batch in interleaved(life.batches, order):
            for fold in folds:
                fold.fold(batch)
                fold.write()
        assert content(one) == content(other)
        assert digests(one) == digests(other)


@given(lives, picks)
@settings(max_examples=150)
def test_a_fold_begun_anew_after_each_transaction_gives_the_same_tables(
    choices: list[int], order: list[int]
) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    store = MemoryHistory()
    for batch in interleaved(life.batches, order):
        fold_all(life.log, store, [batch])
    assert content(store) == content(built(life))


@given(lives, picks)
@settings(max_examples=150)
def test_batches_offered_twice_and_late_change_nothing(
    choices: list[int], again: list[int]
) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    store = MemoryHistory()
    fold = Fold(life.log, store)
    for batches in life.batches:
        for number, batch in enumerate(batches):
            fold.fold(batch)
            for back in again:
                fold.fold(batches[max(number - back, 0)])
            fold.write()
    assert content(store) == content(built(life))


@given(lives, st.integers(0, 100))
@settings(max_examples=100)
def test_replaying_the_log_over_rows_written_before_changes_nothing(
    choices: list[int], reached: int
) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    store = ForgetfulMemory()
    order = interleaved(life.batches, [0])
    fold_all(life.log, store, order[: len(order) * reached // 100])
    fold_all(life.log, store, order)
    assert _all_rows(store, life) == _all_rows(built(life), life)


@given(lives)
@settings(max_examples=20)
def test_replaying_the_log_over_a_file_changes_nothing(choices: list[int]) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    with tempfile.TemporaryDirectory() as folder:
        store = ForgetfulSqlite(Path(folder) / "history.db")
        for _ in range(2):
            fold_all(life.log, store, interleaved(life.batches, [0, 1]))
        assert _all_rows(store, life) == _all_rows(built(life), life)
        store.close()


def _all_rows(store: MemoryHistory | ForgetfulSqlite, life: LedgerLife) -> object:
    """Content at the end of the log, also of a store that lost its checkpoints."""
    last_us = max(batches[-1].events[-1].at_us for batches in life.batches)
    while store.expire(last_us, 1_000):
        pass
    return content(store)


@given(lives, st.integers(1, 40))
@settings(max_examples=100)
def test_what_was_removed_at_other_times_leaves_the_same_tables(
    choices: list[int], days: int
) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    retention_us = days * DAY_US
    store = MemoryHistory()
    fold = Fold(life.log, store, retention_us=retention_us)
    for batch in interleaved(life.batches, [0]):
        fold.fold(batch)
        fold.write()
        store.expire(time_of(store.checkpoints()), 1_000)
    anew = MemoryHistory()
    fold_all(life.log, anew, interleaved(life.batches, [2]), retention_us=retention_us)
    with store.snapshot() as live, anew.snapshot() as rebuilt:
        assert list(differences(live, rebuilt)) == []


@given(lives)
@settings(max_examples=100)
def test_history_shows_each_run_as_the_ledger_left_it(choices: list[int]) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    store = MemoryHistory()
    rebuild(life.log, store, retention_us=100 * RETENTION_US)
    newest = {run.run_id: run for run in life.runs.values()}
    for run in newest.values():
        detail = store.run(run.run_id)
        if run.status == "revoked":
            assert detail is None
            continue
        assert detail is not None
        assert (detail.run.status, detail.run.round) == (run.status, run.round)
        assert detail.run.at_us == run.at_us
        if run.status != "queued":
            assert detail.run.attempt == run.attempt
        assert len(detail.attempts) == run.attempts
        assert [each.token for each in detail.attempts][-1:] == ([run.token] if run.token else [])


@given(lives)
@settings(max_examples=100)
def test_use_of_a_tenant_is_what_counting_its_runs_gives(choices: list[int]) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    store = built(life)
    for tenant in store.tenants():
        use = store.tenant_use(tenant)
        runs = [run for run in life.runs.values() if run.job_id.startswith(f"{tenant}.")]
        jobs = [job for job in life.jobs.values() if job.job_id.startswith(f"{tenant}.")]
        statuses = [run.status for run in runs]
        waiting = sum(statuses.count(word) for word in ("pending", "planned", "queued"))
        assert use.waiting_count == waiting
        assert use.running_count == statuses.count("running")
        assert use.dead_count == statuses.count("dead")
        assert use.jobs_count == sum(job.status in ("active", "paused") for job in jobs)
        started = [
            event.at_us // DAY_US * DAY_US
            for batches in life.batches
            for batch in batches
            for event in batch.events
            if isinstance(event, RunStarted) and event.job_id.startswith(f"{tenant}.")
        ]
        assert use.day_us == max(started, default=0)
        assert use.started_count == started.count(use.day_us)


@given(lives)
@settings(max_examples=60)
def test_a_fold_remembers_open_runs_and_no_others(choices: list[int]) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    fold = fold_all(life.log, MemoryHistory(), interleaved(life.batches, [0]))
    assert fold.open_count == sum(run.is_open for run in life.runs.values())


@given(lives)
@settings(max_examples=60)
def test_verification_names_the_first_cell_that_differs(choices: list[int]) -> None:
    life = LedgerLife(PARTITIONS).live(choices)
    store = built(life)
    with store.snapshot() as live:
        assert verify(life.log, live, MemoryHistory()) is None
    runs = content(store)["runs"]
    if not runs:
        return
    key = key_of(RUNS, runs[0])
    changes = Changes()
    changes.add(Upsert(RUNS, key, CANCEL, life.now_us, ("forger", "")))
    store.write(changes, store.checkpoints())
    with store.snapshot() as live:
        found = verify(life.log, live, MemoryHistory())
    assert found is not None
    assert (found.table, found.key, found.column) == ("runs", key, "cancel_us")
    assert found.one == life.now_us
