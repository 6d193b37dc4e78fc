"""Bounds of the calendar: on what it accepts, how far it looks, and how much it remembers."""

from typing import Final

US_PER_S: Final = 1_000_000
S_PER_MINUTE: Final = 60
S_PER_HOUR: Final = 3_600
S_PER_DAY: Final = 86_400
DAYS_PER_YEAR: Final = 365

CRON_CHARS_MAX: Final = 1_024
"""Longest expression read; a list of all 60 minutes is 170 characters."""

NUMBER_DIGITS_MAX: Final = 4
"""Longest number in a field; keeps a hostile one from becoming a huge integer."""

EVERY_US_MIN: Final = US_PER_S
EVERY_US_MAX: Final = 20 * DAYS_PER_YEAR * S_PER_DAY * US_PER_S

EARLIEST_S: Final = -5_364_662_400
"""1800-01-01T00:00:00Z, before any zone had rules. No slot is earlier."""

LATEST_S: Final = 16_725_225_600
"""2500-01-01T00:00:00Z. No slot is at or after it."""

COVERED_UNTIL_S: Final = (2_524_608_000, 4_102_444_800, 7_258_118_400, LATEST_S)
"""2050, 2100, 2200, 2500: how far a zone's clock changes are worked out, step by step on demand.

Cost: about 5 ms for a zone with summer time, once, and 10 µs for each further year.
"""

REACH_S: Final = 2 * S_PER_DAY
"""Two instants that show the same local time are never further apart: the largest jump on record
is 24 h (Samoa 2011, Kwajalein 1993)."""

NEAREST_YEARS_MAX: Final = 40
"""How far a `W` day is searched for. A day of a month falls on a given weekday at least once in
12 years, a 29 February once in 40 (across 2100, 2200, 2300); cronsim's own bound is 50 years."""

NEAREST_MONTHS_KEPT_MAX: Final = 4_096

PARSED_EXPRESSIONS_MAX: Final = 16_384
PARSED_INSTANTS_MAX: Final = 4_096
WALLS_MAX: Final = 4_096
"""Expressions kept ready to evaluate; about 10 KB each."""

LINES_MAX: Final = 65_536
"""(expression, zone, policies) whose latest slots are remembered; about 1 KB each."""

ROWS_MAX: Final = 4_096
"""(zone, policies) cut into pieces; about 50 KB for a zone with summer time."""

SPANS_PER_LINE_MAX: Final = 16
"""Intervals between two slots that a line remembers."""

TIMELINES_MAX: Final = 2_048
"""Zones kept with their clock changes; the tz database has about 600 names."""

INTERVAL_SAMPLE_SLOTS: Final = 200
"""Slots looked at to find the shortest interval of an expression."""

LINT_HORIZON_US: Final = 2 * DAYS_PER_YEAR * S_PER_DAY * US_PER_S
RARE_US: Final = 5 * DAYS_PER_YEAR * S_PER_DAY * US_PER_S
"""A next slot further away than this is worth a warning."""

LINT_CHANGES_MAX: Final = 8
"""Clock changes named one by one by the lint; the rest are the same again next year."""

NEAR_MATCHES_MAX: Final = 3
