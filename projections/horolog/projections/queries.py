"""What the API asks of the history, whichever store answers.

Order of runs is (`at_us`, `run_id`); a page begins right after such a pair, given as a value, so a
row that appears, changes or vanishes meanwhile moves no other. Time ranges are half-open: `from`
inclusive, `to` exclusive. Each answer is of one instant. All methods may be called from any thread
and raise Unavailable.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from horolog.projections.rows import JobRow, RunDetail, RunRow, SlotRow, TenantUse, VersionRow
from horolog.schemas.records import JobId, RunId, TenantId

T = TypeVar("T")
Place = tuple[int, str]
"""`at_us` and ID of the last row of a page."""

ROWS_MAX: Final = 1_000
"""Of one answer; a larger limit is read as this."""


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Some rows in order, and where the next page begins."""

    rows: Sequence[T]
    after: Place | None
    """None: there are no more rows."""
    as_of: Mapping[int, int] = {}
    """Position of the read: `seq` by ledger partition."""


class Queries(Protocol):
    """Reads on the projections."""

    def positions(self) -> Mapping[int, int]:
        """`seq` up to which each ledger partition is in the tables."""
        ...

    def job(self, job_id: JobId) -> JobRow | None:
        """A job, a deleted one included as long as its history is kept."""
        ...

    def jobs(
        self,
        tenant: TenantId | None,
        *,
        labels: Mapping[str, str],
        pool: str | None,
        paused: bool | None,
        text: str | None,
        after: str | None,
        limit: int,
    ) -> Sequence[JobRow]:
        """Existing jobs in order of tenant and ID, those after the job `after`; None as tenant: of
        all. `labels`: all of them must be there. `text`: in name, description, labels, owner or
        target, whatever the case.
        """
        ...

    def versions(self, job_id: JobId) -> Sequence[VersionRow]:
        """Definitions that a job had, newest first."""
        ...

    def runs(
        self,
        job_id: JobId,
        *,
        statuses: Collection[str],
        from_us: int | None,
        to_us: int | None,
        after: Place | None,
        limit: int,
        newest_first: bool = True,
    ) -> Page[RunRow]:
        """Runs of a job; no statuses: all of them. `newest_first=False` is the exact reverse."""
        ...

    def run(self, run_id: RunId) -> RunDetail | None:
        """A run with its attempts; of a manual run whose key was used again later, the last."""
        ...

    def slots(
        self,
        job_id: JobId,
        from_us: int,
        to_us: int,
        limit: int,
        after: Place | None = None,
    ) -> Sequence[SlotRow]:
        """What became of the slots of a range, oldest first; a skipped range that reaches into it
        is given whole, at its upper end. `after`: `slot_place` of the last row seen.
        """
        ...

    def dead_letters(
        self, tenant: TenantId | None, *, after: Place | None, limit: int
    ) -> Page[RunRow]:
        """Dead runs, newest first; None as tenant: of all."""
        ...

    def tenants(self) -> Sequence[TenantId]:
        """Tenants that have or had jobs, in order."""
        ...

    def tenant_use(self, tenant: TenantId) -> TenantUse:
        """What a tenant has and uses; all zero for one that is not known."""
        ...


def slot_place(row: SlotRow) -> Place:
    """Where a row stands in the order of slots."""
    return row.to_us, row.run_id or f" {row.outcome} {row.after_us:020}"


def page(rows: Sequence[RunRow], limit: int, as_of: Mapping[int, int]) -> Page[RunRow]:
    """A page of the rows found, of which one beyond the limit says that there are more."""
    kept = rows[:limit]
    after = (kept[-1].at_us, kept[-1].run_id) if len(rows) > limit else None
    return Page(rows=kept, after=after, as_of=as_of)
