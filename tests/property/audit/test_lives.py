"""Random lives of the real scheduler's core leave a ledger in which the audit finds nothing, and
what is changed in such a ledger is found.
"""

from collections.abc import Iterator

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from horolog.schemas.records import (
    AttemptEnded,
    CursorStarted,
    EpochStarted,
    Event,
    JobCreated,
    JobDeleted,
    JobRequested,
    RunCancelled,
    RunDeadLettered,
    RunOrigin,
    RunPlanned,
    RunRedriven,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
    SkipReason,
    SlotsSkipped,
)
from horolog.streams.audit import Report, audit
from tests.builders.core import definition
from tests.builders.events import Written, changed, written
from tests.builders.life import JOBS, Life

lives = st.lists(st.integers(0, 64 * 40), min_size=1, max_size=60)
ONCE = (
    EpochStarted,
    JobRequested,
    JobCreated,
    JobDeleted,
    RunPlanned,
    RunRevoked,
    RunSkipped,
    RunCancelled,
    SlotsSkipped,
    CursorStarted,
    RunRequested,
    RunStarted,
    RunSucceeded,
    AttemptEnded,
    RunDeadLettered,
    RunRedriven,
)
"""Events that cannot be said twice."""


def lived(choices: list[int], *, begin_us: int = 0) -> Written:
    """The ledger of a life, with 6 s at its end in which nothing is done. `begin_us`: so long a
    job with a slot each minute lives before the choices.
    """
    life = Life()
    if begin_us:
        life.core.create(definition("* * * * *"), JOBS[0])
        life.core.pass_time(begin_us, step_us=5_000_000)
    life.live(choices, lambda _: None)
    life.core.pass_time(6_000_000)
    return written(life.core.log)


def events_of(ledger: Written) -> Iterator[Event]:
    """All of them."""
    for batch in ledger.read(0, 0):
        yield from batch.events


def told(report: Report) -> str:
    """All findings, for the failure's text."""
    return "\n".join(map(str, [*report.violations, *report.unexplained, *report.doubled]))


@given(lives)
@settings(max_examples=300)
def test_life_of_the_real_core_leaves_nothing_to_be_found(choices: list[int]) -> None:
    ledger = lived(choices)
    report = audit(ledger)
    assert report.ok, told(report)
    assert sum(report.outcomes.values()) + report.waiting_count == report.slots_count


def leaves_a_trace(event: Event, proven_to_us: int) -> bool:
    """Whether a decision that is left out must be missed: its slots were to be decided, and no
    pause or waiting run may stand for them.
    """
    if isinstance(event, SlotsSkipped):
        return event.to_us <= proven_to_us and event.reason is not SkipReason.PAUSED
    return (
        isinstance(event, RunPlanned)
        and event.origin is RunOrigin.SCHEDULE
        and event.slot_us <= proven_to_us
    )


@given(lives, st.data())
@settings(max_examples=150)
def test_decision_that_is_left_out_is_found(choices: list[int], data: st.DataObject) -> None:
    ledger = lived(choices, begin_us=150_000_000)
    before = audit(ledger)
    assume(before.ok)
    decisions = [
        event.seq for event in events_of(ledger) if leaves_a_trace(event, before.proven_to_us)
    ]
    left_out = data.draw(st.sampled_from(decisions))
    made = changed(ledger.read(0, 0), lambda event: [] if event.seq == left_out else [event])
    assert not audit(Written(made, log_id=ledger.log_id)).ok


@given(lives, st.data())
@settings(max_examples=150)
def test_event_that_is_said_twice_is_found(choices: list[int], data: st.DataObject) -> None:
    ledger = lived(choices)
    assume(audit(ledger).ok)
    doubled = data.draw(
        st.sampled_from([each.seq for each in events_of(ledger) if isinstance(each, ONCE)])
    )
    made = changed(
        ledger.read(0, 0), lambda event: [event, event] if event.seq == doubled else [event]
    )
    assert not audit(Written(made, log_id=ledger.log_id)).ok


def test_slot_that_is_cancelled_before_it_comes_stays_decided_through_an_edit() -> None:
    # A life that Hypothesis found: cancel within the lookahead, then change the schedule.
    report = audit(lived([0, 9, 75, 2559, 1287]))
    assert report.ok, told(report)
