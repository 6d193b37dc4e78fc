"""Stories in which a rule on the lives of runs or on leases is broken."""

from horolog.schemas.records import (
    AttemptOutcome,
    CancelRequested,
    ReportKind,
    ReportRejected,
    RunAdmitted,
    RunCancelled,
    RunQueued,
    SkipReason,
)
from tests.builders.core import JOB, definition
from tests.builders.stories import (
    TERM,
    Story,
    asked,
    dead,
    ended,
    manual,
    paused,
    planned,
    redriven,
    run_of,
    skipped,
    succeeded,
    updated,
)
from tests.unit.audit.broken import IN_TIME, NEVER, NO_OVERLAP, ONE_RETRY, breaks


@breaks("run-life")
def a_run_succeeds_that_has_not_started() -> Story:
    story = Story(NEVER).at(0.1, asked())
    return story.at(0.2, succeeded(manual(), 0))


@breaks("run-life")
def a_run_is_admitted_twice() -> Story:
    admitted = RunAdmitted(job_id=JOB, run_id=manual())
    return Story(NEVER).at(0.1, asked()).at(0.2, admitted).at(0.3, admitted)


@breaks("run-life")
def a_run_is_dead_without_an_attempt() -> Story:
    story = Story(NO_OVERLAP).at(0.6, planned(1)).at(1, RunQueued(job_id=JOB, run_id=run_of(1)))
    return story.at(1.1, dead(run_of(1)))


@breaks("run-life")
def a_live_run_is_cancelled() -> Story:
    story = Story(NEVER).at(0.1, asked())
    story.start(0.2, manual())
    return story.at(0.3, RunCancelled(job_id=JOB, run_id=manual()))


@breaks("run-life")
def a_slot_is_skipped_whose_run_was_redriven() -> Story:
    story = Story(NO_OVERLAP).at(0.6, planned(1)).at(1, RunQueued(job_id=JOB, run_id=run_of(1)))
    token = story.start(1, run_of(1))
    story.at(1.1, ended(run_of(1), token), dead(run_of(1)))
    return story.at(1.2, redriven(run_of(1)), skipped(1, SkipReason.OVERLAP))


@breaks("run-not-open")
def a_run_starts_whose_slot_was_skipped() -> Story:
    story = Story().at(0.6, planned(1)).at(1.4, skipped(1, SkipReason.LIMIT))
    story.start(1.41, run_of(1))
    return story


@breaks("run-not-open")
def a_run_starts_that_was_never_planned() -> Story:
    story = Story()
    story.start(1, run_of(1))
    return story


@breaks("run-not-open")
def a_run_ends_twice() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    story.at(0.3, succeeded(manual(), token))
    return story.at(0.4, ended(manual(), token, retry=1))


@breaks("run-not-open")
def a_manual_run_starts_after_its_end() -> Story:
    story = Story(NEVER).at(0.1, asked())
    story.at(0.2, RunCancelled(job_id=JOB, run_id=manual()))
    story.start(0.3, manual())
    return story


@breaks("end-missing")
def an_attempt_was_the_last_and_its_run_does_not_end() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    return story.at(0.3, ended(manual(), token))


@breaks("key-twice")
def a_key_has_a_second_run() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    return story.at(0.3, succeeded(manual(), token)).at(60, asked())


@breaks("key-twice")
def a_key_is_used_while_its_run_is_open() -> Story:
    return Story(NEVER).at(0.1, asked()).at(25 * 60, asked())


@breaks("open-limit")
def a_job_has_too_many_open_runs() -> Story:
    return Story(NEVER).at(0.1, *(asked(f"k{number}") for number in range(1_001)))


@breaks("round")
def a_round_is_left_out() -> Story:
    story = _dead()
    return story.at(0.4, redriven(manual(), 2))


@breaks("round")
def an_attempt_is_of_another_round() -> Story:
    story = _dead().at(0.4, redriven(manual()))
    story.start(0.5, manual(), round=0)
    return story


def _dead() -> Story:
    """A manual run that has no attempt left."""
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    return story.at(0.3, ended(manual(), token), dead(manual()))


@breaks("two-leases")
def a_run_is_given_to_two_workers() -> Story:
    story = Story(NEVER).at(0.1, asked())
    story.start(0.2, manual())
    story.start(0.3, manual(), attempt=2)
    return story


@breaks("token-order")
def a_token_is_of_another_generation() -> Story:
    story = Story(NEVER).at(0.1, asked())
    story.start(0.2, manual(), generation=2)
    return story


@breaks("dead-token")
def a_worker_that_lost_its_lease_decides() -> Story:
    story = Story(ONE_RETRY).at(0.6, planned(1))
    first = story.start(1, run_of(1))
    story.at(1.1, ended(run_of(1), first, retry=1.3))
    story.start(1.3, run_of(1), attempt=2)
    return story.at(1.4, succeeded(run_of(1), first, attempt=2))


@breaks("dead-token")
def a_cancel_is_meant_for_another_attempt() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    return story.at(0.3, CancelRequested(job_id=JOB, run_id=manual(), token=token - 1))


@breaks("live-rejected")
def a_report_of_the_live_lease_is_rejected() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    return story.at(
        0.3,
        ReportRejected(
            job_id=JOB, run_id=manual(), kind=ReportKind.COMPLETE, token=token, claim_id="c"
        ),
    )


@breaks("attempt-number")
def an_attempt_is_left_out() -> Story:
    story = Story(NEVER).at(0.1, asked())
    story.start(0.2, manual(), attempt=2)
    return story


@breaks("attempt-number")
def an_attempt_ends_as_another() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    return story.at(0.3, succeeded(manual(), token, attempt=2))


@breaks("version-kept")
def a_retry_goes_by_a_newer_definition() -> Story:
    story = Story(ONE_RETRY).at(0.6, planned(1))
    token = story.start(1, run_of(1))
    story.at(1.05, ended(run_of(1), token, retry=1.3))
    story.at(1.1, updated(NEVER, 1.1))
    story.start(1.3, run_of(1), attempt=2, version=2)
    return story


@breaks("version-kept")
def a_first_attempt_goes_by_an_older_definition() -> Story:
    story = Story(NEVER).at(0.1, asked()).at(0.2, updated(ONE_RETRY, 0.2))
    story.start(0.3, manual(), version=1)
    return story


@breaks("start-early")
def a_run_starts_before_it_is_due() -> Story:
    story = Story().at(0.6, planned(1))
    story.start(0.99, run_of(1))
    return story


@breaks("retry-early")
def a_retry_starts_before_its_time() -> Story:
    story = Story(ONE_RETRY).at(0.6, planned(1))
    token = story.start(1, run_of(1))
    story.at(1.1, ended(run_of(1), token, retry=1.5))
    story.start(1.4, run_of(1), attempt=2)
    return story


@breaks("start-while-closed")
def a_run_starts_in_a_pause() -> Story:
    story = Story(NEVER).at(0.1, asked()).at(0.2, paused(0.2))
    story.start(0.3, manual())
    return story


@breaks("start-too-late")
def a_run_starts_after_its_deadline() -> Story:
    story = Story(IN_TIME).at(0.6, planned(1))
    story.start(1.4, run_of(1))
    return story


@breaks("not-let-through")
def a_run_starts_before_the_policy_was_judged() -> Story:
    story = Story(NO_OVERLAP).at(0.6, planned(1))
    story.start(1, run_of(1))
    return story


@breaks("not-let-through")
def a_redriven_run_starts_before_the_policy_was_judged() -> Story:
    story = Story(NO_OVERLAP).at(0.6, planned(1)).at(1, RunQueued(job_id=JOB, run_id=run_of(1)))
    token = story.start(1, run_of(1))
    story.at(1.1, ended(run_of(1), token), dead(run_of(1)), redriven(run_of(1)))
    story.start(1.2, run_of(1), round=1)
    return story


@breaks("overlap")
def two_runs_of_a_job_that_may_not_overlap_are_open() -> Story:
    story = Story(NO_OVERLAP).at(0.6, planned(1))
    story.at(1, RunQueued(job_id=JOB, run_id=run_of(1)))
    story.start(1, run_of(1))
    story.at(1.6, planned(2)).at(2, RunQueued(job_id=JOB, run_id=run_of(2)))
    story.start(2, run_of(2))
    return story


@breaks("over-budget")
def a_run_is_retried_more_often_than_allowed() -> Story:
    story = Story().at(0.6, planned(1))
    token = story.start(1, run_of(1))
    return story.at(1.1, ended(run_of(1), token, retry=1.5))


@breaks("over-budget")
def a_lost_lease_is_retried_more_often_than_allowed() -> Story:
    story = Story(definition("* * * * *", retries=5, lost_max=0)).at(0.6, planned(1))
    token = story.start(1, run_of(1))
    story.ledger.lease_time_us = TERM + 1
    return story.at(1.6, ended(run_of(1), token, AttemptOutcome.LOST, 1.6), planned(2))


@breaks("back-off")
def a_retry_is_planned_too_early() -> Story:
    story = Story(ONE_RETRY).at(0.6, planned(1))
    token = story.start(1, run_of(1))
    return story.at(1.1, ended(run_of(1), token, retry=1.2))


@breaks("retry-after-end")
def a_cancelled_run_is_retried() -> Story:
    story = Story(ONE_RETRY).at(0.6, planned(1))
    token = story.start(1, run_of(1))
    story.at(1.01, CancelRequested(job_id=JOB, run_id=run_of(1), token=token))
    return story.at(1.1, ended(run_of(1), token, retry=1.4))


@breaks("cancel-unasked")
def an_attempt_is_cancelled_unasked() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    return story.at(0.3, ended(manual(), token, AttemptOutcome.CANCELLED), dead(manual()))


@breaks("lost-early")
def a_lease_is_lost_before_its_term_has_passed() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    story.ledger.lease_time_us = TERM
    return story.at(0.8, ended(manual(), token, AttemptOutcome.LOST, 0.8))
