"""What a projection knows of a ledger partition beside the event at hand.

Small, bounded by what is open, and derivable again: what is not in memory is asked of the store.
"""

from collections.abc import Callable
from typing import Final

from horolog.projections.schema import MANUAL_RUNS, TENANT_USE
from horolog.projections.tables import Key, Row, Table, Value
from horolog.schemas.ids import slot_of
from horolog.schemas.records import Event, RunId, TenantId

RETENTION_US: Final = 90 * 86_400_000_000
"""Default of the setting `retention.history`."""

Lookup = Callable[[Table, Key], Row | None]
"""A row of the store, deleted or expired ones included."""


class Use:
    """Counts of one tenant in one partition."""

    __slots__ = ("day_started", "day_us", "dead", "jobs", "running", "seq", "waiting")

    def __init__(self, row: Row | None) -> None:
        """As stored, or all zero."""
        row = {} if row is None else row
        self.seq = _count(row, "seq")
        """Of the last event that is counted; those up to it are not counted again."""
        self.jobs = _count(row, "jobs")
        self.waiting = _count(row, "waiting")
        self.running = _count(row, "running")
        self.dead = _count(row, "dead")
        self.day_us = _count(row, "day_us")
        """Begin of the day, UTC, that `day_started` counts."""
        self.day_started = _count(row, "day_started")

    def values(self) -> tuple[Value, ...]:
        """In the order of the table."""
        return (
            self.seq,
            self.jobs,
            self.waiting,
            self.running,
            self.dead,
            self.day_us,
            self.day_started,
        )


class Known:
    """One partition's. Used by one thread."""

    def __init__(self, partition: int, lookup: Lookup, retention_us: int = RETENTION_US) -> None:
        """`retention_us`: how long after its end a run is kept."""
        self.partition = partition
        self.retention_us = retention_us
        self._lookup = lookup
        self._places: dict[RunId, int] = {}
        self._uses: dict[TenantId, Use] = {}

    def expires_us(self, event: Event) -> int:
        """End of a row that `event` ended."""
        return event.at_us + self.retention_us

    def begins(self, run_id: RunId, at_us: int) -> None:
        """A run has its place in the history: its slot, or when it was asked for."""
        self._places[run_id] = at_us

    def ends(self, run_id: RunId) -> None:
        """Nothing more is expected of a run."""
        self._places.pop(run_id, None)

    @property
    def open_count(self) -> int:
        """Runs whose place is remembered."""
        return len(self._places)

    def place(self, run_id: RunId) -> int | None:
        """`at_us` of a run; None: a manual run whose row has expired meanwhile."""
        at_us = self._places.get(run_id)
        if at_us is None:
            at_us = slot_of(run_id)
            if at_us is None:
                row = self._lookup(MANUAL_RUNS, (run_id,))
                at_us = None if row is None else _count(row, "at_us")
            if at_us is not None:
                self._places[run_id] = at_us
        return at_us

    def use(self, tenant: TenantId) -> Use:
        """Counts of a tenant, to be counted on."""
        use = self._uses.get(tenant)
        if use is None:
            use = self._uses[tenant] = Use(self._lookup(TENANT_USE, (tenant, self.partition)))
        return use


def _count(row: Row, column: str) -> int:
    value = row.get(column, 0)
    assert isinstance(value, int), f"{column} is {value!r}"
    return value
