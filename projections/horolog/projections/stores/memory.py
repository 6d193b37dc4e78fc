"""The tables in memory: what `replay --verify` folds into, and the model that tests hold stores to.

It answers queries by looking at every row, so that it is plainly right.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

from horolog.projections.queries import ROWS_MAX, Page, Place, page, slot_place
from horolog.projections.rows import (
    EXISTING,
    JobRow,
    RunDetail,
    RunRow,
    SlotRow,
    TenantUse,
    VersionRow,
    attempt_row,
    job_row,
    labels_of,
    run_row,
    slot_of_run,
    slots_of_cursor,
    slots_of_skip,
    tenant_use,
    version_row,
)
from horolog.projections.rows import (
    text as text_of,
)
from horolog.projections.runs import HIDDEN
from horolog.projections.schema import (
    ATTEMPTS,
    CURSORS,
    DEAD_LETTERS,
    JOBS,
    MANUAL_RUNS,
    RUNS,
    SKIPS,
    TABLES,
    TENANT_USE,
    VERSIONS,
)
from horolog.projections.store import Checkpoints, Origin, positions_of, time_of
from horolog.projections.tables import (
    GONE_KEPT_US,
    Changes,
    FlatRow,
    Key,
    Row,
    Table,
    as_row,
    has_ended,
    is_there,
    key_of,
    merge,
)
from horolog.schemas.errors import UNAVAILABLE, Unavailable
from horolog.schemas.ids import is_manual, job_of, slot_of, tenant_of
from horolog.schemas.records import JobId, RunId, TenantId


class MemorySnapshot:
    """See `Snapshot`: a copy."""

    def __init__(
        self, tables: Mapping[str, Mapping[Key, FlatRow]], checkpoints: Checkpoints
    ) -> None:
        """Of the tables as they are now."""
        self.checkpoints: Checkpoints = dict(checkpoints)
        self._tables = {
            name: {key: FlatRow(row) for key, row in rows.items()} for name, rows in tables.items()
        }

    def rows(self, table: Table) -> Iterator[FlatRow]:
        """See `Snapshot`."""
        now_us = time_of(self.checkpoints)
        parent = table.lives_with
        for key, row in sorted(self._tables[table.name].items()):
            if not is_there(table, row, now_us):
                continue
            if parent is not None:
                above = self._tables[parent.name].get(key[: len(parent.key)])
                if above is None or not is_there(parent, above, now_us):
                    continue
            yield row


class MemoryHistory:
    """See `Store` and `Queries`."""

    def __init__(self) -> None:
        """Empty."""
        self._lock = threading.RLock()
        self._origin: Origin | None = None
        self._checkpoints: Checkpoints = {}
        self._tables: dict[str, dict[Key, FlatRow]] = {table.name: {} for table in TABLES}
        self._failures = 0

    def fail_next(self, times: int = 1) -> None:
        """Let the next writes say that nothing was written, as a full disk would."""
        self._failures = times

    def close(self) -> None:
        """Nothing is open."""

    # --- `Store`

    def begin(self, origin: Origin) -> None:
        """See `Store`."""
        with self._lock:
            if origin != self._origin:
                self._origin = origin
                self._checkpoints = {}
                self._tables = {table.name: {} for table in TABLES}

    def checkpoints(self) -> Checkpoints:
        """See `Store`."""
        return self._checkpoints

    def positions(self) -> Mapping[int, int]:
        """See `Queries`."""
        return positions_of(self._checkpoints)

    def write(self, changes: Changes, checkpoints: Checkpoints) -> None:
        """See `Store`."""
        with self._lock:
            if self._failures:
                self._failures -= 1
                raise Unavailable(UNAVAILABLE, "the store was told to fail")
            for table, rows in changes.tables():
                kept = self._tables[table.name]
                for row in rows:
                    key = key_of(table, row)
                    if key in kept:
                        merge(table, kept[key], row)
                    else:
                        kept[key] = FlatRow(row)
            self._checkpoints = {**self._checkpoints, **checkpoints}

    def get(self, table: Table, key: Key) -> Row | None:
        """See `Store`."""
        row = self._tables[table.name].get(key)
        return None if row is None else as_row(table, row)

    def expire(self, now_us: int, limit: int) -> int:
        """See `Store`."""
        most = 0
        with self._lock:
            for table in TABLES:
                rows = self._tables[table.name]
                until_us = now_us if table.expires else now_us - GONE_KEPT_US
                ended = [key for key, row in rows.items() if has_ended(table, row, until_us)]
                for key in ended[:limit]:
                    self._remove(table, key)
                most = max(most, len(ended[:limit]))
        return most

    def _remove(self, table: Table, key: Key) -> None:
        del self._tables[table.name][key]
        for child in TABLES:
            if child.lives_with is table:
                rows = self._tables[child.name]
                for child_key in [each for each in rows if each[: len(key)] == key]:
                    del rows[child_key]

    @contextlib.contextmanager
    def snapshot(self) -> Generator[MemorySnapshot]:
        """See `Store`."""
        with self._lock:
            snapshot = MemorySnapshot(self._tables, self._checkpoints)
        yield snapshot

    def beside(self) -> "BesideMemory":
        """See `Store`."""
        return BesideMemory(self)

    def replace_by(self, other: "MemoryHistory") -> None:
        """Go on with what another one holds."""
        with self._lock:
            self._origin = other._origin
            self._tables, self._checkpoints = other._tables, other._checkpoints

    # --- `Queries`

    def job(self, job_id: JobId) -> JobRow | None:
        """See `Queries`."""
        with self._lock:
            row = self._tables["jobs"].get((tenant_of(job_id), job_id))
            return None if row is None else job_row(as_row(JOBS, row))

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
        """See `Queries`."""

        def fits(row: Row) -> bool:
            has = labels_of(row)
            return (
                row["status"] in EXISTING
                and (paused is None or (row["status"] == "paused") is paused)
                and (tenant is None or row["tenant"] == tenant)
                and (pool is None or row["pool"] == pool)
                and (text is None or text.casefold() in text_of(row, "search_text"))
                and all(has.get(key) == value for key, value in labels.items())
            )

        begin = None if after is None else (tenant_of(JobId(after)), after)
        found = [
            job
            for row in self._rows(JOBS, fits)
            if (job := job_row(row)) is not None
            and (begin is None or (job.tenant, job.job_id) > begin)
        ]
        return found[: min(limit, ROWS_MAX)]

    def versions(self, job_id: JobId) -> Sequence[VersionRow]:
        """See `Queries`."""
        rows = self._rows(VERSIONS, lambda row: row["job_id"] == job_id)
        return [version_row(row) for row in rows][::-1][:ROWS_MAX]

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
        """See `Queries`."""

        def fits(row: Row) -> bool:
            at_us = row["at_us"]
            assert isinstance(at_us, int)
            return (
                row["job_id"] == job_id
                and row["status"] != HIDDEN
                and (not statuses or row["status"] in statuses)
                and (from_us is None or at_us >= from_us)
                and (to_us is None or at_us < to_us)
            )

        with self._lock:
            found = [run_row(row) for row in self._rows(RUNS, fits)]
            return self._page(found, after, limit, newest_first=newest_first)

    def run(self, run_id: RunId) -> RunDetail | None:
        """See `Queries`."""
        with self._lock:
            at_us: object = slot_of(run_id)
            if at_us is None:
                asked = self.get(MANUAL_RUNS, (run_id,))
                at_us = None if asked is None else asked["at_us"]
            key = (job_of(run_id), at_us, run_id)
            runs = self._rows(
                RUNS,
                lambda row: (
                    (row["job_id"], row["at_us"], row["run_id"]) == key and row["status"] != HIDDEN
                ),
            )
            if not runs:
                return None
            attempts = self._rows(
                ATTEMPTS, lambda row: (row["job_id"], row["at_us"], row["run_id"]) == key
            )
            return RunDetail(run=run_row(runs[0]), attempts=tuple(map(attempt_row, attempts)))

    def slots(
        self,
        job_id: JobId,
        from_us: int,
        to_us: int,
        limit: int,
        after: Place | None = None,
    ) -> Sequence[SlotRow]:
        """See `Queries`."""
        with self._lock:
            skips = self._rows(SKIPS, lambda row: row["job_id"] == job_id)
            cursors = self._rows(
                CURSORS, lambda row: row["job_id"] == job_id and bool(row["is_open"])
            )
            runs = self._rows(
                RUNS,
                lambda row: (
                    row["job_id"] == job_id
                    and row["status"] != HIDDEN
                    and not is_manual(RunId(text_of(row, "run_id")))
                ),
            )
        ranges = [*map(slots_of_skip, skips), *map(slots_of_cursor, cursors)]
        found = [
            *(row for row in ranges if row.to_us >= from_us and row.after_us + 1 < to_us),
            *(row for row in map(slot_of_run, runs) if from_us <= row.to_us < to_us),
        ]
        found.sort(key=slot_place)
        if after is not None:
            found = [row for row in found if slot_place(row) > after]
        return found[: min(limit, ROWS_MAX)]

    def dead_letters(
        self, tenant: TenantId | None, *, after: Place | None, limit: int
    ) -> Page[RunRow]:
        """See `Queries`."""
        with self._lock:
            dead = {
                (row["job_id"], row["at_us"], row["run_id"])
                for row in self._rows(
                    DEAD_LETTERS, lambda row: tenant is None or row["tenant"] == tenant
                )
            }
            runs = self._rows(
                RUNS, lambda row: (row["job_id"], row["at_us"], row["run_id"]) in dead
            )
            return self._page(list(map(run_row, runs)), after, limit, newest_first=True)

    def tenants(self) -> Sequence[TenantId]:
        """See `Queries`."""
        rows = self._rows(TENANT_USE, lambda _: True)
        return sorted({TenantId(text_of(row, "tenant")) for row in rows})

    def tenant_use(self, tenant: TenantId) -> TenantUse:
        """See `Queries`."""
        return tenant_use(tenant, self._rows(TENANT_USE, lambda row: row["tenant"] == tenant))

    def _rows(self, table: Table, fits: Callable[[Row], bool]) -> list[Row]:
        """Rows that were not removed, in the order of their keys. Like those of every store they
        stay until `expire` has been by.
        """
        with self._lock:
            rows = [
                as_row(table, row)
                for _, row in sorted(self._tables[table.name].items())
                if is_there(table, row, 0)
            ]
        return [row for row in rows if fits(row)]

    def _page(
        self, found: list[RunRow], after: Place | None, limit: int, *, newest_first: bool
    ) -> Page[RunRow]:
        found.sort(key=lambda row: (row.at_us, row.run_id), reverse=newest_first)
        if after is not None:
            found = [
                row
                for row in found
                if ((row.at_us, row.run_id) < after) is newest_first
                and (row.at_us, row.run_id) != after
            ]
        limit = min(limit, ROWS_MAX)
        return page(found[: limit + 1], limit, self.positions())


class BesideMemory(MemoryHistory):
    """See `Beside`."""

    def __init__(self, live: MemoryHistory) -> None:
        """Empty."""
        super().__init__()
        self._live = live

    def promote(self) -> None:
        """See `Beside`."""
        self._live.replace_by(self)

    def abandon(self) -> None:
        """See `Beside`."""
