"""What every store of the tables does: one suite, run by each."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.projections.known import RETENTION_US
from horolog.projections.rebuild import differences, rebuild
from horolog.projections.runs import BEGIN, END, PLAN, STATUS
from horolog.projections.schema import ATTEMPTS, DEAD_LETTERS, RUNS, TENANT_USE
from horolog.projections.store import Checkpoint, Origin, Store, positions_of
from horolog.projections.tables import GONE_KEPT_US, Change, Changes, Delete, Upsert, Value
from tests.builders.histories import OPENERS, Opener, content, digests, memory
from tests.builders.ledger import DAY_US, T0, Ledger
from tests.builders.ledger_life import JOBS

openers = pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS.keys())

ORIGIN = Origin(log_id="a", generation=1, retention_us=1, versions=(("runs", 1),))
KEY = ("acme.a", 60, "acme.a@x")
DEAD_KEY = ("acme", 60, "acme.a@x")


def write(store: Store, *changes: Change, seq: int = 1, at_us: int = 0) -> None:
    """One transaction."""
    taken = Changes()
    for change in changes:
        taken.add(change)
    store.write(taken, {("runs", 0): Checkpoint(seq, at_us)})


def status(at_us: int, word: str, expires_us: int | None = None) -> Upsert:
    """The leading group of one run."""
    return Upsert(RUNS, KEY, STATUS, at_us, (word, "", None, None, ""), expires_us)


@st.composite
def run_changes(draw: st.DrawFn) -> list[Change]:
    """Writes to few rows, each with a stamp of its own, as one partition gives them."""
    changes: list[Change] = []
    for at_us in range(1, 1 + draw(st.integers(1, 12))):
        key = ("acme.a", 60, f"acme.a@{draw(st.integers(0, 1))}")
        group = draw(st.sampled_from([STATUS, PLAN, BEGIN, END, -1, -2]))
        word = f"w{draw(st.integers(0, 2))}"
        if group == -1:
            changes.append(Delete(DEAD_LETTERS, ("acme", 60, key[2]), at_us))
        elif group == -2:
            changes.append(
                Upsert(DEAD_LETTERS, ("acme", 60, key[2]), 0, at_us, ("acme.a", at_us, word))
            )
        else:
            values: list[Value] = [word] * len(RUNS.groups[group].columns)
            changes.append(Upsert(RUNS, key, group, at_us, tuple(values)))
    return changes


@openers
@given(run_changes(), st.data())
@settings(max_examples=40)
def test_writes_in_any_order_and_number_leave_the_same(
    opener: Opener, changes: list[Change], data: st.DataObject
) -> None:
    again = data.draw(st.lists(st.sampled_from(changes), max_size=6))
    shuffled = data.draw(st.permutations([*changes, *again]))
    cuts = data.draw(st.lists(st.booleans(), min_size=len(shuffled), max_size=len(shuffled)))
    with opener() as store, memory() as model:
        for part in changes:
            write(model, part)
        batch: list[Change] = []
        for change, cut in zip(shuffled, cuts, strict=True):
            batch.append(change)
            if cut:
                write(store, *batch)
                batch = []
        write(store, *batch)
        assert content(store) == content(model)
        for change in changes:
            assert store.get(change.table, change.key) == model.get(change.table, change.key)


@openers
def test_two_groups_written_in_the_wrong_order_both_stay(opener: Opener) -> None:
    with opener() as store:
        write(store, Upsert(RUNS, KEY, BEGIN, 5, (0, 1, 5, "w1", 1)))
        write(store, Upsert(RUNS, KEY, PLAN, 3, (60, 61, "normal", "default", "schedule", "")))
        write(store, status(5, "running"))
        write(store, status(3, "planned"))
        row = store.get(RUNS, KEY)
        assert row is not None
        assert (row["status"], row["status_us"]) == ("running", 5)
        assert (row["pool"], row["worker_id"]) == ("default", "w1")


@openers
def test_a_deleted_row_hides_older_writes_and_not_newer_ones(opener: Opener) -> None:
    with opener() as store:
        write(store, Delete(DEAD_LETTERS, DEAD_KEY, 5))
        write(store, Upsert(DEAD_LETTERS, DEAD_KEY, 0, 4, ("acme.a", 0, "late")))
        assert content(store)["dead_letters"] == []
        write(store, Upsert(DEAD_LETTERS, DEAD_KEY, 0, 6, ("acme.a", 1, "again")))
        assert [row[-1] for row in content(store)["dead_letters"]] == ["again"]


@openers
def test_positions_are_those_of_the_projection_that_is_furthest_behind(opener: Opener) -> None:
    with opener() as store:
        store.begin(ORIGIN)
        checkpoints = {
            ("runs", 0): Checkpoint(9, 90),
            ("jobs", 0): Checkpoint(7, 70),
            ("runs", 1): Checkpoint(3, 95),
        }
        store.write(Changes(), checkpoints)
        assert positions_of(store.checkpoints()) == {0: 7, 1: 3}
        assert dict(store.positions()) == {0: 7, 1: 3}


@openers
@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(ORIGIN, log_id="b"),
        msgspec.structs.replace(ORIGIN, generation=2),
        msgspec.structs.replace(ORIGIN, retention_us=2),
        msgspec.structs.replace(ORIGIN, versions=(("runs", 2),)),
    ],
    ids=["log", "generation", "retention", "version"],
)
def test_a_store_of_another_origin_begins_empty(opener: Opener, other: Origin) -> None:
    with opener() as store:
        store.begin(ORIGIN)
        write(store, status(1, "planned"))
        store.begin(ORIGIN)
        assert store.get(RUNS, KEY) is not None
        store.begin(other)
        assert store.get(RUNS, KEY) is None
        assert store.checkpoints() == {}


@openers
def test_an_ended_row_goes_with_those_that_live_with_it_and_not_before(opener: Opener) -> None:
    with opener() as store:
        attempt = Upsert(ATTEMPTS, (*KEY, 8), 0, 2, (0, 1, 8, "w1", 1))
        other = Upsert(ATTEMPTS, ("acme.a", 60, "acme.a@y", 8), 0, 2, (0, 1, 8, "w1", 1))
        write(store, status(2, "running"), attempt, other)
        assert store.expire(10**18, 100) == 0
        write(store, status(3, "succeeded", 1_000))
        assert store.expire(999, 100) == 0
        assert len(content(store)["runs"]) == 1
        assert store.expire(1_000, 100) == 1
        assert store.get(RUNS, KEY) is None
        assert store.get(ATTEMPTS, (*KEY, 8)) is None
        assert store.get(ATTEMPTS, ("acme.a", 60, "acme.a@y", 8)) is not None


@openers
def test_a_row_that_begins_anew_before_its_end_stays(opener: Opener) -> None:
    with opener() as store:
        write(store, status(3, "skipped", 1_000))
        write(store, status(4, "planned"))
        assert store.expire(2_000, 100) == 0
        assert [row[4] for row in content(store)["runs"]] == ["planned"]


@openers
def test_a_snapshot_leaves_out_what_has_ended_by_its_time(opener: Opener) -> None:
    with opener() as store:
        write(store, status(3, "succeeded", 1_000), at_us=999)
        assert len(content(store)["runs"]) == 1
        write(store, seq=2, at_us=1_000)
        assert content(store)["runs"] == []


@openers
def test_expiry_of_many_rows_takes_some_at_a_time(opener: Opener) -> None:
    with opener() as store:
        rows = [
            Upsert(RUNS, ("acme.a", n, f"r{n}"), STATUS, 1, ("x", "", None, None, ""), n)
            for n in range(1, 151)
        ]
        write(store, *rows)
        assert [store.expire(140, 60) for _ in range(4)] == [60, 60, 20, 0]
        assert len(content(store)["runs"]) == 10


@openers
def test_a_deleted_row_is_remembered_for_a_day(opener: Opener) -> None:
    with opener() as store:
        write(store, Upsert(DEAD_LETTERS, DEAD_KEY, 0, 4, ("acme.a", 0, "x")))
        write(store, Delete(DEAD_LETTERS, DEAD_KEY, 5))
        store.expire(5 + GONE_KEPT_US - 1, 10)
        assert store.get(DEAD_LETTERS, DEAD_KEY) is not None
        store.expire(5 + GONE_KEPT_US, 10)
        assert store.get(DEAD_LETTERS, DEAD_KEY) is None


@openers
def test_a_snapshot_is_not_moved_by_later_writes(opener: Opener) -> None:
    with opener() as store:
        write(store, status(1, "planned"), seq=5)
        with store.snapshot() as snapshot:
            write(store, status(2, "running"), seq=6)
            assert snapshot.checkpoints["runs", 0].seq == 5
            assert [row[4] for row in snapshot.rows(RUNS)] == ["planned"]


@openers
def test_rows_come_in_the_order_of_their_keys(opener: Opener) -> None:
    names = ["b", "a", "ä", "B", "a.b", "a-b", "Z", "\U0001f600", "\uffff"]
    with opener() as store:
        use = (1, 0, 0, 0, 0, 0, 0)
        write(store, *[Upsert(TENANT_USE, (name, 0), 0, 1, use) for name in names])
        assert [row[0] for row in content(store)["tenant_use"]] == sorted(names)


@openers
def test_a_store_built_beside_takes_the_place_and_readers_go_on(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOBS[0])
    ledger.start(ledger.plan(JOBS[0], T0))
    ledger.commit()
    with opener() as store:
        rebuild(ledger.log, store)
        before = digests(store)
        row = status(ledger.now_us + 1, "forged")
        write(store, msgspec.structs.replace(row, key=(JOBS[0], 1, "forged")))
        assert digests(store) != before
        beside = store.beside()
        rebuild(ledger.log, beside)
        beside.promote()
        beside.abandon()
        assert digests(store) == before
        assert store.job(JOBS[0]) is not None
        assert positions_of(store.checkpoints()) == {0: ledger.log.last_seq(0)}


@openers
def test_a_store_given_up_beside_leaves_the_other_as_it_was(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOBS[0])
    ledger.commit()
    with opener() as store:
        rebuild(ledger.log, store)
        before = digests(store)
        beside = store.beside()
        rebuild(ledger.log, beside, upto={0: 1})
        beside.abandon()
        assert digests(store) == before
        # And another attempt begins from nothing.
        anew = store.beside()
        assert anew.checkpoints() == {}
        anew.abandon()


@openers
def test_a_rebuild_that_was_broken_off_goes_on_where_it_ended(opener: Opener) -> None:
    ledger = Ledger(2)
    for job_id in JOBS:
        ledger.create(job_id)
        ledger.commit()
    with opener() as store, opener() as whole:
        half = ledger.batches[0][1].events[-1].seq
        rebuild(ledger.log, store, upto={0: half})
        seen: list[int] = []
        rebuild(ledger.log, store, progress=lambda told: seen.append(told.events))
        rebuild(ledger.log, whole)
        assert digests(store) == digests(whole)
        total = sum(ledger.log.last_seq(partition) for partition in range(2))
        assert seen[-1] == total - half


@openers
def test_differences_name_rows_that_only_one_store_has(opener: Opener) -> None:
    with opener() as one, opener() as other:
        write(one, status(1, "planned"))
        write(other, Upsert(TENANT_USE, ("acme", 0), 0, 1, (1, 1, 0, 0, 0, 0, 0)))
        with one.snapshot() as first, other.snapshot() as second:
            found = list(differences(first, second))
        assert [(each.table, each.column) for each in found] == [("runs", ""), ("tenant_use", "")]
        assert "in the first only" in str(found[0])
        assert "in the second only" in str(found[1])


@openers
def test_rows_kept_for_a_short_time_do_not_end_while_a_run_is_open(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOBS[0])
    run = ledger.plan(JOBS[0], T0)
    ledger.start(run)
    ledger.now_us += 200 * DAY_US
    ledger.commit()
    with opener() as store:
        rebuild(ledger.log, store, retention_us=DAY_US)
        found = store.run(run.run_id)
        assert found is not None
        assert found.run.status == "running"
        ledger.succeed(run)
        ledger.commit()
        ledger.now_us += DAY_US
        ledger.create(JOBS[1])
        ledger.commit()
        rebuild(ledger.log, store, retention_us=DAY_US)
        store.expire(ledger.now_us, 100)
        assert store.run(run.run_id) is None
    assert RETENTION_US == 90 * DAY_US
