"""Why a slot ran, waits or did not run, in sentences, each from something recorded."""

from collections.abc import Iterator
from typing import Final

from horolog.api.backend import Backend
from horolog.api.values import instant_text
from horolog.api.zone_table import ZoneTable
from horolog.projections.rows import JobRow, RunRow, definition_of
from horolog.streams.calendar import describe, next_slot, previous_slot

REASONS: Final = {
    "catch_up": "it was missed while no scheduler ran, and the job's catchUp does not make it up",
    "coalesced": "it was missed or waited too long, and a later run stands for it",
    "paused": "the job was paused",
    "overlap": "a run of the job was open, and the job's overlap policy is to skip",
    "too_late": "it could not start before its starting deadline",
    "limit": "the job had as many open runs as a job may have",
    "blackout": "it fell into a blackout",
    "deleted": "the job was deleted",
}


def trail(
    backend: Backend, job: JobRow, at_us: int | None, zones: ZoneTable, now_us: int
) -> Iterator[str]:
    """What is known about the slot at an instant, or, without one, about the latest slot and what
    comes next.
    """
    definition = definition_of(job.definition)
    schedule = definition.schedule
    loaded = zones.with_zone(schedule.timezone)
    yield f"{job.job_id} is {job.status} at version {job.version}: {describe(schedule)}."
    if job.status == "paused":
        until = "" if job.paused_until_us is None else f" until {instant_text(job.paused_until_us)}"
        reason = f" ({job.pause_reason})" if job.pause_reason else ""
        yield f"It is paused{until}{reason}: slots that pass are skipped. `horolog resume` it."
    slot_us = at_us
    if slot_us is None:
        slot_us = previous_slot(schedule, job.job_id, now_us, loaded)
    if slot_us is not None:
        yield from _slot(backend, job, slot_us, asked=at_us is not None, now_us=now_us)
    coming_us = next_slot(schedule, job.job_id, now_us, loaded)
    if coming_us is None:
        yield "No slot is to come: the job runs only when triggered."
    else:
        yield f"The next slot is {instant_text(coming_us)}."


def _slot(
    backend: Backend, job: JobRow, slot_us: int, *, asked: bool, now_us: int
) -> Iterator[str]:
    name = f"The slot {instant_text(slot_us)}"
    rows = backend.queries.slots(job.job_id, slot_us, slot_us + 1, 10)
    for row in rows:
        if row.run_id is not None and row.to_us == slot_us:
            detail = backend.queries.run(row.run_id)
            if detail is not None:
                yield from _run(backend, name, detail.run)
            return
        if row.outcome == "skipped" and row.after_us < slot_us <= row.to_us:
            into = f" ({row.into})" if row.into else ""
            yield f"{name} did not run: {REASONS.get(row.reason, row.reason)}{into}."
            return
    if slot_us <= job.created_us:
        yield f"{name} lies before the job was created at {instant_text(job.created_us)}."
    elif slot_us > now_us:
        yield f"{name} is still to come."
    elif asked:
        yield f"No slot of the job was at {instant_text(slot_us)} by the schedule in force then."


def _run(backend: Backend, name: str, run: RunRow) -> Iterator[str]:
    match run.status:
        case "succeeded" | "running":
            started = "" if run.started_us is None else f" at {instant_text(run.started_us)}"
            yield f"{name} {run.status}: attempt {run.attempt} started{started} on {run.worker_id}."
        case "skipped":
            into = f" ({run.into})" if run.into else ""
            yield f"{name} did not run: {REASONS.get(run.reason, run.reason)}{into}."
        case "planned" | "queued" | "pending":
            yield f"{name} waits."
            standing = backend.standing(run.run_id)
            if standing:
                yield standing
            if run.error:
                yield f"Attempt {run.attempt} failed: {run.error}."
        case _:
            yield f"{name} is {run.status}: {run.reason or run.error}."
