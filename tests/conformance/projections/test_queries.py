"""What every store answers: one suite, run by each. Names of cases are those of shared/cases."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.projections.known import RETENTION_US
from horolog.projections.queries import ROWS_MAX, Queries, slot_place
from horolog.projections.rows import RunRow, SlotRow, definition_of
from horolog.schemas.records import AttemptOutcome, JobId, RunId, RunOrigin, SkipReason, TenantId
from tests.builders.histories import OPENERS, Opener, memory, pages, shown
from tests.builders.ledger import MINUTE_US, T0, Ledger, definition
from tests.builders.ledger_life import JOBS, LedgerLife, lives
from tests.builders.times import us

openers = pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS.keys())
JOB = JOBS[0]
ACME = TenantId("acme")


# --- jobs


@openers
def test_a07_the_version_of_a_job_stays_while_its_runs_come_and_go(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOB, by="ann")
    for number in range(4):
        ledger.update(JOB, definition(f"v{number}"))
    with opener() as store:
        shown(ledger, store)
        before = store.job(JOB)
        assert before is not None
        assert before.version == 5
        run = ledger.plan(JOB, T0)
        ledger.start(run)
        ledger.die(run)
        ledger.redrive(run)
        ledger.start(run)
        ledger.succeed(run)
        shown(ledger, store)
        assert store.job(JOB) == before
        ledger.update(JOB, definition("A's cron"), by="A")
        shown(ledger, store)
        after = store.job(JOB)
        assert after is not None
        assert (after.version, after.updated_by) == (6, "A")
        assert definition_of(after.definition) == definition("A's cron")
        versions = store.versions(JOB)
        assert [each.version for each in versions] == [6, 5, 4, 3, 2, 1]
        assert [each.principal for each in versions] == ["A", *["bob"] * 4, "ann"]
        assert definition_of(versions[-1].definition).description == "1"


@openers
def test_jobs_are_filtered_by_label_pool_pause_and_text(opener: Opener) -> None:
    ledger = Ledger(2)
    ledger.create(JOBS[0], definition("Nightly report", team="finance", env="prod"))
    ledger.create(JOBS[1], definition("hourly", team="it", note="x\nteam=finance"))
    ledger.create(JOBS[2], definition("STRASSE", team="finance"))
    ledger.pause(JOBS[1], "broken")
    with opener() as store:
        shown(ledger, store)

        def found(**filters: object) -> list[str]:
            given: dict[str, object] = {
                "tenant": None,
                "labels": {},
                "pool": None,
                "paused": None,
                "text": None,
                "after": None,
                "limit": 10,
            }
            jobs = store.jobs(**{**given, **filters})  # type: ignore[arg-type]  # by their names
            return [job.job_id for job in jobs]

        assert found() == ["acme.a", "acme.b", "acme-two.a"]
        assert found(tenant="acme") == ["acme.a", "acme.b"]
        assert found(labels={"team": "finance"}) == ["acme.a", "acme-two.a"]
        assert found(labels={"team": "finance", "env": "prod"}) == ["acme.a"]
        assert found(labels={"team": "finance'--"}) == []
        assert found(paused=True) == ["acme.b"]
        assert found(paused=False) == ["acme.a", "acme-two.a"]
        assert found(pool="default", text="NIGHTLY") == ["acme.a"]
        assert found(text="straße") == ["acme-two.a"]
        assert found(text="%") == []
        assert found(after="acme.a", limit=1) == ["acme.b"]
        assert found(after="acme.b") == ["acme-two.a"]
        paused = store.job(JOBS[1])
        assert paused is not None
        assert (paused.status, paused.pause_reason) == ("paused", "broken")


@openers
def test_a_deleted_job_is_known_and_not_listed_until_its_history_ends(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.delete(JOB)
    with opener() as store:
        shown(ledger, store)
        job = store.job(JOB)
        assert job is not None
        assert (job.status, job.version) == ("deleted", 1)
        assert not store.jobs(
            None, labels={}, pool=None, paused=None, text=None, after=None, limit=9
        )
        assert store.tenants() == ["acme"]
        assert store.tenant_use(ACME).jobs_count == 0
        store.expire(job.status_us + RETENTION_US, 10)
        assert store.job(JOB) is None
        assert store.versions(JOB) == []


@openers
def test_a_job_made_again_under_a_name_shows_nothing_of_the_one_before(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOB, definition("old"), by="ann")
    ledger.pause(JOB, "why")
    ledger.delete(JOB)
    ledger.jobs[JOB].version = 0
    ledger.create(JOB, definition("new"), by="bob")
    with opener() as store:
        shown(ledger, store)
        job = store.job(JOB)
        assert job is not None
        assert (job.status, job.version, job.created_by) == ("active", 1, "bob")
        assert (job.paused_until_us, job.pause_reason) == (None, "")
        assert definition_of(job.definition).description == "new"
        kept = [definition_of(each.definition).description for each in store.versions(JOB)]
        assert kept == ["new", "old"]


# --- runs


@openers
def test_l09_a_redriven_run_keeps_the_attempts_of_the_round_before(opener: Opener) -> None:
    ledger = Ledger(at_us=us("2026-05-20T08:00:00Z"))
    ledger.create(JOB)
    run = ledger.plan(JOB, us("2026-05-20T08:00:00Z"))
    for last in (False, False, True):
        ledger.start(run)
        if last:
            ledger.die(run)
        else:
            ledger.fail(run, error="first round")
    with opener() as store:
        shown(ledger, store)
        dead = store.dead_letters(ACME, after=None, limit=10)
        assert [each.run_id for each in dead.rows] == [run.run_id]
        assert (dead.rows[0].attempt, dead.rows[0].round) == (3, 0)
        ledger.now_us = us("2026-05-24T09:00:00Z")
        ledger.redrive(run)
        shown(ledger, store)
        waiting = detail(store, run.run_id)
        assert (waiting.status, waiting.round, waiting.attempt) == ("queued", 1, 0)
        assert (waiting.started_us, waiting.ended_us, waiting.error) == (None, None, "")
        assert waiting.status_by == "ann"
        assert store.dead_letters(ACME, after=None, limit=10).rows == []
        ledger.start(run)
        ledger.fail(run, error="second round")
        ledger.start(run)
        ledger.succeed(run)
        shown(ledger, store)
        found = store.run(run.run_id)
        assert found is not None
        assert found.run.status == "succeeded"
        assert found.run.started_us is not None
        assert found.run.started_us > us("2026-05-24T09:00:00Z")
        numbers = [(each.round, each.attempt) for each in found.attempts]
        assert numbers == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]
        errors = [each.error for each in found.attempts]
        assert errors == ["first round", "first round", "boom", "second round", ""]


def detail(store: Queries, run_id: str) -> RunRow:
    found = store.run(run_id)  # type: ignore[arg-type]  # from the builder
    assert found is not None
    return found.run


@openers
def test_an_attempt_shows_its_worker_token_times_result_and_output(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    run = ledger.plan(JOB, T0)
    ledger.start(run, "host:1:agent")
    first = run.token
    ledger.fail(run, AttemptOutcome.RELEASED)
    ledger.start(run)
    with opener() as store:
        shown(ledger, store)
        found = store.run(run.run_id)
        assert found is not None
        assert [each.attempt for each in found.attempts] == [1, 1]
        assert [each.outcome for each in found.attempts] == ["released", "running"]
        assert [each.token for each in found.attempts] == [first, run.token]
        assert found.attempts[0].worker_id == "host:1:agent"
        assert found.attempts[0].retry_at_us is not None
        assert found.run.outcome == ""
        ledger.succeed(run, b"\x00\xff", "odd")
        shown(ledger, store)
        found = store.run(run.run_id)
        assert found is not None
        last = found.attempts[-1]
        assert (last.outcome, last.exit_code, last.warning) == ("succeeded", 0, "odd")
        assert last.output == found.run.output == b"\x00\xff"
        assert last.ended_us == found.run.ended_us == found.run.status_us


@openers
def test_a_cancel_that_is_asked_for_is_shown_until_the_run_ends(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    run = ledger.plan(JOB, T0)
    ledger.start(run)
    ledger.ask_cancel(run)
    with opener() as store:
        shown(ledger, store)
        asked = detail(store, run.run_id)
        assert (asked.status, asked.cancel_by, asked.cancel_reason) == ("running", "ann", "not now")
        ledger.fail(run, AttemptOutcome.CANCELLED, retry_us=None)
        ledger.cancel(run)
        shown(ledger, store)
        ended = detail(store, run.run_id)
        assert (ended.status, ended.reason, ended.outcome) == ("cancelled", "not now", "cancelled")


@openers
def test_a_key_that_is_used_again_names_the_new_run_and_keeps_the_old_in_the_list(
    opener: Opener,
) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    first = ledger.request(JOB, "k", admit=False)
    ledger.refuse(first)
    second = ledger.request(JOB, "k")
    ledger.start(second)
    ledger.succeed(second)
    with opener() as store:
        shown(ledger, store)
        found = store.run(second.run_id)
        assert found is not None
        assert (found.run.status, found.run.at_us) == ("succeeded", second.at_us)
        assert len(found.attempts) == 1
        page = store.runs(JOB, statuses=(), from_us=None, to_us=None, after=None, limit=9)
        assert [(run.at_us, run.status) for run in page.rows] == [
            (second.at_us, "succeeded"),
            (first.at_us, "refused"),
        ]


@openers
def test_a_revoked_run_is_nowhere_until_it_is_planned_again(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.revoke(ledger.plan(JOB, T0))
    with opener() as store:
        shown(ledger, store)
        assert pages(store, 9, job_id=JOB) == [[]]
        assert pages(store, 9, job_id=JOB, statuses=("revoked",)) == [[]]
        assert store.slots(JOB, 0, 2 * T0, 9) == []
        run = ledger.plan(JOB, T0)
        shown(ledger, store)
        assert pages(store, 9, job_id=JOB) == [[run.run_id]]
        assert detail(store, run.run_id).status == "planned"


@openers
def test_nothing_is_found_where_nothing_is(opener: Opener) -> None:
    nobody = JobId("nobody.job")
    with opener() as store:
        assert store.job(nobody) is None
        assert store.versions(nobody) == []
        assert store.run(RunId("nobody.job@20240506T120000Z")) is None
        assert store.run(RunId("nobody.job@manual-k")) is None
        assert pages(store, 5, job_id=nobody) == [[]]
        assert store.slots(nobody, 0, 1, 5) == []
        assert store.tenants() == []
        assert store.tenant_use(TenantId("nobody")).jobs_count == 0
        assert dict(store.positions()) == {}


# --- slots


@openers
def test_a_skipped_range_is_one_row_and_what_was_made_up_stands_beside_it(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.skip_slots(JOB, T0, T0 + 3_780 * MINUTE_US, SkipReason.PAUSED)
    made_up = ledger.plan(JOB, T0 + 10 * MINUTE_US, RunOrigin.BACKFILL)
    ledger.start(made_up)
    late = ledger.plan(JOB, T0 + 3_781 * MINUTE_US)
    ledger.skip(late, SkipReason.OVERLAP)
    ledger.request(JOB, "by-hand")
    with opener() as store:
        shown(ledger, store)
        found = store.slots(JOB, T0, T0 + 4_000 * MINUTE_US, 10)
        assert [(each.outcome, each.reason, each.slots_count) for each in found] == [
            ("running", "", 1),
            ("skipped", "paused", 3_780),
            ("skipped", "overlap", 1),
        ]
        assert found[0].run_id == made_up.run_id
        assert (found[1].after_us, found[1].to_us) == (T0, T0 + 3_780 * MINUTE_US)


@openers
def test_a_range_shows_in_each_window_it_reaches_into(opener: Opener) -> None:
    ledger = Ledger()
    ledger.create(JOB)
    ledger.skip_slots(JOB, T0, T0 + 10 * MINUTE_US)
    with opener() as store:
        shown(ledger, store)

        def count(from_us: int, to_us: int) -> int:
            return len(store.slots(JOB, from_us, to_us, 10))

        # The range is (T0, T0 + 10 min]: its first instant is right after T0.
        assert count(T0 - 5, T0 + 1) == 0
        assert count(T0 - 5, T0 + 2) == 1
        assert count(T0 + MINUTE_US, T0 + 2 * MINUTE_US) == 1
        assert count(T0 + 10 * MINUTE_US, T0 + 11 * MINUTE_US) == 1
        assert count(T0 + 10 * MINUTE_US + 1, T0 + 11 * MINUTE_US) == 0


@openers
def test_slots_that_are_being_made_up_are_shown_until_it_is_done(opener: Opener) -> None:
    ledger = LedgerLife()
    ledger.create(JOB)
    ledger.move_cursor(ledger.job(JOB))
    with opener() as store:
        shown(ledger, store)
        found = store.slots(JOB, 0, 2 * T0, 10)
        assert [(each.outcome, each.reason) for each in found] == [("making_up", "backfill")]
        ledger.move_cursor(ledger.job(JOB))
        shown(ledger, store)
        assert store.slots(JOB, 0, 2 * T0, 10) == []


@given(lives, st.integers(1, 4))
@settings(max_examples=60)
def test_a_walk_over_slots_page_by_page_gives_all_of_them_once(
    choices: list[int], limit: int
) -> None:
    life = LedgerLife(2).live(choices)
    with memory() as store:
        shown(life, store)
        for job_id in life.jobs:
            whole = store.slots(job_id, 0, 2 * T0, ROWS_MAX)
            walked: list[SlotRow] = []
            while True:
                after = slot_place(walked[-1]) if walked else None
                page = store.slots(job_id, 0, 2 * T0, limit, after)
                walked += page
                if len(page) < limit:
                    break
            assert walked == whole
