"""A schedule explained: in words, with its next slots and what is odd about it.

Used by the API and, without a server, by the CLI.
"""

from typing import cast

from horolog.api.definitions import definition_of, local_instant, read_spec
from horolog.api.faults import Fault, Refused
from horolog.api.json_values import Json
from horolog.api.limits import CLOCK_CHANGES_SHOWN_MAX
from horolog.api.requests import ExplainRequest
from horolog.api.values import has_offset, instant_text, parse_instant
from horolog.api.zone_table import ZoneTable
from horolog.schemas.errors import INVALID_SCHEDULE
from horolog.schemas.records import JobId, Schedule
from horolog.streams.calendar import (
    Zones,
    anchored,
    check,
    clock_changes,
    describe,
    lint,
    local_text,
    next_slot,
)


def of_request(body: ExplainRequest, zones: ZoneTable, now_us: int) -> dict[str, Json]:
    """The explanation that is asked for; raises Refused."""
    spec: dict[str, Json] = {
        "schedule": cast("Json", body.schedule),
        "timezone": body.timezone,
        "target": {"handler": "example"},
    }
    definition = definition_of(read_spec(spec), zones)
    from_us = now_us
    if body.from_ is not None:
        from_us = _instant(body.from_, definition.schedule.timezone, zones)
    schedule = anchored(definition.schedule, from_us)
    return explained(schedule, JobId(body.job), from_us, body.count, zones)


def explained(
    schedule: Schedule, job_id: JobId, from_us: int, count: int, zones: ZoneTable
) -> dict[str, Json]:
    """Words, slots from an instant on (inclusive), clock changes among them, warnings."""
    loaded = zones.with_zone(schedule.timezone)
    faults = [
        Fault(
            pointer=f"/schedule/{problem.field}",
            detail=f"{problem.value!r} {problem.detail}",
            error=INVALID_SCHEDULE,
            hint=problem.hint,
        )
        for problem in check(schedule, job_id, from_us, loaded)
    ]
    if faults:
        raise Refused(faults)
    slots = _slots(schedule, job_id, from_us, count, loaded)
    changes: list[Json] = []
    if slots:
        found = clock_changes(schedule.timezone, from_us - 1, slots[-1], loaded)
        changes = [
            {
                "at": instant_text(change.at_us),
                "local": local_text(schedule.timezone, change.at_us, loaded),
                "offsetBeforeS": change.offset_before_us // 1_000_000,
                "offsetAfterS": change.offset_after_us // 1_000_000,
            }
            for change in list(found)[:CLOCK_CHANGES_SHOWN_MAX]
        ]
    warnings: list[Json] = [warning.detail for warning in lint(schedule, job_id, from_us, loaded)]
    shown: list[Json] = [
        {
            "slot": instant_text(slot_us),
            "local": local_text(schedule.timezone, slot_us, loaded),
        }
        for slot_us in slots
    ]
    return {
        "words": describe(schedule),
        "timezone": schedule.timezone,
        "slots": shown,
        "clockChanges": changes,
        "warnings": warnings,
    }


def _slots(schedule: Schedule, job_id: JobId, from_us: int, count: int, zones: Zones) -> list[int]:
    found: list[int] = []
    after_us = from_us - 1
    while len(found) < count:
        slot_us = next_slot(schedule, job_id, after_us, zones)
        if slot_us is None:
            break
        found.append(slot_us)
        after_us = slot_us
    return found


def _instant(text: str, zone: str, zones: ZoneTable) -> int:
    """An instant, or a date or local time in the schedule's zone."""
    try:
        if has_offset(text):
            return parse_instant(text)
        local = text if "T" in text else f"{text}T00:00"
        return local_instant(local, Schedule(timezone=zone), zones)
    except ValueError as error:
        raise Refused([Fault(pointer="/from", detail=f"{text!r} {error}")]) from error
