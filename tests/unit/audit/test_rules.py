"""Each rule, broken in one way: the audit finds it, names it, and finds nothing else."""

from pathlib import Path

import pytest

from horolog.schemas.records import EVENTS
from horolog.streams.audit import RULES, audit
from horolog.streams.audit.lives import ALLOWED
from horolog.streams.audit.proof import HANDLERS
from horolog.streams.audit.rules import table
from horolog.streams.scheduler.lifecycle import TRANSITIONS
from tests.builders.core import JOB
from tests.builders.events import Written
from tests.builders.stories import minute, run_of
from tests.unit.audit import broken_jobs, broken_runs, broken_slots
from tests.unit.audit.broken import BROKEN, Tell

# Importing them is what fills BROKEN.
SOURCES = (broken_jobs, broken_slots, broken_runs)

ALSO: dict[Tell, set[str]] = {
    # That it shall run again is a fault of its own.
    broken_jobs.an_attempt_of_a_deleted_job_fails_and_its_run_is_left_waiting: {"retry-after-end"},
    broken_runs.a_run_succeeds_that_has_not_started: {"dead-token", "attempt-number"},
}
"""What else such a story cannot help to break."""


@pytest.mark.parametrize("rule, tell", BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_rule_that_is_broken_is_found_by_its_name_and_no_other(rule: str, tell: Tell) -> None:
    report = tell().audit()
    also = ALSO.get(tell, set())
    assert {each.rule for each in report.violations} == {rule, *also}, report.violations
    assert not report.ok
    assert not report.unexplained


def test_rules_without_a_story_that_breaks_them_are_none() -> None:
    assert {rule for rule, _ in BROKEN} == {rule.name for rule in RULES}


def test_finding_names_the_event_that_broke_the_rule() -> None:
    story = broken_runs.a_run_starts_before_it_is_due()
    (found,) = story.audit().violations
    assert (found.partition, found.seq, found.job_id, found.run_id) == (
        0,
        story.ledger.batches[-1].first_seq,
        JOB,
        run_of(1),
    )
    assert found.at_us == minute(0.99)
    assert found.detail == "600000 us before it was due"


def test_page_of_the_audit_holds_the_table_of_the_rules() -> None:
    page = Path(__file__).parents[3].joinpath("docs/audit.md").read_text(encoding="utf-8")
    assert table() in page, f"docs/audit.md needs this table:\n{table()}"


def test_ledger_without_an_event_is_proven_and_empty() -> None:
    report = audit(Written([]))
    assert report.ok
    assert report.events_count == report.slots_count == 0


def test_handlers_of_events_are_there_for_every_event() -> None:
    assert set(HANDLERS) == set(EVENTS)


def test_lives_of_runs_are_those_of_the_scheduler() -> None:
    # Two tables on purpose: the audit must not believe the scheduler's.
    by_event: dict[str, set[str]] = {}
    for before, event in TRANSITIONS:
        if before is not None:
            by_event.setdefault(event.__name__, set()).add(before.value)
    assert by_event == {
        event.__name__: {status.value for status in allowed} for event, allowed in ALLOWED.items()
    }
