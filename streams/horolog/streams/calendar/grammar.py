"""One field of a cron expression: what may stand in it, and what it means.

Vixie's grammar: a comma list of `*`, `a`, `a-b`, each with an optional `/step`; names for months
and weekdays. Beyond it, each chosen once and written down in docs/time.md:

    a/step      from a to the end of the field by step (Vixie drops the step)
    a-b, a > b  wraps around the end of the field (Vixie accepts it and never runs)
    L  LW  15W  last day, last weekday, weekday nearest the 15th   (day of month)
    5L FRIL     last Friday of the month; 5#2 FRI#2 the second      (day of week)
    H H/n H(a-b) H(a-b)/n   a value fixed by the job's ID
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, assert_never

from horolog.schemas.records import JobId
from horolog.streams.calendar.jitter import share_of
from horolog.streams.calendar.limits import NUMBER_DIGITS_MAX
from horolog.streams.calendar.problems import BadField

MONTH_NAMES: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                      "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")  # fmt: skip
WEEKDAY_NAMES: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
SUNDAY_AS_SEVEN: Final = 7
NTH_MAX: Final = 5


class Part(NamedTuple):
    """One of the six fields and the values it takes.

    cycle: how many values follow one another before the field starts again.
    hash_high: largest value `H` stands for; 28 for days, so that every month has it.
    """

    name: str
    low: int
    high: int
    cycle: int
    hash_high: int
    names: Mapping[str, int]


SECOND: Final = Part("second", 0, 59, 60, 59, {})
MINUTE: Final = Part("minute", 0, 59, 60, 59, {})
HOUR: Final = Part("hour", 0, 23, 24, 23, {})
DAY: Final = Part("day of month", 1, 31, 31, 28, {})
MONTH: Final = Part("month", 1, 12, 12, 12, {n: i + 1 for i, n in enumerate(MONTH_NAMES)})
WEEKDAY: Final = Part("day of week", 0, 7, 7, 6, {n: i for i, n in enumerate(WEEKDAY_NAMES)})


class Star(NamedTuple):
    """`*` or `*/step`."""

    step: int


class Span(NamedTuple):
    """`a`, `a-b`, `a-b/step`, `a/step`; wraps around the end of the field when low > high."""

    low: int
    high: int
    step: int


class LastDay(NamedTuple):
    """`L`: the last day of the month."""


class LastWeekday(NamedTuple):
    """`LW`: the last day of the month from Monday to Friday."""


class Nearest(NamedTuple):
    """`15W`: the day from Monday to Friday nearest the 15th, within the month."""

    day: int


class NthWeekday(NamedTuple):
    """`5#2`: the second Friday of the month."""

    weekday: int
    nth: int


class LastOf(NamedTuple):
    """`5L`: the last Friday of the month."""

    weekday: int


class Hashed(NamedTuple):
    """`H`: a value, or with a step the start of a series, fixed by the job's ID."""

    low: int
    high: int
    step: int | None


Term = Star | Span | LastDay | LastWeekday | Nearest | NthWeekday | LastOf | Hashed


class Field(NamedTuple):
    """A field as read: its terms in order, and whether its text begins with a star."""

    part: Part
    terms: tuple[Term, ...]
    star: bool


_HASHED = re.compile(r"H(?:\(([0-9]+)-([0-9]+)\))?(?:/([0-9]+))?")
_NEAREST = re.compile(r"([0-9]+)W")


def parse_field(part: Part, text: str) -> Field:
    """Read one field, upper case and without blanks; raises BadField."""
    terms = tuple(_parse_term(part, term) for term in text.split(","))
    return Field(part, terms, text.startswith("*"))


def _parse_term(part: Part, text: str) -> Term:
    if text == "":
        raise BadField(part=part.name, value=text, detail="is an empty item", hint="drop the comma")
    if text.startswith("H"):
        return _parse_hashed(part, text)
    base, slash, step_text = text.partition("/")
    step = _step(part, text, step_text) if slash else 1
    if base == "*":
        return Star(step)
    special = _parse_special(part, base)
    if special is not None:
        if slash:
            raise BadField(part=part.name, value=text, detail="cannot have a step")
        return special
    low_text, dash, high_text = base.partition("-")
    low = _value(part, text, low_text)
    if not dash:
        return Span(low, part.high if slash else low, step)
    high = _value(part, text, high_text)
    if part is WEEKDAY and low == SUNDAY_AS_SEVEN and high != SUNDAY_AS_SEVEN:
        low = 0
    return Span(low, high, step)


def _parse_special(part: Part, base: str) -> Term | None:
    """`L`, `LW`, `15W` in the day of month; `5L`, `5#2` in the day of week."""
    if part is DAY:
        if base == "L":
            return LastDay()
        if base == "LW":
            return LastWeekday()
        if base.startswith("L-"):
            raise BadField(
                part=part.name, value=base, detail="is not supported: days before the last one"
            )
        if match := _NEAREST.fullmatch(base):
            return Nearest(_value(part, base, match[1]))
        if "W" in base:
            raise BadField(
                part=part.name,
                value=base,
                detail="is no nearest weekday: W follows one day, as in 15W, or L",
            )
    elif part is WEEKDAY:
        if base == "L":
            raise BadField(
                part=part.name,
                value=base,
                detail="does not say which last day",
                hint="write 5L or FRIL for the last Friday of the month, 6 or SAT for Saturdays",
            )
        if "#" in base:
            day, _, nth = base.partition("#")
            return NthWeekday(_value(part, base, day), _nth(base, nth))
        if base.endswith("L"):
            return LastOf(_value(part, base, base[:-1]))
    return None


def _parse_hashed(part: Part, text: str) -> Hashed:
    match = _HASHED.fullmatch(text)
    if match is None:
        raise BadField(
            part=part.name, value=text, detail="is no H term: H, H/n, H(a-b) or H(a-b)/n"
        )
    low_text, high_text, step_text = match.groups()
    low = part.low if low_text is None else _value(part, text, low_text)
    high = part.hash_high if high_text is None else _value(part, text, high_text)
    if low > high:
        raise BadField(part=part.name, value=text, detail="has a range that runs backwards")
    return Hashed(low, high, None if step_text is None else _step(part, text, step_text))


def _nth(base: str, text: str) -> int:
    nth = _number(text)
    if nth is None or not 1 <= nth <= NTH_MAX:
        raise BadField(
            part=WEEKDAY.name, value=base, detail=f"counts weeks of a month: #1 to #{NTH_MAX}"
        )
    return nth


def _step(part: Part, term: str, text: str) -> int:
    step = _number(text)
    if step is None or step == 0:
        raise BadField(part=part.name, value=term, detail="needs a step of 1 or more after the /")
    return step


def _value(part: Part, term: str, text: str) -> int:
    if text in part.names:
        return part.names[text]
    value = _number(text)
    if value is None or not part.low <= value <= part.high:
        names = " or ".join(f"{n} ..." for n in list(part.names)[:1])
        raise BadField(
            part=part.name,
            value=term,
            detail=f"is not in {part.low} to {part.high}" + (f" or {names}" if names else ""),
            hint=_value_hint(part, text),
        )
    return value


def _value_hint(part: Part, text: str) -> str:
    if len(text) > len(WEEKDAY_NAMES[0]) and text[:3] in part.names:
        return f"names have three letters: {text[:3]}"
    if "~" in text:
        return "for a time of its own that stays the same, write H or H(a-b)"
    if "?" in text:
        return "? may only stand alone, in the day of month or the day of week; * says the same"
    return ""


def _number(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX:
        return int(text)
    return None


def values_of(part: Part, span: Span) -> list[int]:
    """The values a span names, in the order of the clock; 7 in the day of week is Sunday."""
    low, high, step = span
    if low <= high:
        return list(range(low, high + 1, step))
    end = part.low + part.cycle
    return (list(range(low, end)) + list(range(part.low, high + 1)))[::step]


def values_named(field: Field) -> set[int]:
    """The plain values a field names: all that `H` may stand for, and none for L, W and #."""
    values: set[int] = set()
    for term in field.terms:
        match term:
            case Star():
                values.update(range(field.part.low, field.part.high + 1, term.step))
            case Span():
                values.update(values_of(field.part, term))
            case Hashed():
                values.update(range(term.low, term.high + 1))
            case _:
                pass
    return values


def resolve(part: Part, hashed: Hashed, job_id: JobId) -> Span:
    """What an `H` term stands for in this job."""
    low, high, step = hashed
    width = high - low + 1
    offset = share_of(job_id, f"H.{part.name}", width if step is None else min(step, width))
    value = low + offset
    return Span(value, value, 1) if step is None else Span(value, high, step)


def text_of(part: Part, term: Term) -> str:
    """A term in the one spelling that cronsim reads as we do; `15W` stays as it is."""
    match term:
        case Star():
            return "*" if term.step == 1 else f"*/{term.step}"
        case Span():
            return _span_text(part, term)
        case LastDay():
            return "L"
        case LastWeekday():
            return "LW"
        case Nearest():
            return f"{term.day}W"
        case NthWeekday():
            return f"{term.weekday}#{term.nth}"
        case LastOf():
            return f"{term.weekday}L"
        case Hashed():
            raise AssertionError("H is resolved before a term is written")
        case _:
            assert_never(term)


def _span_text(part: Part, span: Span) -> str:
    # cronsim refuses ranges that wrap and reads "5-5/15" as "5/15", so neither may reach it.
    values = values_of(part, span)
    if len(values) == 1:
        return str(values[0])
    if span.low > span.high:
        return ",".join(str(value) for value in sorted(values))
    return f"{span.low}-{span.high}" + ("" if span.step == 1 else f"/{span.step}")
