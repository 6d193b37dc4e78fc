"""When a job next has something to decide, from its state alone."""

from collections.abc import Iterator
from itertools import islice

from horolog.schemas.records import CatchUp, JobStatus, RunOrigin, RunStatus
from horolog.streams.limits import (
    AHEAD_LEAST,
    DEAD_KEPT_US,
    KEYS_KEPT_US,
    LOOKAHEAD_US,
    MISSED_AFTER_US,
)
from horolog.streams.scheduler.state import Job, PartitionState, Run


def wake_us(state: PartitionState, job: Job, after_us: int) -> int | None:
    """The next instant (microseconds UTC) after `after_us` at which `Wake` of the job would decide
    something; None: only an input can. A `Wake` decides all that lies up to its now, so the caller
    passes the now of the last one, or 0. Earlier than needed is harmless, later is a late slot.
    """
    if job.status is JobStatus.DELETED:
        if job.runs or job.deleted_us is None:
            return None
        return job.deleted_us + KEYS_KEPT_US
    if job.status is JobStatus.PAUSED:
        return job.paused_until_us
    if job.status is not JobStatus.ACTIVE:
        return None
    return _first(state, job, after_us)


def _first(state: PartitionState, job: Job, after_us: int) -> int | None:
    """Cost: one look at each open run, and no more at those that are due after what is found."""
    first_us: int | None = None
    slot_us = state.next_slot_of(job)
    if slot_us is not None and slot_us > after_us:
        # Again when it comes, should there be no room for it before.
        early_us = _early_us(job, slot_us)
        first_us = early_us if early_us > after_us else slot_us
    for run in job.runs.values():
        # Nothing is to be decided of a run before it is due.
        if first_us is None or run.due_us < first_us:
            for instant_us in _of_run(job, run):
                if instant_us > after_us and (first_us is None or instant_us < first_us):
                    first_us = instant_us
    return first_us


def _early_us(job: Job, slot_us: int) -> int:
    """When the next slot is to be planned: a lookahead before it; if slots are planned already, so
    much later that several are at once, and some are left.
    """
    runs = reversed(job.runs.values())
    last = next(runs, None)
    if last is None or not last.is_unstarted_slot or last.due_us <= slot_us - LOOKAHEAD_US:
        return slot_us - LOOKAHEAD_US
    early_us = slot_us - LOOKAHEAD_US // 2
    before = next(islice(runs, AHEAD_LEAST - 1, None), None)
    if before is not None and before.is_unstarted_slot:
        early_us = max(early_us, before.due_us)
    return early_us


def _of_run(job: Job, run: Run) -> Iterator[int]:
    if run.status is RunStatus.DEAD:
        yield run.dead_us + DEAD_KEPT_US
    if not run.is_unstarted_slot:
        return
    definition = job.in_force
    if run.gated:
        yield run.due_us
    if run.origin is RunOrigin.BACKFILL:
        return
    if definition.starting_deadline_us is not None:
        yield run.due_us + definition.starting_deadline_us + 1
    if definition.catch_up is not CatchUp.ALL and not run.gated:
        yield run.due_us + MISSED_AFTER_US + 1
