"""What is legal about a schedule and still may surprise its owner."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from horolog.schemas.records import Gap, JobId, OverlapHour, Schedule
from horolog.streams.calendar import cron, grammar
from horolog.streams.calendar.cron import Cron
from horolog.streams.calendar.grammar import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    Field,
    Hashed,
    NthWeekday,
    Part,
    Span,
    Star,
    Term,
)
from horolog.streams.calendar.instants import parse_at, utc_text
from horolog.streams.calendar.limits import (
    LINT_CHANGES_MAX,
    LINT_HORIZON_US,
    RARE_US,
    REACH_S,
    US_PER_S,
)
from horolog.streams.calendar.problems import Lint, LintWarning
from horolog.streams.calendar.slots import anchored, next_slot, resolve_at
from horolog.streams.calendar.walls import cron_walls
from horolog.streams.calendar.zones import ClockChange, Zones, clock_changes, local_text


def lint(schedule: Schedule, job_id: JobId, now_us: int, zones: Zones) -> tuple[LintWarning, ...]:
    """The warnings about a schedule that `check` has accepted."""
    schedule = anchored(schedule, now_us)
    warnings = list(_rarity(schedule, job_id, now_us, zones))
    if schedule.at is not None:
        warnings.extend(_moved(schedule, schedule.at, zones))
    if schedule.cron is not None:
        parsed = cron.read_valid(schedule.cron, schedule.second).cron
        for field in parsed:
            warnings.extend(_steps(field))
        warnings.extend(_days(parsed))
        warnings.extend(_clock(schedule, parsed, job_id, now_us, zones))
    return tuple(warnings)


def _rarity(schedule: Schedule, job_id: JobId, now_us: int, zones: Zones) -> Iterator[LintWarning]:
    field = _kind(schedule)
    if field is None:
        return
    slot = next_slot(schedule, job_id, now_us - 1, zones)
    if slot is None:
        ended = schedule.end_us is not None and schedule.end_us <= now_us
        yield LintWarning(
            kind=Lint.NEVER_AGAIN,
            field="end_us" if schedule.end_us is not None else field,
            detail="never fires again: "
            + ("its end has passed" if ended else "no slot lies ahead within its bounds"),
        )
    elif slot - now_us > RARE_US:
        yield LintWarning(
            kind=Lint.RARE,
            field=field,
            detail=f"does not fire for years: the next slot is {utc_text(slot // US_PER_S)}",
            instants_us=(slot,),
        )


def _kind(schedule: Schedule) -> str | None:
    if schedule.cron is not None:
        return "cron"
    if schedule.every_us is not None:
        return "every_us"
    return None if schedule.at is None else "at"


def _moved(schedule: Schedule, at: str, zones: Zones) -> Iterator[LintWarning]:
    """A local time that its zone shows twice or not at all."""
    wall, offset_s = parse_at(at)
    if offset_s is not None:
        return
    zone = schedule.timezone
    instant_us = resolve_at(schedule, zones)
    at_s = instant_us // US_PER_S
    local = local_text(zone, instant_us, zones)
    if at_s + zones.timeline(zone).offset_at(at_s) != wall:
        yield LintWarning(
            kind=Lint.MOVED,
            field="at",
            detail=f"does not exist in {zone}: the clock jumps over it; "
            f"it runs right after the jump, at {utc_text(at_s)} ({local})",
            instants_us=(instant_us,),
        )
        return
    reach_us = REACH_S * US_PER_S
    for change in clock_changes(zone, instant_us - reach_us, instant_us + reach_us, zones):
        low, high = _repeated(change)
        if low <= wall < high:
            yield LintWarning(
                kind=Lint.MOVED,
                field="at",
                detail=f"comes twice in {zone}; it runs once, at {utc_text(at_s)} ({local})",
                hint="give an offset to name the other one",
                instants_us=(instant_us,),
            )


class _Steps(NamedTuple):
    """A series of values by a step, and whether it runs to the end of the field."""

    low: int
    step: int
    to_end: bool


def _series(part: Part, term: Term) -> _Steps | None:
    match term:
        case Star():
            return _Steps(part.low, term.step, True)
        case Span():
            return _Steps(term.low, term.step, term.high - term.low + term.step >= part.cycle)
        case Hashed():
            return None if term.step is None else _Steps(term.low, term.step, term.low == part.low)
        case _:
            return None


def _steps(field: Field) -> Iterator[LintWarning]:
    """Steps that do not divide their field: cron has no memory, each field starts again."""
    part = field.part
    for term in field.terms:
        series = _series(part, term)
        if series is None or series.step == 1:
            continue
        name = "second" if part is SECOND else "cron"
        step = f"{part.name}: a step of {series.step}"
        if series.step >= part.cycle:
            yield LintWarning(
                kind=Lint.STEP_TOO_LARGE,
                field=name,
                detail=f"{step} never gets beyond its first value, {series.low}; "
                f"it does not mean every {series.step} of them",
                hint="for a true interval use every",
            )
        elif series.to_end and (part is DAY or part.cycle % series.step):
            cycle = "each month" if part is DAY else f"after {part.cycle}"
            yield LintWarning(
                kind=Lint.UNEVEN_STEPS,
                field=name,
                detail=f"{step} starts again {cycle}, so the last interval is shorter",
                hint="for even intervals use every",
            )


def _days(parsed: Cron) -> Iterator[LintWarning]:
    day, weekday = parsed.day, parsed.weekday
    if not day.star and not weekday.star:
        yield LintWarning(
            kind=Lint.EITHER_DAY,
            field="cron",
            detail="both day fields are restricted: either one is enough, as in every cron",
            hint="for the first Friday write FRI#1 in the day of week; for both at once begin "
            "one of the fields with a star",
        )
        return
    if any(isinstance(term, NthWeekday) and term.nth == grammar.NTH_MAX for term in weekday.terms):
        yield LintWarning(
            kind=Lint.SHORT_MONTHS,
            field="cron",
            detail="a fifth weekday is in four or five months of a year only",
            hint="for the last one of each month write L, as in FRIL",
        )
    earliest = _earliest_day(day)
    short = [name for name, days in _DAYS_OF_MONTH if days < earliest and _in(parsed.month, name)]
    if short and len(short) < sum(_in(parsed.month, name) for name, _ in _DAYS_OF_MONTH):
        yield LintWarning(
            kind=Lint.SHORT_MONTHS,
            field="cron",
            detail=f"day {earliest} is not in every month: none in {', '.join(short)}",
            hint="for the last day of each month write L",
        )


_DAYS_OF_MONTH = tuple(
    zip(grammar.MONTH_NAMES, (28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 30), strict=True)
)


def _earliest_day(day: Field) -> int:
    """The smallest day named; 1 if the field names days that every month has."""
    spans = [term for term in day.terms if isinstance(term, Span)]
    if len(spans) < len(day.terms):
        return 1
    return min(value for span in spans for value in grammar.values_of(DAY, span))


def _in(month: Field, name: str) -> bool:
    return MONTH.names[name] in grammar.values_named(month)


def _jumped(change: ClockChange) -> tuple[int, int]:
    """Wall times that a clock change leaves out; empty when the clock is moved back."""
    at_us, before_us, after_us = change
    return (at_us + before_us) // US_PER_S, (at_us + after_us) // US_PER_S


def _repeated(change: ClockChange) -> tuple[int, int]:
    """Wall times that a clock change shows again; empty when the clock is moved on."""
    low, high = _jumped(change)
    return high, low


def _clock(
    schedule: Schedule, parsed: Cron, job_id: JobId, now_us: int, zones: Zones
) -> Iterator[LintWarning]:
    """Slots that clock changes skip, shift or repeat in the next two years."""
    reading = cron.read_valid(schedule.cron or "", schedule.second)
    walls = cron_walls(cron.concrete(reading, job_id).text)
    from_us = max(now_us, now_us if schedule.start_us is None else schedule.start_us)
    to_us = now_us + LINT_HORIZON_US
    if schedule.end_us is not None:
        to_us = min(to_us, schedule.end_us - 1)
    changes = clock_changes(schedule.timezone, from_us, to_us, zones)
    if parsed.elapsed and len(grammar.values_named(parsed.hour)) == HOUR.cycle:
        # Every hour of the day: a clock change takes no real time away and adds none.
        return
    skipped = [change for change in changes if walls.count(*_jumped(change))]
    repeated = [change for change in changes if walls.count(*_repeated(change))]
    zone = schedule.timezone
    if skipped:
        yield _warning(Lint.CLOCK_SKIPS, _skip_text(schedule, parsed), skipped, zone, zones)
    if repeated:
        yield _warning(Lint.CLOCK_REPEATS, _repeat_text(schedule, parsed), repeated, zone, zones)


_ELAPSED_SKIPS = (
    "slots in an hour that the clock jumps over are left out, since the {} begins with a star "
    "and slots follow elapsed time"
)
_ELAPSED_REPEATS = (
    "slots in an hour that comes twice run twice, since the {} begins with a star and slots "
    "follow elapsed time"
)
_WITHOUT_STAR = "for a policy write it without a star, as 0-59 or 0-23"


def _skip_text(schedule: Schedule, parsed: Cron) -> tuple[str, str]:
    if parsed.elapsed:
        return _ELAPSED_SKIPS.format(_starred(parsed)), _WITHOUT_STAR
    if schedule.gap is Gap.SHIFT:
        return "slots that the clock jumps over run once, right after the jump", "gap: skip"
    return "slots that the clock jumps over are left out", "gap: shift"


def _repeat_text(schedule: Schedule, parsed: Cron) -> tuple[str, str]:
    if parsed.elapsed:
        return _ELAPSED_REPEATS.format(_starred(parsed)), _WITHOUT_STAR
    if schedule.overlap_hour is OverlapHour.BOTH:
        return "slots in an hour that comes twice run twice", "overlapHour: first"
    which = schedule.overlap_hour.value
    return f"slots in an hour that comes twice run once, the {which} time", "overlapHour: both"


def _starred(parsed: Cron) -> str:
    return MINUTE.name if parsed.minute.star else HOUR.name


def _warning(
    kind: Lint, text: tuple[str, str], changes: list[ClockChange], zone: str, zones: Zones
) -> LintWarning:
    instants = tuple(change.at_us for change in islice(changes, LINT_CHANGES_MAX))
    when = ", ".join(local_text(zone, at_us, zones) for at_us in instants)
    return LintWarning(
        kind=kind,
        field="cron",
        detail=f"{text[0]}: {when}",
        hint=text[1],
        instants_us=instants,
    )
