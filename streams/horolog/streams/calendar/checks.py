"""Whether a schedule may be stored: every problem, each with what would be right."""

import difflib
import itertools

from horolog.schemas.records import Gap, JobId, Schedule
from horolog.streams.calendar import cron
from horolog.streams.calendar.instants import duration_text, parse_at, utc_text
from horolog.streams.calendar.limits import (
    EVERY_US_MAX,
    EVERY_US_MIN,
    INTERVAL_SAMPLE_SLOTS,
    NEAR_MATCHES_MAX,
    US_PER_S,
)
from horolog.streams.calendar.problems import Problem
from horolog.streams.calendar.slots import next_slot, resolve_at
from horolog.streams.calendar.walls import cron_walls
from horolog.streams.calendar.zones import Zones, local_text


def check(schedule: Schedule, job_id: JobId, now_us: int, zones: Zones) -> tuple[Problem, ...]:
    """The problems of a schedule, none if it may be stored; bounded in time for any input.

    zones: must hold the schedule's zone if that exists; else the zone counts as unknown.
    """
    problems = [*_shape(schedule), *_bounds(schedule), *_zone(schedule, zones)]
    if schedule.jitter_us < 0:
        value = duration_text(schedule.jitter_us)
        problems.append(Problem(field="jitter_us", value=value, detail="is negative"))
    if schedule.cron is not None:
        reading = cron.read(schedule.cron, schedule.second)
        if isinstance(reading, Problem):
            problems.append(reading)
        elif not problems:
            problems.extend(_never(schedule, job_id))
    if schedule.every_us is not None:
        problems.extend(_every(schedule.every_us))
    if schedule.at is not None:
        problems.extend(_at(schedule, schedule.at, now_us, zones, readable=not problems))
    if not problems:
        problems.extend(_jitter(schedule, job_id, now_us))
    return tuple(problems)


def shortest_interval(schedule: Schedule, job_id: JobId, now_us: int) -> int | None:
    """The shortest time between two slots of a checked schedule, in µs; None if there are none.

    By the clock on the wall, as if it were never changed, over the next 200 slots.
    """
    if schedule.every_us is not None:
        return schedule.every_us
    if schedule.cron is None:
        return None
    reading = cron.read_valid(schedule.cron, schedule.second)
    walls = cron_walls(cron.concrete(reading, job_id).text)
    times: list[int] = []
    at: int | None = now_us // US_PER_S
    while at is not None and len(times) < INTERVAL_SAMPLE_SLOTS:
        at = walls.after(at)
        if at is not None:
            times.append(at)
    return min((b - a for a, b in itertools.pairwise(times)), default=0) * US_PER_S or None


def near_matches(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names that a user who wrote `name` may have meant, best first."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    wanted = name.strip().lower().replace(" ", "_")
    found = difflib.get_close_matches(wanted, by_lower, n=NEAR_MATCHES_MAX)
    # A city alone is the commonest mistake: "Berlin" for "Europe/Berlin".
    cities = [key for key in by_lower if key.rpartition("/")[2] == wanted]
    return tuple(by_lower[key] for key in dict.fromkeys([*cities, *found]))[:NEAR_MATCHES_MAX]


def _shape(schedule: Schedule) -> list[Problem]:
    """Fields that contradict one another."""
    kinds = {"cron": schedule.cron, "every_us": schedule.every_us, "at": schedule.at}
    given = [kind for kind, value in kinds.items() if value is not None]
    problems = [
        Problem(
            field=kind,
            value=str(kinds[kind]),
            detail=f"contradicts {given[0]}: a schedule is one of cron, every and at",
            hint="drop one of them, or make two jobs",
        )
        for kind in given[1:]
    ]
    if schedule.second is not None and schedule.cron is None:
        problems.append(
            Problem(
                field="second",
                value=schedule.second,
                detail="is the second of a cron expression, and there is none",
            )
        )
    if schedule.anchor_us is not None and schedule.every_us is None:
        problems.append(
            Problem(
                field="anchor_us",
                value=str(schedule.anchor_us),
                detail="is the origin of an interval, and there is none",
            )
        )
    return problems


def _bounds(schedule: Schedule) -> list[Problem]:
    start_us, end_us = schedule.start_us, schedule.end_us
    if start_us is None or end_us is None or start_us < end_us:
        return []
    return [
        Problem(
            field="end_us",
            value=utc_text(end_us // US_PER_S),
            detail=f"is not after the start, {utc_text(start_us // US_PER_S)}",
            hint="slots lie from start, inclusive, to end, exclusive",
        )
    ]


def _zone(schedule: Schedule, zones: Zones) -> list[Problem]:
    zone = schedule.timezone
    if zone in zones:
        return []
    near = near_matches(zone, zones.names())
    return [
        Problem(
            field="timezone",
            value=zone,
            detail="is no time zone of the tz database",
            hint=f"did you mean {' or '.join(near)}?" if near else "for example Europe/Paris",
        )
    ]


def _never(schedule: Schedule, job_id: JobId) -> list[Problem]:
    assert schedule.cron is not None
    reading = cron.read_valid(schedule.cron, schedule.second)
    walls = cron_walls(cron.concrete(reading, job_id).text)
    if walls.after(0) is not None:
        return []
    return [
        Problem(
            field="cron",
            value=schedule.cron,
            detail="never fires: no year has a day that its day and month fields name",
            hint="the last day of a month is L in the day of month",
        )
    ]


def _every(every_us: int) -> list[Problem]:
    value = duration_text(every_us)
    if every_us < EVERY_US_MIN:
        detail, hint = "is shorter than a second", "1s or more"
    elif every_us % US_PER_S:
        detail = "is not a whole number of seconds"
        hint = duration_text(every_us - every_us % US_PER_S)
    elif every_us > EVERY_US_MAX:
        detail, hint = "is longer than 20 years", ""
    else:
        return []
    return [Problem(field="every_us", value=value, detail=detail, hint=hint)]


def _at(schedule: Schedule, at: str, now_us: int, zones: Zones, *, readable: bool) -> list[Problem]:
    try:
        wall, offset_s = parse_at(at)
    except ValueError as error:
        return [Problem(field="at", value=at, detail=str(error))]
    if not readable:
        return []
    instant_us = resolve_at(schedule, zones)
    resolved = utc_text(instant_us // US_PER_S)
    if instant_us < now_us:
        return [
            Problem(
                field="at",
                value=at,
                detail=f"is in the past: {resolved}, and it is {utc_text(now_us // US_PER_S)}",
                hint="to run it now, trigger it",
            )
        ]
    if next_slot(schedule, JobId(""), instant_us - 1, zones) is None:
        return [Problem(field="at", value=at, detail=f"is outside of start and end: {resolved}")]
    moved = offset_s is None and not _shows(schedule, wall, instant_us, zones)
    if moved and schedule.gap is Gap.SKIP:
        local = local_text(schedule.timezone, instant_us, zones)
        return [
            Problem(
                field="at",
                value=at,
                detail=f"does not exist in {schedule.timezone}: the clock jumps over it, and "
                "gap is skip, so the job would never run",
                hint=f"set gap to shift to run it right after the jump, at {resolved} ({local})",
            )
        ]
    return []


def _shows(schedule: Schedule, wall: int, instant_us: int, zones: Zones) -> bool:
    """Whether the clocks of the schedule's zone show that wall time at an instant."""
    at_s = instant_us // US_PER_S
    return at_s + zones.timeline(schedule.timezone).offset_at(at_s) == wall


def _jitter(schedule: Schedule, job_id: JobId, now_us: int) -> list[Problem]:
    jitter_us = schedule.jitter_us
    if jitter_us == 0:
        return []
    shortest_us = shortest_interval(schedule, job_id, now_us)
    if shortest_us is None or jitter_us < shortest_us:
        return []
    return [
        Problem(
            field="jitter_us",
            value=duration_text(jitter_us),
            detail="is not shorter than the shortest time between two slots, "
            f"{duration_text(shortest_us)}",
            hint=f"shorter than {duration_text(shortest_us)}",
        )
    ]
