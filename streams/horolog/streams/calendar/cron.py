"""Cron expressions: one normal text, its six fields, and the concrete text of a job.

`normalise` is what everyone stores and shows. `read` gives the fields or the problem. `text_for`
replaces `H` by the job's own values and writes numbers for names, so that jobs with the same
times share one text, and with it one evaluation.
"""

import functools
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from horolog.schemas.records import JobId
from horolog.streams.calendar.grammar import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    Field,
    Hashed,
    Part,
    parse_field,
    resolve,
    text_of,
)
from horolog.streams.calendar.limits import CRON_CHARS_MAX, PARSED_EXPRESSIONS_MAX
from horolog.streams.calendar.problems import BadField, Problem

WORDS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Every word there is, in Vixie's meaning."""

_PARTS: Final = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
_FIVE: Final = 5
_SECOND_DEFAULT: Final = "0"
_BLANKS = re.compile(r"[ \t\r\n]+")
_ZONE_PREFIX = re.compile(r"(CRON_TZ|TZ)\s*=\s*(\S*)\s*(.*)", re.IGNORECASE)
_LAST_OF_OTHER_SPELLING = re.compile(r"L([0-7])")


class Cron(NamedTuple):
    """The six fields of an expression."""

    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def elapsed(self) -> bool:
        """Whether slots follow elapsed time, exempt from the policies for clock changes.

        Debian's rule: the text of the minute or hour field begins with a star.
        """
        return self.minute.star or self.hour.star

    @property
    def hashed(self) -> bool:
        """Whether an `H` stands in it, so that its slots depend on the job."""
        return any(isinstance(term, Hashed) for field in self for term in field.terms)


class Reading(NamedTuple):
    """An expression as read.

    parts: its concrete text in pieces; between them stands each `H` with the field it is in.
    """

    cron: Cron
    parts: tuple["str | tuple[Part, Hashed]", ...]
    elapsed: bool


class ConcreteCron(NamedTuple):
    """Six fields, second first, without names, wrapping ranges or `H`.

    elapsed: see `Cron.elapsed`.
    """

    text: str
    elapsed: bool


def normalise(expr: str) -> str:
    """The one text of an expression: single blanks, upper case, words and `?` written out.

    Total: of a text that is no expression it changes the blanks at most. Idempotent.
    """
    text = _BLANKS.sub(" ", expr).strip(" ")
    if text.startswith("@"):
        return WORDS.get(text.lower(), text)
    if not text.isascii() or _ZONE_PREFIX.match(text):
        return text
    fields = text.upper().split(" ")
    if len(fields) != _FIVE:
        return text
    fields[2] = "*" if fields[2] == "?" else fields[2]
    fields[4] = "*" if fields[4] == "?" else fields[4]
    fields[4] = ",".join(
        _LAST_OF_OTHER_SPELLING.sub(r"\1L", term) if len(term) == len("L5") else term
        for term in fields[4].split(",")
    )
    return " ".join(fields)


@functools.lru_cache(maxsize=PARSED_EXPRESSIONS_MAX)
def read(cron: str, second: str | None) -> Reading | Problem:
    """Read an expression in any spelling; the first problem if it cannot be."""
    problem = _shape_problem(cron) or _length_problem("second", second or "")
    if problem is not None:
        return problem
    second_text = _SECOND_DEFAULT if second is None else second.strip(" \t").upper()
    texts = [second_text, *normalise(cron).split(" ")]
    fields: list[Field] = []
    for part, text in zip(_PARTS, texts, strict=True):
        try:
            fields.append(parse_field(part, text))
        except BadField as bad:
            return Problem(
                field="second" if part is SECOND else "cron",
                value=bad.value or text,
                detail=f'{bad.part}: "{bad.value}" {bad.detail}',
                hint=bad.hint,
            )
    parsed = Cron(*fields)
    return Reading(parsed, tuple(_parts(parsed)), parsed.elapsed)


def read_valid(cron: str, second: str | None) -> Reading:
    """Read an expression that `check` has accepted; anything else is a bug of the caller."""
    reading = read(cron, second)
    assert isinstance(reading, Reading), f"schedule was not checked: {reading.detail}"
    return reading


def concrete(reading: Reading, job_id: JobId) -> ConcreteCron:
    """The expression as it is for one job."""
    texts = (
        part if isinstance(part, str) else text_of(part[0], resolve(*part, job_id))
        for part in reading.parts
    )
    return ConcreteCron("".join(texts), reading.elapsed)


def resolved(cron: Cron, job_id: JobId) -> Cron:
    """The fields with the job's own values for each `H`."""
    return Cron(*(_resolved_field(field, job_id) for field in cron))


def _resolved_field(field: Field, job_id: JobId) -> Field:
    terms = tuple(
        resolve(field.part, term, job_id) if isinstance(term, Hashed) else term
        for term in field.terms
    )
    return field._replace(terms=terms)


def _parts(cron: Cron) -> Iterator["str | tuple[Part, Hashed]"]:
    text = ""
    for field in cron:
        for i, term in enumerate(field.terms):
            text += "," if i else ""
            if isinstance(term, Hashed):
                yield text
                yield field.part, term
                text = ""
            else:
                text += text_of(field.part, term)
        text += " "
    yield text.removesuffix(" ")


def _shape_problem(cron: str) -> Problem | None:
    """What is wrong with the expression as a whole, before its fields are read."""
    text = _BLANKS.sub(" ", cron).strip(" ")
    if too_long := _length_problem("cron", cron):
        return too_long
    if not text.isascii():
        strange = next(char for char in text if not char.isascii())
        return Problem(
            field="cron",
            value=cron,
            detail=f"holds the character U+{ord(strange):04X}, which no cron expression has",
            hint="type it again with plain blanks, digits and stars",
        )
    if text.startswith("@"):
        return _word_problem(text)
    if match := _ZONE_PREFIX.match(text):
        return Problem(
            field="cron",
            value=cron,
            detail=f"names a time zone ({match[1]}={match[2]}) within the expression",
            hint=f'there is one place for it: timezone: {match[2]}, cron: "{match[3]}"',
        )
    count = len(text.split(" ")) if text else 0
    return None if count == _FIVE else _count_problem(cron, text, count)


def _length_problem(field: str, text: str) -> Problem | None:
    if len(text) <= CRON_CHARS_MAX:
        return None
    return Problem(
        field=field, value=f"{text[:40]}...", detail=f"is longer than {CRON_CHARS_MAX} characters"
    )


def _word_problem(text: str) -> Problem | None:
    word, _, rest = text.lower().partition(" ")
    if word in WORDS and not rest:
        return None
    known = "known words: " + " ".join(WORDS)
    if word == "@reboot":
        detail = "has no meaning here: jobs belong to a cluster, not to the start of one machine"
        hint = "trigger the job from what starts your machine"
    elif word == "@every":
        detail = "is an interval, not a cron expression"
        hint = f"use the field for it: every: {rest}" if rest else "use the field every"
    elif word == "@fortnightly":
        detail = "is not known: cron has no memory of the week before"
        hint = "use an interval, every: 14d, with the first slot as its start"
    elif word in WORDS:
        detail, hint = "has something after the word", f"write {word} alone"
    else:
        detail, hint = "is not known", known
    return Problem(field="cron", value=text, detail=f'word: "{text}" {detail}', hint=hint)


def _count_problem(cron: str, text: str, count: int) -> Problem:
    detail = f"has {count} fields; it takes 5: minute hour day-of-month month day-of-week"
    hint = ""
    if count == _FIVE + 1:
        first, _, rest = text.partition(" ")
        hint = (
            "seconds have a field of their own, since some tools put them first and some last: "
            f'second: "{first}", cron: "{rest}"'
        )
    elif count == _FIVE + 2:
        first, _, rest = text.partition(" ")
        five, _, year = rest.rpartition(" ")
        hint = (
            f'seconds have a field of their own and years are bounds: second: "{first}", '
            f'cron: "{five}", and start and end for the year {year}'
        )
    elif count == 0:
        hint = "leave cron out for a job that runs only when triggered"
    return Problem(field="cron", value=cron, detail=detail, hint=hint)
