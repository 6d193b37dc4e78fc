"""Laws of the scheduler's core over random lives of jobs."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.schemas.records import (
    AttemptEnded,
    Event,
    Overlap,
    RunCancelled,
    RunDeadLettered,
    RunDiscarded,
    RunId,
    RunOrigin,
    RunPlanned,
    RunRequested,
    RunSkipped,
    RunStarted,
    RunSucceeded,
)
from horolog.streams.host.snapshots import Recovery, fold
from horolog.streams.scheduler.snapshot import canonical
from tests.builders.core import Core, only
from tests.builders.life import Life

lives = st.lists(st.integers(0, 64 * 40), min_size=1, max_size=60)
ENDS = (RunSucceeded, RunSkipped, RunCancelled, RunDeadLettered, RunDiscarded)


@given(lives)
@settings(max_examples=150, deadline=None)
def test_folding_the_ledger_gives_the_live_state_after_every_step(choices: list[int]) -> None:
    def check(core: Core) -> None:
        live = list(canonical(core.state))
        assert list(canonical(fold(core.log, 0))) == live

    Life().live(choices, check)


@given(lives)
@settings(max_examples=150, deadline=None)
def test_snapshot_and_tail_give_the_live_state(choices: list[int]) -> None:
    def check(core: Core) -> None:
        live = list(canonical(core.state))
        assert list(canonical(Recovery(core.log, 0).state)) == live

    Life().live(choices, check)


@given(lives)
@settings(max_examples=300, deadline=None)
def test_each_run_has_one_end_a_round_and_one_live_lease(choices: list[int]) -> None:
    life = Life()
    life.live(choices, lambda _: None)
    open_tokens: dict[RunId, int] = {}
    last_token = 0
    for event in life.core.events:
        if isinstance(event, RunStarted):
            assert event.run_id not in open_tokens
            assert event.seq > last_token
            open_tokens[event.run_id] = last_token = event.seq
        elif isinstance(event, RunSucceeded | AttemptEnded):
            assert open_tokens.pop(event.run_id) == event.token % 2**40
        elif isinstance(event, RunSkipped | RunCancelled | RunDeadLettered):
            assert event.run_id not in open_tokens


@given(lives)
@settings(max_examples=300, deadline=None)
def test_no_slot_is_both_started_and_skipped_or_started_twice(choices: list[int]) -> None:
    life = Life()
    life.live(choices, lambda _: None)
    started = {event.run_id for event in only(life.core.events, RunStarted)}
    skipped = Counter(event.run_id for event in only(life.core.events, RunSkipped))
    assert not started & set(skipped)
    assert all(count == 1 for count in skipped.values())
    succeeded = Counter(event.run_id for event in only(life.core.events, RunSucceeded))
    assert all(count == 1 for count in succeeded.values())
    requested = Counter(
        (event.job_id, event.run_id) for event in only(life.core.events, RunRequested)
    )
    assert max(requested.values(), default=0) <= 1 or _refused_or_expired(life.core.events)


def _refused_or_expired(events: list[Event]) -> bool:
    """Whether some request was refused, so that its key was free again."""
    return any(type(event).__name__ in ("RunRefused", "JobForgotten") for event in events)


@given(lives)
@settings(max_examples=300, deadline=None)
def test_jobs_that_may_not_overlap_never_have_two_occupants(choices: list[int]) -> None:
    def check(core: Core) -> None:
        for job in core.state.jobs.values():
            if job.definition is None or job.in_force.overlap is Overlap.ALLOW:
                continue
            let_through = [
                run
                for run in job.runs.values()
                if run.occupies and run.origin is not RunOrigin.MANUAL
            ]
            kept = {run.version for run in let_through} - {0}
            if kept <= {job.version}:
                assert len(let_through) <= 1, let_through

    Life().live(choices, check)


@given(lives)
@settings(max_examples=200, deadline=None)
def test_no_run_is_planned_for_a_slot_that_had_its_outcome(choices: list[int]) -> None:
    life = Life()
    life.live(choices, lambda _: None)
    decided: set[RunId] = set()
    for event in life.core.events:
        if isinstance(event, RunPlanned):
            assert event.run_id not in decided
        elif isinstance(event, RunSkipped | RunStarted):
            decided.add(event.run_id)
