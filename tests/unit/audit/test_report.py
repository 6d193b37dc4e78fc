"""What the report holds, and what it is narrowed down to."""

import msgspec

from horolog.streams.audit import Report, audit
from horolog.streams.audit.report import LISTED_MAX
from tests.builders.core import JOB, definition
from tests.builders.events import Written
from tests.builders.stories import (
    Story,
    minute,
    planned,
    requested,
    run_of,
)
from tests.unit.audit.readings import unexplained

NEVER = definition(None)


def a_mixed_story() -> Story:
    """A run, a gap, a double and a fault."""
    story = Story()
    story.run(1)
    story.run(3)
    story.start(3.2, run_of(3))
    return story


def test_report_is_json() -> None:
    report = a_mixed_story().audit()
    again = msgspec.json.decode(msgspec.json.encode(report), type=Report)
    assert again == report
    assert msgspec.to_builtins(report)["doubled"][0]["slot_us"] == minute(3)


def test_window_keeps_slots_and_events_of_its_time() -> None:
    batches = a_mixed_story().ledger.batches

    def seen(from_minute: float | None, to_minute: float | None) -> tuple[int, int, int, int]:
        report = audit(
            Written(batches),
            from_us=None if from_minute is None else minute(from_minute),
            to_us=None if to_minute is None else minute(to_minute),
        )
        return (
            report.outcomes.get("run", 0),
            report.unexplained_count,
            report.doubled_count,
            report.violations_count,
        )

    assert seen(None, None) == (2, 1, 1, 1)
    assert seen(None, 2) == (1, 0, 0, 0)
    assert seen(2, 3) == (0, 1, 0, 0)
    assert seen(3, None) == (1, 0, 1, 1)
    assert seen(3.3, None) == (0, 0, 0, 0)


def test_filter_by_job_reads_that_job_only() -> None:
    story = a_mixed_story()
    other = JOB.__class__("acme.other")
    story.at(3.3, requested(NEVER, other), requested(NEVER, other))
    assert story.audit().violations_count == 2
    one = audit(Written(story.ledger.batches), job=JOB)
    assert (one.violations_count, one.outcomes) == (1, {"run": 2})
    assert audit(Written(story.ledger.batches), job=other).outcomes == {}


def test_findings_beyond_the_limit_are_counted_and_not_listed() -> None:
    story = Story(definition("* * * * *")).at(2_000.5, planned(2_000))
    report = story.audit()
    assert report.unexplained_count == 1_999
    assert len(report.unexplained) == LISTED_MAX


def test_log_that_is_written_meanwhile_is_read_to_where_it_was() -> None:
    story = Story()
    story.run(1)
    whole = story.audit()

    class Growing(Written):
        """A log with batches that were not there at the call."""

        def last_seq(self, partition: int) -> int:
            return min(super().last_seq(partition), whole.events_count)

    story.at(9)
    assert audit(Growing(story.ledger.batches)) == whole
    assert unexplained(story.audit())
