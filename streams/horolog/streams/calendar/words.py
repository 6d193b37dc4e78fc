"""A schedule in plain words: cronsim's for what it knows, our own for the rest."""

from cronsim.explain import Day, Expression, Month, Weekday

from horolog.schemas.records import JobId, Schedule
from horolog.streams.calendar import cron
from horolog.streams.calendar.cron import Cron
from horolog.streams.calendar.grammar import (
    DAY,
    WEEKDAY,
    Field,
    Hashed,
    Nearest,
    text_of,
    values_named,
)
from horolog.streams.calendar.instants import duration_text, parse_at, utc_text
from horolog.streams.calendar.limits import US_PER_S

_EVERY_DAY = " every day"


def describe(schedule: Schedule, job_id: JobId | None = None) -> str:
    """One line that says when a checked schedule is due.

    job_id: the job, whose own values stand for each `H`; without it they stay open.
    """
    parts = [_core(schedule, job_id)]
    if schedule.start_us is not None:
        parts.append(f"from {utc_text(schedule.start_us // US_PER_S)}")
    if schedule.end_us is not None:
        parts.append(f"until {utc_text(schedule.end_us // US_PER_S)}")
    if schedule.jitter_us:
        parts.append(f"up to {duration_text(schedule.jitter_us)} later")
    return ", ".join(parts)


def _core(schedule: Schedule, job_id: JobId | None) -> str:
    if schedule.cron is not None:
        reading = cron.read_valid(schedule.cron, schedule.second)
        if reading.cron.hashed and job_id is None:
            return f"{_hashed(schedule.cron, reading.cron)}, {schedule.timezone}"
        return f"{_cron(reading.cron, job_id)}, {schedule.timezone}"
    if schedule.every_us is not None:
        return f"Every {duration_text(schedule.every_us)}"
    if schedule.at is not None:
        local = parse_at(schedule.at).offset_s is None
        return f"Once, at {schedule.at.strip()}" + (f", {schedule.timezone}" if local else "")
    return "Only when triggered"


def _cron(parsed: Cron, job_id: JobId | None) -> str:
    if parsed.hashed:
        assert job_id is not None
        return f"{_cron(cron.resolved(parsed, job_id), None)} (H: by the job's ID)"
    texts = [",".join(text_of(field.part, term) for term in field.terms) for field in parsed]
    if any(isinstance(term, Nearest) for term in parsed.day.terms):
        return _nearest(parsed, texts)
    if not parsed.day.star and not parsed.weekday.star and _all_days(parsed):
        texts[3] = texts[5] = "*"
    words = Expression(texts).explain()
    day, weekday = texts[3], texts[5]
    # cronsim joins the two day fields by "and" where either is enough, which reads as both.
    return words.replace(f"{Day(day)} and {Weekday(weekday)}", f"{Day(day)} or {Weekday(weekday)}")


def _all_days(parsed: Cron) -> bool:
    """Whether one of the day fields names every day, where either one is enough."""
    days = set(range(DAY.low, DAY.high + 1))
    weekdays = {weekday % WEEKDAY.cycle for weekday in values_named(parsed.weekday)}
    return values_named(parsed.day) >= days or len(weekdays) == WEEKDAY.cycle


def _nearest(parsed: Cron, texts: list[str]) -> str:
    time = Expression([*texts[:3], "*", "*", "*"]).explain().removesuffix(_EVERY_DAY)
    days = [term for term in parsed.day.terms if isinstance(term, Nearest)]
    others = [term for term in parsed.day.terms if not isinstance(term, Nearest)]
    date = [f"on the weekday nearest the {_ordinal(term.day)}" for term in days]
    if others:
        date.append(str(Day(",".join(text_of(parsed.day.part, term) for term in others))))
    words = f"{time} {' and '.join(date)}"
    if texts[5] != "*":
        both = parsed.day.star or parsed.weekday.star
        words += f" {'if it is' if both else 'or'} {Weekday(texts[5])}"
    return words if texts[4] == "*" else f"{words} {Month(texts[4])}"


def _ordinal(day: int) -> str:
    """1st, 2nd, 3rd, 4th ... 31st; cronsim's own writes the first nine as words."""
    if day % 100 in (11, 12, 13):
        return f"{day}th"
    return f"{day}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th') }"


def _hashed(expr: str, parsed: Cron) -> str:
    own = " and ".join(_own_value(field) for field in parsed if _ranges(field))
    return f"By {cron.normalise(expr)}, where each job has its own {own}, fixed by its ID"


def _own_value(field: Field) -> str:
    return f"{field.part.name} ({', '.join(_ranges(field))})"


def _ranges(field: Field) -> list[str]:
    return [f"{t.low} to {t.high}" for t in field.terms if isinstance(t, Hashed)]
