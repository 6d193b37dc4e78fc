"""Stories in which a rule on plans, skips and cursors is broken."""

from msgspec.structs import replace

from horolog.schemas.records import (
    CatchUp,
    RunOrigin,
    Schedule,
    SkipReason,
)
from tests.builders.core import definition, run_at
from tests.builders.stories import (
    Story,
    asked,
    cursor,
    cursor_ended,
    manual,
    minute,
    passed_over,
    paused,
    planned,
    resumed,
    revoked,
    run_of,
    skipped,
    updated,
)
from tests.unit.audit.broken import NEVER, breaks


@breaks("no-such-slot")
def an_instant_between_two_slots_is_planned() -> Story:
    slot_us = minute(0.5)
    made = replace(planned(1), run_id=run_at(slot_us), slot_us=slot_us, due_us=slot_us)
    return Story().at(0.1, made)


@breaks("no-such-slot")
def a_slot_outside_of_the_bounds_is_planned() -> Story:
    job = definition(schedule=Schedule(cron="* * * * *", end_us=minute(1)))
    return Story(job).at(0.6, planned(1))


@breaks("planned-again")
def a_slot_is_planned_twice() -> Story:
    return Story().at(0.6, planned(1)).at(0.7, planned(1))


@breaks("planned-early")
def a_slot_is_planned_before_the_lookahead() -> Story:
    return Story().at(0.4, planned(1))


@breaks("planned-while-closed")
def a_paused_job_plans() -> Story:
    return Story().at(0.1, paused(0.1)).at(0.6, planned(1))


@breaks("due")
def a_run_is_due_at_another_time_than_its_slot() -> Story:
    return Story().at(0.6, planned(1, due_us=minute(1) + 1))


@breaks("missed-as-fresh")
def a_missed_slot_is_planned_as_if_it_were_not() -> Story:
    return Story().at(2.1, planned(1), planned(2))


@breaks("revoked")
def a_run_is_revoked_without_a_change() -> Story:
    return Story().at(0.6, planned(1)).at(0.7, revoked(1), planned(1))


@breaks("revoked")
def a_run_is_revoked_whose_slot_has_come() -> Story:
    story = Story().at(0.6, planned(1))
    return story.at(1.1, revoked(1), planned(1), updated(NEVER, 1.1, reschedules=True))


@breaks("run-id")
def a_run_has_the_id_of_another_slot() -> Story:
    return Story().at(0.6, replace(planned(1), run_id=run_of(2)))


@breaks("run-id")
def a_manual_run_has_the_id_of_another_key() -> Story:
    return Story(NEVER).at(0.1, replace(asked("a"), run_id=manual("b")))


@breaks("skip-count")
def a_range_names_more_slots_than_there_are() -> Story:
    return Story().at(2.5, passed_over(0, 1, 2, SkipReason.LIMIT), planned(2))


@breaks("skip-reason")
def a_slot_is_skipped_for_an_overlap_that_is_allowed() -> Story:
    return Story().at(0.6, planned(1)).at(1, skipped(1, SkipReason.OVERLAP))


@breaks("skip-reason")
def a_slot_is_too_late_for_a_job_without_a_deadline() -> Story:
    return Story().at(0.6, planned(1)).at(1, skipped(1, SkipReason.TOO_LATE))


@breaks("skip-reason")
def a_slot_of_a_pause_is_skipped_for_another_reason() -> Story:
    story = Story().at(0.1, paused(0.1))
    return story.at(1.1, passed_over(0.1, 1.1, 1, SkipReason.LIMIT), resumed(1.1))


@breaks("skip-reason")
def a_slot_is_skipped_for_no_reason() -> Story:
    return Story().at(0.6, planned(1)).at(1, skipped(1, SkipReason.UNSPECIFIED))


@breaks("skip-reason")
def slots_are_coalesced_although_none_is_made_up() -> Story:
    story = Story(definition("* * * * *", catch_up=CatchUp.SKIP))
    return story.at(2.5, passed_over(0, 1, 1, SkipReason.COALESCED, run_of(2)), planned(2))


@breaks("skipped-young")
def a_slot_is_skipped_by_catch_up_as_soon_as_it_is_due() -> Story:
    return Story().at(0.6, planned(1)).at(1.5, skipped(1, SkipReason.CATCH_UP), planned(2))


@breaks("skipped-young")
def a_range_is_skipped_by_catch_up_as_soon_as_it_is_due() -> Story:
    return Story().at(1.9, passed_over(0, 1, 1, SkipReason.CATCH_UP), planned(2))


@breaks("coalesced-into")
def a_slot_is_coalesced_into_a_run_that_never_is() -> Story:
    return Story().at(2.5, passed_over(0, 1, 1, SkipReason.COALESCED, run_of(3)), planned(2))


@breaks("coalesced-into")
def a_slot_is_coalesced_into_an_earlier_run() -> Story:
    story = Story().at(2.5, passed_over(0, 1, 1, SkipReason.COALESCED, run_of(1)))
    return story.at(2.6, planned(2), planned(3))


@breaks("coalesced-into")
def a_slot_is_coalesced_into_nothing() -> Story:
    return Story().at(2.5, passed_over(0, 1, 1, SkipReason.COALESCED), planned(2))


@breaks("cursor")
def a_catch_up_passes_over_a_slot_and_skips_it() -> Story:
    story = Story(definition("* * * * *", catch_up=CatchUp.ALL))
    catch_up = RunOrigin.CATCH_UP
    story.at(4.5, cursor(0, 3, catch_up), planned(1, origin=catch_up), planned(3, origin=catch_up))
    return story.at(4.51, cursor_ended(), passed_over(1, 2, 1, SkipReason.LIMIT), planned(4))


@breaks("cursor")
def a_cursor_ends_that_is_not_open() -> Story:
    return Story(NEVER).at(1, cursor_ended(7))


@breaks("cursor")
def a_slot_is_backfilled_without_a_backfill() -> Story:
    story = Story()
    story.run(1)
    return story.at(1.1, planned(-1, origin=RunOrigin.BACKFILL))


@breaks("cursor")
def a_backfill_ends_before_its_last_slot() -> Story:
    story = Story().at(0.1, cursor(-3, -1, RunOrigin.BACKFILL))
    return story.at(0.2, planned(-2, origin=RunOrigin.BACKFILL), cursor_ended())


@breaks("backfill")
def a_backfill_covers_a_slot_that_ran() -> Story:
    story = Story()
    story.run(1)
    return story.at(1.2, cursor(-1, 1.1, RunOrigin.BACKFILL))
