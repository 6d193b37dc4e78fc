"""What an audit found, and how it is collected."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from horolog.schemas.records import Event, JobId, RunId
from horolog.streams.audit.rules import Rule

LISTED_MAX: Final = 1_000
"""So many findings of a kind are listed; all are counted."""


class Unexplained(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that should have an outcome and has none."""

    partition: int
    job_id: JobId
    slot_us: int


class Doubled(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that has a second outcome."""

    partition: int
    job_id: JobId
    slot_us: int
    outcome: str
    """The second one: `run`, `cancelled` or the reason for which it was skipped."""
    seq: int
    """Event that gave it."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """An event that breaks a rule."""

    partition: int
    seq: int
    at_us: int
    rule: str
    job_id: JobId | None
    run_id: RunId | None
    detail: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result. `slots_count` is the sum of the outcomes, of what waits and of what is
    unexplained; slots of backfills and manual runs are no part of it.
    """

    log_id: str
    partitions_count: int
    events_count: int
    jobs_count: int
    """Jobs created."""
    starts_count: int
    """Attempts started, of all runs."""
    slots_count: int
    outcomes: Mapping[str, int]
    """Slots by outcome: `run`, `cancelled` before its start, or the reason of a skip."""
    waiting_count: int
    """Slots that may still be undecided: planned, or in a catch-up under way."""
    proven_to_us: int
    """Each slot up to here has its outcome, or is listed as unexplained, or may wait."""
    unexplained_count: int
    doubled_count: int
    violations_count: int
    unexplained: tuple[Unexplained, ...]
    doubled: tuple[Doubled, ...]
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not (self.unexplained_count or self.doubled_count or self.violations_count)


class Findings:
    """Collects; keeps what lies in the window [from, to) that was asked for."""

    def __init__(self, from_us: int | None, to_us: int | None) -> None:
        self._from_us = from_us
        self._to_us = to_us
        self.outcomes: Counter[str] = Counter()
        self.waiting_count = 0
        self.unexplained: list[Unexplained] = []
        self.unexplained_count = 0
        self.doubled: list[Doubled] = []
        self.doubled_count = 0
        self.violations: list[Violation] = []
        self.violations_count = 0

    def holds(self, at_us: int) -> bool:
        """Whether an instant lies in the window."""
        return (self._from_us is None or at_us >= self._from_us) and (
            self._to_us is None or at_us < self._to_us
        )

    def clip(self, after_us: int, to_us: int) -> tuple[int, int]:
        """The part of (after, to] in the window; empty if the first is not below the second."""
        if self._from_us is not None:
            after_us = max(after_us, self._from_us - 1)
        if self._to_us is not None:
            to_us = min(to_us, self._to_us - 1)
        return after_us, to_us

    def outcome(self, outcome: str, slot_us: int) -> None:
        """A slot has its outcome."""
        if self.holds(slot_us):
            self.outcomes[outcome] += 1

    def double(self, found: Doubled) -> None:
        """A slot has a second outcome."""
        if self.holds(found.slot_us):
            self.doubled_count += 1
            if len(self.doubled) < LISTED_MAX:
                self.doubled.append(found)

    def missing(self, slots: Iterable[Unexplained], count: int) -> None:
        """So many slots of the window have none; as many of them are looked up as are listed."""
        self.unexplained_count += count
        for slot in slots:
            if len(self.unexplained) >= LISTED_MAX:
                return
            self.unexplained.append(slot)

    def violation(self, found: Violation) -> None:
        """A rule is broken."""
        if self.holds(found.at_us):
            self.violations_count += 1
            if len(self.violations) < LISTED_MAX:
                self.violations.append(found)

    def broken(self, rule: Rule, partition: int, event: Event, detail: str) -> None:
        """An event breaks a rule."""
        self.violation(
            Violation(
                partition=partition,
                seq=event.seq,
                at_us=event.at_us,
                rule=rule.name,
                job_id=getattr(event, "job_id", None),
                run_id=getattr(event, "run_id", None),
                detail=detail,
            )
        )
