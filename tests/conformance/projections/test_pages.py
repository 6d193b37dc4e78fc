"""How every store pages: one suite, run by each. Names of cases are those of shared/cases."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.projections.queries import ROWS_MAX, Place
from horolog.projections.rows import RUN_STATUSES
from horolog.projections.runs import STATUS
from horolog.projections.schema import RUNS
from horolog.projections.store import Checkpoint, Store
from horolog.projections.tables import Change, Changes, Upsert
from horolog.schemas.records import TenantId
from tests.builders.histories import OPENERS, History, Opener, content, memory, pages, shown, sqlite
from tests.builders.ledger import DAY_US, SECOND_US, T0, Ledger
from tests.builders.ledger_life import JOBS, LedgerLife, lives
from tests.builders.times import us

openers = pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS.keys())
JOB = JOBS[0]
ACME = TenantId("acme")


def row(at_us: int, run_id: str, status: str, stamp_us: int) -> Change:
    """A run that is nothing but a place and a status."""
    values = (status, "", None, None, "")
    return Upsert(RUNS, (JOB, at_us, run_id), STATUS, stamp_us, values)


def put(store: Store, *changes: Change) -> None:
    """Write rows without a ledger."""
    taken = Changes()
    for change in changes:
        taken.add(change)
    store.write(taken, {("runs", 0): Checkpoint(1, 1)})


# --- pages


@openers
def test_a01_rows_of_one_instant_are_each_on_one_page_and_reverse_exactly(opener: Opener) -> None:
    noon, before = us("2024-05-06T12:00:00Z"), us("2024-05-06T11:59:00Z")
    with opener() as store:
        put(store, *[row(noon, f"r{n}", "dead", 1) for n in range(1, 6)])
        put(store, row(before, "r6", "dead", 1))
        walked = pages(store, 2, job_id=JOB)
        assert [len(page) for page in walked] == [2, 2, 2]
        newest_first = [run_id for page in walked for run_id in page]
        assert newest_first == ["r5", "r4", "r3", "r2", "r1", "r6"]
        backward = [
            run_id for page in pages(store, 2, job_id=JOB, newest_first=False) for run_id in page
        ]
        assert backward == newest_first[::-1]
        assert pages(store, 6, job_id=JOB) == [newest_first]


@openers
def test_a03_paging_goes_on_after_the_row_of_the_cursor_is_gone(opener: Opener) -> None:
    with opener() as store:
        put(store, *[row(n, f"r{n:03}", "dead", 1) for n in range(100)])
        first = store.runs(JOB, statuses=("dead",), from_us=None, to_us=None, after=None, limit=10)
        assert [run.run_id for run in first.rows] == [f"r{n:03}" for n in range(99, 89, -1)]
        put(store, *[row(200 + n, f"new{n}", "dead", 2) for n in range(25)])
        put(store, row(75, "r075", "running", 2))
        vanish(store, 90, "r090")
        seen: list[str] = []
        after = first.after
        while after is not None:
            page = store.runs(
                JOB, statuses=("dead",), from_us=None, to_us=None, after=after, limit=10
            )
            seen += [run.run_id for run in page.rows]
            after = page.after
        assert seen == [f"r{n:03}" for n in range(89, -1, -1) if n != 75]


def vanish(store: Store, at_us: int, run_id: str) -> None:
    """The row is removed, as one whose time is over."""
    values = ("dead", "", None, None, "")
    put(store, Upsert(RUNS, (JOB, at_us, run_id), STATUS, 1_000_000, values, 1))
    store.expire(1, 1_000)
    assert store.get(RUNS, (JOB, at_us, run_id)) is None


@openers
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["dead", "queued"])), max_size=40),
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["add", "leave", "join", "vanish"]), st.integers(0, 60)),
            max_size=4,
        ),
        max_size=12,
    ),
    st.integers(1, 5),
    st.booleans(),
)
@settings(max_examples=40)
def test_a_walk_while_rows_come_change_and_vanish_sees_what_stays_exactly_once(
    opener: Opener,
    rows: list[tuple[int, str]],
    between: list[list[tuple[str, int]]],
    limit: int,
    newest_first: bool,
) -> None:
    with opener() as store:
        matching: dict[tuple[int, str], bool] = {}
        stamp = 1
        for number, (at_us, status) in enumerate(rows):
            matching[at_us, f"r{number:03}"] = status == "dead"
            put(store, row(at_us, f"r{number:03}", status, stamp))
        touched: set[tuple[int, str]] = set()
        at_start = [place for place, matches in matching.items() if matches]
        seen: list[tuple[int, str]] = []
        after: Place | None = None
        for number in range(1_000):
            page = store.runs(
                JOB,
                statuses=("dead",),
                from_us=None,
                to_us=None,
                after=after,
                limit=limit,
                newest_first=newest_first,
            )
            assert all(matching[run.at_us, run.run_id] for run in page.rows)
            seen += [(run.at_us, run.run_id) for run in page.rows]
            after = page.after
            if after is None:
                break
            for what, pick in between[number] if number < len(between) else []:
                stamp += 1
                touched |= disturb(store, matching, what, pick, stamp)
        assert after is None
        assert seen == sorted(set(seen), reverse=newest_first)
        for place in at_start:
            assert place in touched or place in seen
    assert set(seen) <= set(matching)


def disturb(
    store: History, matching: dict[tuple[int, str], bool], what: str, pick: int, stamp: int
) -> set[tuple[int, str]]:
    """One thing that happens between two pages; the places it concerns."""
    if what == "add":
        place = (pick, f"new{stamp:04}")
        put(store, row(*place, "dead", stamp))
        matching[place] = True
        return {place}
    if not matching:
        return set()
    place = sorted(matching)[pick % len(matching)]
    if what == "vanish":
        vanish(store, *place)
        matching[place] = False
        return {place}
    if store.get(RUNS, (JOB, *place)) is not None:
        put(store, row(*place, "dead" if what == "join" else "running", stamp))
        matching[place] = what == "join"
    return {place}


@openers
def test_a05_a_time_filter_takes_its_begin_and_leaves_its_end(opener: Opener) -> None:
    ledger = Ledger(at_us=us("2024-01-01T00:00:00Z"))
    ledger.create(JOB)
    instants = [
        "2024-01-14T23:59:59.999Z",
        "2024-01-15T00:00:00.000Z",
        "2024-01-15T12:00:00Z",
        "2024-01-15T23:59:59.999999Z",
        "2024-01-16T00:00:00.000Z",
    ]
    for number, instant in enumerate(instants):
        ledger.now_us = us(instant) - 1
        assert ledger.request(JOB, f"k{number}", admit=False).at_us == us(instant)
    with opener() as store:
        shown(ledger, store)

        def count(from_text: str, to_text: str) -> int:
            walked = pages(store, 10, job_id=JOB, from_us=us(from_text), to_us=us(to_text))
            return sum(len(page) for page in walked)

        assert count("2024-01-15T00:00:00Z", "2024-01-16T00:00:00Z") == 3
        assert count("2024-01-14T00:00:00Z", "2024-01-15T00:00:00Z") == 1
        assert count("2024-01-16T00:00:00Z", "2024-01-15T00:00:00Z") == 0
        days = [f"2024-01-{day:02}T00:00:00Z" for day in range(13, 19)]
        assert sum(map(count, days, days[1:])) == len(instants)


@openers
@given(
    at=st.lists(st.integers(0, 12), min_size=1, max_size=12),
    cuts=st.sets(st.integers(-1, 14), max_size=5),
    limit=st.integers(1, 4),
    newest_first=st.booleans(),
)
@settings(max_examples=40)
def test_a05_neighbouring_windows_of_any_cuts_show_each_run_once_and_in_order(
    opener: Opener, at: list[int], cuts: set[int], limit: int, newest_first: bool
) -> None:
    runs = sorted((T0 + second * SECOND_US, f"r{number}") for number, second in enumerate(at))
    edges = [None, *(T0 + cut * SECOND_US for cut in sorted(cuts)), None]
    windows = list(itertools.pairwise(edges))
    with opener() as store:
        put(store, *[row(at_us, run_id, "dead", 1) for at_us, run_id in runs])
        seen = [
            run_id
            for from_us, to_us in (windows[::-1] if newest_first else windows)
            for page in pages(
                store,
                limit,
                job_id=JOB,
                from_us=from_us,
                to_us=to_us,
                newest_first=newest_first,
            )
            for run_id in page
        ]
    in_order = [run_id for _, run_id in runs]
    assert seen == (in_order[::-1] if newest_first else in_order)


@openers
def test_a_page_says_of_which_position_it_is(opener: Opener) -> None:
    ledger = Ledger(2)
    ledger.create(JOB)
    with opener() as store:
        shown(ledger, store)
        page = store.runs(JOB, statuses=(), from_us=None, to_us=None, after=None, limit=1)
        expected = {partition: ledger.log.last_seq(partition) for partition in range(2)}
        assert dict(page.as_of) == expected
        assert dict(store.dead_letters(ACME, after=None, limit=1).as_of) == expected


@openers
def test_a_limit_above_the_most_is_read_as_the_most(opener: Opener) -> None:
    with opener() as store:
        put(store, *[row(n, f"r{n:04}", "dead", 1) for n in range(ROWS_MAX + 5)])
        page = store.runs(JOB, statuses=(), from_us=None, to_us=None, after=None, limit=10**9)
        assert len(page.rows) == ROWS_MAX
        assert page.after == (5, "r0005")


# --- the stores beside each other


@given(lives, st.integers(1, 5), st.sets(st.sampled_from(RUN_STATUSES), max_size=4))
@settings(max_examples=40)
def test_every_query_gives_the_same_on_sqlite_as_in_memory(
    choices: list[int], limit: int, statuses: set[str]
) -> None:
    life = LedgerLife(3).live(choices)
    with sqlite() as one, memory() as other:
        for store in (one, other):
            shown(life, store)
            store.expire(life.now_us, 1_000)
        answers = [_answers(store, life, limit, statuses) for store in (one, other)]
        assert answers[0] == answers[1]
        assert content(one) == content(other)


def _answers(store: History, life: LedgerLife, limit: int, statuses: set[str]) -> list[object]:
    tenants = store.tenants()
    middle = (T0 + life.now_us) // 2
    found: list[object] = [tenants, [store.tenant_use(tenant) for tenant in tenants]]
    for tenant in (None, *tenants):
        found.append(store.dead_letters(tenant, after=None, limit=limit))
        found.append(store.dead_letters(tenant, after=(middle, "m"), limit=limit))
        found += [
            store.jobs(
                tenant,
                labels={},
                pool="default",
                paused=paused,
                text="CHOICE",
                after="acme.a",
                limit=limit,
            )
            for paused in (None, True, False)
        ]
    for job_id in JOBS:
        found += [store.job(job_id), store.versions(job_id)]
        for newest_first in (True, False):
            found.append(
                pages(store, limit, job_id=job_id, statuses=statuses, newest_first=newest_first)
            )
            found.append(pages(store, limit, job_id=job_id, from_us=T0, to_us=middle))
        for begin, end in ((0, 2 * T0), (T0, middle), (middle - DAY_US, middle + SECOND_US)):
            found.append(store.slots(job_id, begin, end, limit))
            found.append(store.slots(job_id, begin, end, limit, (middle, "m")))
    found += [store.run(run_id) for run_id, _ in sorted(life.runs)]
    return found
