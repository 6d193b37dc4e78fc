"""When jobs are due: a schedule and an instant give slots, a pure function of its arguments.

    Schedule ── cron.read ──► fields ── H by job ID ──► concrete text ──┐
                                                                      cronsim, croniter (walls)
    zone's TZif rules ── Zones.load ──► segments ── policies ──► row ───┤
                                                                      lines: next, previous, count
    bounds, interval, one instant, jitter ── slots ◄────────────────────┘

An expression is evaluated on a clock that never changes (`walls`); what a zone's clock changes
do to it is ours (`lines`). No clock, file or environment is read: zones come as bytes
(`horolog.streams.host.tzdata` reads them) and `now` is an argument. docs/time.md is the user's
side of it.
"""

from horolog.streams.calendar.checks import check, near_matches, shortest_interval
from horolog.streams.calendar.cron import WORDS, normalise
from horolog.streams.calendar.instants import duration_text
from horolog.streams.calendar.jitter import jitter_of
from horolog.streams.calendar.lints import lint
from horolog.streams.calendar.problems import Lint, LintWarning, Problem
from horolog.streams.calendar.slots import (
    anchored,
    count_slots,
    next_midnight_after,
    next_slot,
    previous_slot,
    resolve_at,
    slots_between,
)
from horolog.streams.calendar.words import describe
from horolog.streams.calendar.zones import (
    ClockChange,
    UnknownZone,
    Zones,
    clock_changes,
    local_text,
)

__all__ = [
    "WORDS",
    "ClockChange",
    "Lint",
    "LintWarning",
    "Problem",
    "UnknownZone",
    "Zones",
    "anchored",
    "check",
    "clock_changes",
    "count_slots",
    "describe",
    "duration_text",
    "jitter_of",
    "lint",
    "local_text",
    "near_matches",
    "next_midnight_after",
    "next_slot",
    "normalise",
    "previous_slot",
    "resolve_at",
    "shortest_interval",
    "slots_between",
]
