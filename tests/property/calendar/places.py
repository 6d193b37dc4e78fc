"""The zones and schedules that the calendar is tried on."""

import os
from functools import cache

from horolog.streams.calendar import Zones
from horolog.streams.host.tzdata import read_zone

ZONES = (
    "Africa/Cairo",  # summer time on and off, at midnight
    "Africa/Casablanca",  # four changes a year, around Ramadan
    "America/Caracas",  # half an hour, twice in ten years
    "America/Havana",  # midnight comes twice
    "America/New_York",
    "America/Sao_Paulo",  # midnight does not exist
    "America/St_Johns",  # half-hour offset, changes at one minute past midnight
    "Antarctica/Troll",  # two hours at once
    "Asia/Beirut",  # midnight does not exist
    "Asia/Gaza",  # irregular
    "Asia/Kathmandu",  # +05:45
    "Asia/Kolkata",  # never changes
    "Asia/Pyongyang",  # half an hour, there and back
    "Asia/Tehran",  # half-hour offset, by another calendar
    "Australia/Lord_Howe",  # the clock moves by half an hour
    "Europe/Dublin",  # winter time is the exception
    "Europe/London",
    "Pacific/Apia",  # a whole day does not exist (2011)
    "Pacific/Chatham",  # +12:45
    "Pacific/Kwajalein",  # a whole day does not exist (1993)
)

HEAVY = os.environ.get("HOROLOG_TEST_CALENDAR") == "heavy"
"""All schedules on all minutes of all zones, about an hour, instead of a sample."""

EXAMPLES = 5_000 if HEAVY else 250


@cache
def zones() -> Zones:
    """The zones above, loaded."""
    loaded = Zones()
    for name in ZONES:
        loaded = loaded.load(name, [(0, read_zone(name))])
    return loaded
