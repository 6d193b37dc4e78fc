"""What the API asks of the history, whichever store answers.

Order of runs is (`at_us`, `run_id`); a page begins right after such a pair, given as a value, so a
row that appears, changes or vanishes meanwhile moves no other. Time ranges are half-open: `from`
inclusive, `to` exclusive. All methods may be called from any thread.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from horolog.projections.rows import JobRow, RunDetail, RunRow, SlotRow, TenantUse, VersionRow
from horolog.schemas.records import JobId, RunId, TenantId

T = TypeVar("T")
Place = tuple[int, str]
"""`at_us` and ID of the last row of a page."""


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Some rows in order, and where the next page begins."""

    rows: Sequence[T]
    after: Place | None
    """None: there are no more rows."""


class Queries(Protocol):
    """Reads on the projections."""

    def positions(self) -> Mapping[int, int]:
        """`seq` up to which each ledger partition is in the tables."""
        ...

    def job(self, job_id: JobId) -> JobRow | None:
        """A job, a deleted one included as long as it is remembered."""
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
        """Existing jobs in order of ID, those after `after`; None as tenant: of all."""
        ...

    def versions(self, job_id: JobId) -> Sequence[VersionRow]:
        """All versions of a job, newest first."""
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
        """Runs of a job; no statuses: all of them."""
        ...

    def run(self, run_id: RunId) -> RunDetail | None:
        """A run with its attempts."""
        ...

    def slots(self, job_id: JobId, from_us: int, to_us: int, limit: int) -> Sequence[SlotRow]:
        """What became of the slots of a range, oldest first; a skipped range that reaches into it
        is given whole.
        """
        ...

    def dead_letters(
        self, tenant: TenantId | None, *, after: Place | None, limit: int
    ) -> Page[RunRow]:
        """Dead runs, newest first; None as tenant: of all."""
        ...

    def tenants(self) -> Sequence[TenantId]:
        """Tenants that have or had jobs."""
        ...

    def tenant_use(self, tenant: TenantId) -> TenantUse:
        """What a tenant has and uses."""
        ...
