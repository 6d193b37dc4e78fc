"""What a report says, in minutes of a story."""

from horolog.streams.audit import Report
from tests.builders.stories import minute


def outcomes(report: Report) -> dict[str, int]:
    """Of a ledger in which nothing is found."""
    assert report.ok, [*report.violations, *report.unexplained, *report.doubled]
    decided = sum(report.outcomes.values())
    assert report.slots_count == decided + report.waiting_count
    return dict(report.outcomes)


def unexplained(report: Report) -> list[float]:
    """The minutes of the slots that have no outcome."""
    assert report.unexplained_count == len(report.unexplained)
    return [(found.slot_us - minute(0)) / 60_000_000 for found in report.unexplained]


def doubled(report: Report) -> list[tuple[float, str]]:
    """The minutes of the slots that have two, and the second ones."""
    assert report.doubled_count == len(report.doubled)
    return [((each.slot_us - minute(0)) / 60_000_000, each.outcome) for each in report.doubled]
