"""Each projection by itself: what an event changes, and that nothing else does."""

from types import ModuleType

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.projections import (
    attempts,
    dead_letters,
    jobs,
    runs,
    slots,
    tenants,
    versions,
)
from horolog.projections.fold import PROJECTIONS, Fold, Projection
from horolog.projections.jobs import definition_json, search_text
from horolog.projections.known import Known
from horolog.projections.rows import definition_of
from horolog.projections.schema import JOBS, TABLES, TENANT_USE, VERSIONS
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.tables import Change, Changes, Delete, Key, Row, Table, Upsert
from horolog.schemas.codec import schema_of
from horolog.schemas.errors import Corrupt
from horolog.schemas.records import (
    EVENTS,
    Event,
    InputsRead,
    JobDefinition,
    JobId,
    RunId,
    RunPlanned,
    RunStarted,
    RunSucceeded,
    Schedule,
    Target,
)
from horolog.streams.log import Batch
from tests.builders.definitions import definitions
from tests.builders.ledger import T0, Ledger, definition
from tests.builders.ledger_life import JOBS as JOB_IDS
from tests.builders.schemas import of, plain_values

JOB = JOB_IDS[0]
MODULES: tuple[ModuleType, ...] = (attempts, dead_letters, jobs, runs, slots, tenants, versions)
RUN = RunId("acme.a@20240506T120000Z")


def nothing(table: Table, key: Key) -> Row | None:
    """A store without rows."""
    del table, key
    return None


def known() -> Known:
    """Of partition 0, nothing known."""
    return Known(0, nothing)


def events(kind: type[Event]) -> st.SearchStrategy[Event]:
    """Any event of a type, for a run that has a place."""
    return plain_values(schema_of(kind)).map(lambda value: placed(of(kind, value)))


def placed(event: Event) -> Event:
    changes: dict[str, object] = {"seq": 5, "at_us": T0}
    if hasattr(event, "run_id"):
        changes["run_id"] = RUN
    if hasattr(event, "job_id"):
        changes["job_id"] = JOB
    return msgspec.structs.replace(event, **changes)


@pytest.mark.parametrize("kind", EVENTS, ids=[kind.__name__ for kind in EVENTS])
@given(st.data())
@settings(max_examples=5)
def test_an_event_that_a_projection_does_not_read_changes_nothing(
    kind: type[Event], data: st.DataObject
) -> None:
    event = data.draw(events(kind))
    for projection in PROJECTIONS:
        changes = list(projection.project(event, known()))
        assert bool(changes) is (kind in projection.READS)


@pytest.mark.parametrize("kind", EVENTS, ids=[kind.__name__ for kind in EVENTS])
@given(st.data())
@settings(max_examples=5)
def test_a_change_fits_its_table_and_carries_the_time_of_the_event(
    kind: type[Event], data: st.DataObject
) -> None:
    event = data.draw(events(kind))
    for projection in PROJECTIONS:
        for change in projection.project(event, known()):
            assert change.at_us == event.at_us
            assert change.table in TABLES
            assert len(change.key) == len(change.table.key)
            if isinstance(change, Upsert):
                assert len(change.values) == len(change.table.groups[change.group].columns)
                assert change.expires_us is None or change.table.expires
                assert change.expires_us is None or change.group == 0
            else:
                assert change.table.deletes


@pytest.mark.parametrize("kind", EVENTS, ids=[kind.__name__ for kind in EVENTS])
@given(st.data())
@settings(max_examples=5)
def test_projecting_is_a_function_of_event_and_what_is_known(
    kind: type[Event], data: st.DataObject
) -> None:
    event = data.draw(events(kind))
    for projection in PROJECTIONS:
        one = list(projection.project(event, known()))
        assert list(projection.project(event, known())) == one


def test_every_module_of_a_projection_is_folded_and_every_table_written_by_one() -> None:
    assert {projection.NAME for projection in PROJECTIONS} == {
        module.__name__.rpartition(".")[2] for module in MODULES
    }
    written = [table.name for module in MODULES for table in module.TABLES]
    assert sorted(written) == sorted(table.name for table in TABLES)


@given(definitions())
def test_a_definition_kept_as_json_comes_back_the_same(made: JobDefinition) -> None:
    assert definition_of(definition_json(made)) == made


def test_definition_json_is_the_same_whatever_the_order_of_labels() -> None:
    one = definition("x", a="1", b="2")
    other = msgspec.structs.replace(one, labels=dict(reversed(list(one.labels.items()))))
    assert list(one.labels) != list(other.labels)
    assert definition_json(one) == definition_json(other)


def test_search_text_holds_name_description_labels_and_target_in_one_case() -> None:
    made = JobDefinition(
        schedule=Schedule(cron="* * * * *"),
        target=Target(command=("/usr/bin/Report", "--ALL")),
        description="Monthly CLOSE",
        labels={"Team": "Finance"},
    )
    text = search_text(JobId("acme.billing"), made)
    for part in ("billing", "monthly close", "team=finance", "/usr/bin/report", "--all"):
        assert part in text
    assert "acme" not in text


def test_runs_change_neither_jobs_nor_versions() -> None:
    ledger = Ledger()
    run = ledger.plan(JOB, T0)
    ledger.start(run)
    ledger.die(run)
    ledger.redrive(run)
    ledger.start(run)
    ledger.succeed(run)
    for batch in [*ledger.commit()]:
        for event in batch.events:
            for projection in (jobs, versions):
                assert not list(projection.project(event, known()))


def test_a_life_within_a_transaction_is_one_write_of_a_run() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    run = ledger.plan(JOB, T0)
    ledger.start(run)
    ledger.succeed(run)
    ledger.commit()
    store = CountingHistory()
    fold = Fold(ledger.log, store)
    for batch in ledger.batches[0]:
        fold.fold(batch)
    fold.write()
    assert store.written == {
        "jobs": 1,
        "versions": 1,
        "runs": 1,
        "attempts": 1,
        "tenant_use": 1,
    }


class CountingHistory(MemoryHistory):
    """Counts the rows that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, int] = {}

    def write(self, changes: Changes, checkpoints: object) -> None:
        for table, rows in changes.tables():
            self.written[table.name] = self.written.get(table.name, 0) + len(rows)
        super().write(changes, checkpoints)  # type: ignore[arg-type]  # as it was given


def test_the_later_of_two_changes_stays_whichever_is_added_first() -> None:
    def use(at_us: int) -> Change:
        return Upsert(TENANT_USE, ("acme", 0), 0, at_us, (at_us, 0, 0, 0, 0, 0, 0))

    for order in ((1, 2), (2, 1)):
        changes = Changes()
        for at_us in order:
            changes.add(use(at_us))
        ((_, rows),) = changes.tables()
        assert [row[2:4] for row in rows] == [[2, 2]]
        assert len(changes) == 1


def test_a_gap_in_a_partition_stops_the_fold_before_it() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    ledger.update(JOB, definition("later"))
    ledger.commit()
    first, _, last = ledger.batches[0]
    store = MemoryHistory()
    fold = Fold(ledger.log, store)
    fold.fold(first)
    assert not fold.follows(last)
    with pytest.raises(Corrupt, match=r"seq 7 where 4 was expected"):
        fold.fold(last)
    fold.write()
    assert dict(store.positions()) == {0: 3}


def test_a_gap_within_a_batch_stops_the_fold() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    first, second = ledger.batches[0]
    torn = Batch(partition=0, events=(second.events[0], *second.events[2:]))
    fold = Fold(ledger.log, MemoryHistory())
    fold.fold(first)
    with pytest.raises(Corrupt):
        fold.fold(torn)


def test_a_batch_that_begins_below_the_position_is_taken_from_there_on() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.commit()
    first, second = ledger.batches[0]
    whole = Batch(partition=0, events=(*first.events, *second.events))
    fold = Fold(ledger.log, MemoryHistory())
    fold.fold(first)
    fold.fold(whole)
    assert fold.position(0) == second.events[-1].seq


def test_a_projection_that_is_added_later_catches_up_and_the_others_stay() -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.start(ledger.plan(JOB, T0))
    ledger.commit()
    store = MemoryHistory()
    some = [each for each in PROJECTIONS if each.NAME != "attempts"]
    first = Fold(ledger.log, store, projections=some)
    for batch in ledger.batches[0]:
        first.fold(batch)
    first.write()
    before = dict(store.checkpoints())
    # As a store would that keeps what the others wrote.
    kept = KeepingHistory(store)
    fold = Fold(ledger.log, kept)
    assert fold.position(0) == 0
    for batch in ledger.batches[0]:
        fold.fold(batch)
    fold.write()
    whole = MemoryHistory()
    every = Fold(ledger.log, whole)
    for batch in ledger.batches[0]:
        every.fold(batch)
    every.write()
    assert kept.checkpoints() == whole.checkpoints()
    assert before.items() <= dict(kept.checkpoints()).items()
    assert kept.get(TENANT_USE, ("acme", 0)) == whole.get(TENANT_USE, ("acme", 0))


class KeepingHistory(MemoryHistory):
    """Keeps what is there whatever the origin."""

    def __init__(self, other: MemoryHistory) -> None:
        super().__init__()
        self.replace_by(other)

    def begin(self, origin: object) -> None:
        del origin


def test_a_run_asked_for_so_long_ago_that_it_is_forgotten_changes_no_row() -> None:
    manual = RunId("acme.a@manual-k")
    ended = RunSucceeded(seq=9, at_us=T0, job_id=JOB, run_id=manual, attempt=1, token=7)
    assert list(runs.project(ended, known())) == []
    assert list(attempts.project(ended, known())) == []


def test_tables_lay_out_keys_stamps_and_ends_as_they_say() -> None:
    assert JOBS.columns[:4] == ("tenant", "job_id", "status_us", "status")
    assert JOBS.columns[JOBS.starts[1] - 1] == "expires_us"
    assert VERSIONS.columns[: len(VERSIONS.key)] == VERSIONS.key
    for table in TABLES:
        assert len(set(table.columns)) == len(table.columns)
        assert table.lives_with is None or table.lives_with in TABLES


def test_the_types_that_are_routed_are_those_that_are_read() -> None:
    def reads(projection: Projection) -> set[str]:
        return {kind.__name__ for kind in projection.READS}

    assert reads(runs) >= {RunPlanned.__name__, RunStarted.__name__}
    assert all(InputsRead.__name__ not in reads(each) for each in PROJECTIONS)


def test_deletes_come_only_for_tables_that_have_them() -> None:
    changes = Changes()
    changes.add(Delete(dead_letters.TABLES[0], ("acme", 1, "r"), 5))
    ((table, rows),) = changes.tables()
    assert table.deletes
    assert rows[0][:4] == ["acme", 1, "r", 5]
