"""Stories in which a rule on the log, its owners or a job is broken."""

from msgspec.structs import replace

from horolog.schemas.ids import job_id_of, partition_of
from horolog.schemas.records import (
    AttemptOutcome,
    CatchUp,
    DispatcherEpochRecorded,
    JobForgotten,
    RunCancelled,
    RunOrigin,
    Schedule,
    SkipReason,
    TzdataChanged,
    ZoneRules,
)
from horolog.streams.host.tzdata import read_zone
from tests.builders.core import JOB, definition
from tests.builders.stories import (
    EACH_MINUTE,
    Story,
    asked,
    cursor,
    deleted,
    ended,
    manual,
    minute,
    passed_over,
    paused,
    planned,
    requested,
    resumed,
    updated,
)
from tests.unit.audit.broken import NEVER, breaks

PARIS = definition(schedule=Schedule(cron="0 6 * * *", timezone="Europe/Paris"))


@breaks("log-sequence")
def a_batch_is_missing() -> Story:
    story = Story().at(0.6, planned(1))
    del story.ledger.batches[1]
    return story


@breaks("log-identity")
def the_first_record_names_another_log() -> Story:
    story = Story(created=False)
    return _first(story, log_id="other")


@breaks("log-identity")
def the_first_record_names_another_partition() -> Story:
    return _first(Story(created=False), partition=3)


@breaks("log-identity")
def the_generation_stays() -> Story:
    story = Story()
    return story.at(0.1, story.ledger.created())


@breaks("log-identity")
def the_log_begins_with_something_else() -> Story:
    story = Story(created=False)
    story.ledger.batches.clear()
    story.ledger.seq = 0
    story.ledger.generation = 0
    story.ledger.epoch = 0
    return story.at(0, DispatcherEpochRecorded(dispatcher=0, epoch=1))


def _first(story: Story, **fields: object) -> Story:
    batch = story.ledger.batches[0]
    first = replace(batch.events[0], **fields)
    story.ledger.batches[0] = replace(batch, events=(first, *batch.events[1:]))
    return story


@breaks("epoch")
def an_epoch_that_nobody_began_writes() -> Story:
    story = Story()
    story.ledger.epoch = 2
    return story.at(0.1)


@breaks("dispatcher-epoch")
def the_epoch_of_a_dispatcher_goes_back() -> Story:
    return Story().at(
        0.1,
        DispatcherEpochRecorded(dispatcher=0, epoch=2),
        DispatcherEpochRecorded(dispatcher=1, epoch=1),
        DispatcherEpochRecorded(dispatcher=0, epoch=1),
    )


@breaks("lease-time")
def lease_time_goes_back() -> Story:
    story = Story()
    story.ledger.lease_time_us = 5
    story.at(0.1)
    story.ledger.lease_time_us = 4
    return story.at(0.2)


def rules_of(effective_us: int) -> TzdataChanged:
    zone = ZoneRules(
        zone="Europe/Paris", effective_us=effective_us, rules=read_zone("Europe/Paris")
    )
    return TzdataChanged(version="2026f", zones=(zone,))


@breaks("zone-rules")
def new_rules_of_a_zone_hold_for_the_past() -> Story:
    return Story().at(0.1, rules_of(0)).at(0.2, rules_of(minute(0)))


@breaks("zone-rules")
def rules_of_a_zone_are_no_rules() -> Story:
    bad = ZoneRules(zone="Europe/Paris", effective_us=0, rules=b"no TZif")
    return Story().at(0.1, TzdataChanged(version="2026f", zones=(bad,)))


@breaks("zone-rules")
def a_job_is_in_a_zone_without_rules() -> Story:
    story = Story(PARIS, created=False).at(0, requested(PARIS))
    return story.at(0.01, story.created())


@breaks("misplaced")
def a_job_stands_in_another_partition() -> Story:
    elsewhere = next(
        job_id
        for job_id in (job_id_of("acme", f"job{number}") for number in range(9))
        if partition_of(job_id, 2) == 1
    )
    return Story(created=False, partitions=2).at(0, requested(NEVER, elsewhere))


@breaks("job-life")
def a_job_is_created_unasked() -> Story:
    story = Story(created=False)
    return story.at(0.1, story.created())


@breaks("job-life")
def a_job_is_asked_for_while_it_exists() -> Story:
    return Story().at(0.1, requested())


@breaks("job-life")
def a_job_goes_on_that_was_not_paused() -> Story:
    return Story().at(0.1, resumed(0.1))


@breaks("job-life")
def a_job_is_changed_after_its_end() -> Story:
    return Story().at(0.1, deleted(0.1)).at(0.2, updated(EACH_MINUTE, 0.2))


@breaks("job-life")
def a_job_that_exists_is_forgotten() -> Story:
    return Story(NEVER).at(0.1, JobForgotten(job_id=JOB))


@breaks("job-life")
def a_slot_of_no_job_is_skipped() -> Story:
    return Story(created=False).at(1, passed_over(0, 0.9, 0, SkipReason.LIMIT))


@breaks("job-version")
def a_version_is_left_out() -> Story:
    return Story(NEVER).at(0.1, updated(NEVER, 0.1, version=3))


@breaks("job-version")
def a_version_is_used_twice() -> Story:
    return Story(NEVER).at(0.1, updated(NEVER, 0.1)).at(0.2, updated(NEVER, 0.2))


@breaks("accounted-to")
def an_update_counts_from_before_a_decided_slot() -> Story:
    story = Story()
    story.run(1)
    return story.at(1.1, updated(NEVER, 0.9))


@breaks("accounted-to")
def an_update_counts_from_the_future() -> Story:
    return Story(NEVER).at(0.1, updated(NEVER, 0.2))


@breaks("accounted-to")
def a_job_counts_from_later_than_it_was_asked_for() -> Story:
    story = Story(NEVER, created=False).at(0, requested(NEVER))
    return story.at(0.5, replace(story.created(), accounted_to_us=minute(0.5)))


@breaks("accounted-to")
def slots_that_are_to_come_are_skipped() -> Story:
    return Story().at(0.9, passed_over(0, 1, 1, SkipReason.LIMIT))


@breaks("schedule-moved")
def an_update_changes_the_schedule_and_says_that_it_does_not() -> Story:
    return Story().at(0.1, updated(NEVER, 0.1, reschedules=False))


@breaks("schedule-unreadable")
def a_schedule_makes_no_sense() -> Story:
    job = definition("61 * * * *")
    story = Story(job, created=False).at(0, requested(job))
    return story.at(0.01, story.created())


@breaks("left-open")
def a_new_schedule_leaves_what_was_planned_by_the_old() -> Story:
    return Story().at(0.6, planned(1)).at(0.7, updated(NEVER, 0.7))


@breaks("left-open")
def a_pause_leaves_what_was_planned() -> Story:
    return Story().at(0.6, planned(1)).at(1.01, paused(1.01))


@breaks("left-open")
def a_pause_leaves_a_catch_up() -> Story:
    story = Story(definition("* * * * *", catch_up=CatchUp.ALL))
    story.at(5, cursor(0, 3, RunOrigin.CATCH_UP))
    return story.at(5.01, passed_over(3, 5.01, 2, SkipReason.PAUSED), paused(5.01))


@breaks("left-open")
def a_deletion_leaves_a_manual_run() -> Story:
    story = Story(NEVER).at(0.1, asked()).at(0.2, deleted(0.2))
    return story.at(0.3, RunCancelled(job_id=JOB, run_id=manual()))


@breaks("left-open")
def an_attempt_of_a_deleted_job_fails_and_its_run_is_left_waiting() -> Story:
    story = Story(NEVER).at(0.1, asked())
    token = story.start(0.2, manual())
    story.at(0.3, deleted(0.3))
    story.at(0.4, ended(manual(), token, AttemptOutcome.RELEASED, 0.4))
    return story
