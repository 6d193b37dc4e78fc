"""The zones that the API computes with, loaded from the tzdata package as they are named."""

import threading
from typing import Final

from horolog.schemas.errors import InvalidInput
from horolog.streams.calendar import Zones
from horolog.streams.host.tzdata import read_zone

_SINCE_EVER_US: Final = 0


class ZoneTable:
    """Grows with the zones asked for, at most the ~600 of the package; safe from any thread.

    A zone that does not exist is not an error here: it stays absent, and `check` refuses it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._zones = Zones()

    def with_zone(self, name: str) -> Zones:
        """All zones loaded so far, this one among them if it exists."""
        zones = self._zones
        if name in zones:
            return zones
        try:
            rules = read_zone(name)
        except InvalidInput:
            return zones
        with self._lock:
            self._zones = self._zones.load(name, [(_SINCE_EVER_US, rules)])
            return self._zones
