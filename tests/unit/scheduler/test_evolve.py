"""Every event has its handler, and no move of a run that the table does not name is possible."""

from typing import get_args

import pytest

from horolog.schemas.records import Event, RunSkipped, RunStatus, RunSucceeded, SkipReason
from horolog.streams.scheduler.evolve import HANDLERS
from horolog.streams.scheduler.lifecycle import END, TRANSITIONS, next_status
from tests.builders.core import JOB, T0, run_at


def test_every_event_has_a_handler_and_no_handler_is_left_over() -> None:
    assert set(HANDLERS) == set(get_args(Event))


def test_every_state_is_reached_and_can_be_left() -> None:
    reached = {after for after in TRANSITIONS.values() if after is not END}
    left = {before for before, _ in TRANSITIONS if before is not None}
    assert reached == left == set(RunStatus) - {RunStatus.UNSPECIFIED}


def test_move_that_the_table_does_not_name_crashes() -> None:
    skipped = RunSkipped(job_id=JOB, run_id=run_at(T0), slot_us=T0, reason=SkipReason.PAUSED)
    with pytest.raises(AssertionError):
        next_status(RunStatus.RUNNING, skipped)
    succeeded = RunSucceeded(job_id=JOB, run_id=run_at(T0), attempt=1, token=1)
    assert next_status(RunStatus.RUNNING, succeeded) is END
