"""Waiting runs that are not due yet, by the instant at which they are.

Whole herds share an instant, so there is one list an instant and a heap of instants. A run that
leaves earlier stays in its list as a stale one, until its instant or the next sweep.
"""

import heapq
from typing import Final

from horolog.streams.dispatcher.entries import LATER, Entry

STALE_MOST: Final = 1_024


class Later:
    """Runs by when they may be released."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._groups: dict[int, list[Entry]] = {}
        self._instants: list[int] = []
        self.count = 0
        """Runs in the lists, stale ones included."""
        self._live = 0

    def put(self, entry: Entry) -> None:
        """A run waits until it is due. Cost: constant on average; the lists are swept when most in
        them is stale, else a job edited over and over would fill them.
        """
        entry.stage = LATER
        self._live += 1
        self.count += 1
        due_us = entry.state.not_before_us
        group = self._groups.get(due_us)
        if group is None:
            self._groups[due_us] = [entry]
            heapq.heappush(self._instants, due_us)
        else:
            group.append(entry)
        if self.count > 2 * self._live + STALE_MOST:
            self._sweep()

    def drop(self) -> None:
        """A run that waited has left; the caller moves it on."""
        self._live -= 1

    def due(self, now_us: int) -> list[Entry]:
        """Runs that have become due; they are no longer here."""
        due: list[Entry] = []
        while self._instants and self._instants[0] <= now_us:
            due_us = heapq.heappop(self._instants)
            group = self._groups.pop(due_us)
            self.count -= len(group)
            if len(group) == 1:
                # Cost: with jitter, nearly all are; what is below takes three times as long.
                if _is_live(group[0], due_us):
                    self._live -= 1
                    due += group
                continue
            # A run that left and came back for the same instant stands in the list twice.
            live = dict.fromkeys(entry for entry in group if _is_live(entry, due_us))
            self._live -= len(live)
            due += live
        return due

    def next_us(self) -> int | None:
        """When the next run becomes due, at the latest; None = nobody waits."""
        return self._instants[0] if self._instants else None

    def _sweep(self) -> None:
        groups: dict[int, list[Entry]] = {}
        for due_us, group in self._groups.items():
            live = dict.fromkeys(entry for entry in group if _is_live(entry, due_us))
            if live:
                groups[due_us] = list(live)
        self._groups = groups
        self._instants = sorted(groups)
        self.count = sum(len(group) for group in groups.values())


def _is_live(entry: Entry, due_us: int) -> bool:
    return entry.stage is LATER and entry.state.not_before_us == due_us
