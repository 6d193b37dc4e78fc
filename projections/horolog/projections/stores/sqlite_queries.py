"""The queries on a SQLite file of the tables."""

# Names in statements come from `schema`; values are always bound.
# ruff: noqa: S608

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from horolog.projections.queries import ROWS_MAX, Page, Place, page, slot_place
from horolog.projections.rows import (
    JobRow,
    RunDetail,
    RunRow,
    SlotRow,
    TenantUse,
    VersionRow,
    attempt_row,
    job_row,
    run_row,
    slot_of_run,
    slots_of_cursor,
    slots_of_skip,
    tenant_use,
    version_row,
)
from horolog.projections.runs import HIDDEN
from horolog.projections.schema import (
    ATTEMPTS,
    CURSORS,
    JOBS,
    MANUAL_RUNS,
    RUNS,
    SKIPS,
    TENANT_USE,
    VERSIONS,
)
from horolog.projections.tables import GONE, Table, Value
from horolog.schemas.ids import job_of, slot_of, tenant_of
from horolog.schemas.records import JobId, RunId, TenantId


class Cursor(Protocol):
    """Rows of a statement."""

    def fetchall(self) -> list[Any]:
        """All of them."""
        ...


class Reader(Protocol):
    """A connection within a read transaction."""

    def execute(self, sql: str, parameters: Sequence[Value] = ..., /) -> Cursor:
        """Execute a statement."""
        ...


class SqliteQueries:
    """See `Queries`. All text of statements is from here; values are always bound."""

    def __init__(self, read: Callable[[], AbstractContextManager[Reader]]) -> None:
        """`read` lends a connection for one answer."""
        self._read = read

    def job(self, job_id: JobId) -> JobRow | None:
        """See `Queries`."""
        with self._read() as reader:
            key = (tenant_of(job_id), job_id)
            rows = list(
                _select(reader, JOBS, "tenant = ? AND job_id = ? AND status IS NOT NULL", key)
            )
        return job_row(rows[0]) if rows else None

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
        where = _Where("status IN ('active', 'paused')")
        where.add("tenant = ?", tenant)
        where.add("pool = ?", pool)
        where.add("status = ?", None if paused is None else "paused" if paused else "active")
        where.add("instr(search_text, ?) > 0", None if text is None else text.casefold())
        if after is not None:
            where.add("(tenant, job_id) > (?, ?)", tenant_of(JobId(after)), after)
        for key, value in sorted(labels.items()):
            where.add(
                "EXISTS (SELECT 1 FROM json_each(labels) AS e WHERE e.key = ? AND e.value = ?)",
                key,
                value,
            )
        with self._read() as reader:
            rows = _select(
                reader,
                JOBS,
                f"{where.text} ORDER BY tenant, job_id LIMIT ?",
                (*where.values, min(limit, ROWS_MAX)),
            )
            return [row for row in map(job_row, rows) if row is not None]

    def versions(self, job_id: JobId) -> Sequence[VersionRow]:
        """See `Queries`."""
        with self._read() as reader:
            rows = _select(
                reader,
                VERSIONS,
                "tenant = ? AND job_id = ? ORDER BY at_us DESC LIMIT ?",
                (tenant_of(job_id), job_id, ROWS_MAX),
            )
            return [version_row(row) for row in rows]

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
        """See `Queries`. Statuses are read one at a time, each by its own stretch of the index: so
        rare ones are found without a look at the others.
        """
        limit = min(limit, ROWS_MAX)
        where = _Where("job_id = ?", job_id)
        where.add("at_us >= ?", from_us)
        where.add("at_us < ?", to_us)
        order = "DESC" if newest_first else "ASC"
        if after is not None:
            where.add(f"(at_us, run_id) {'<' if newest_first else '>'} (?, ?)", *after)
        ending = f"ORDER BY at_us {order}, run_id {order} LIMIT ?"
        found: list[RunRow] = []
        with self._read() as reader:
            as_of = _positions(reader)
            if not statuses:
                values = (*where.values, HIDDEN, limit + 1)
                rows = _select(reader, RUNS, f"{where.text} AND status <> ? {ending}", values)
                found = list(map(run_row, rows))
            for status in sorted(set(statuses) - {HIDDEN}):
                values = (*where.values, status, limit + 1)
                rows = _select(reader, RUNS, f"{where.text} AND status = ? {ending}", values)
                found += map(run_row, rows)
        found.sort(key=lambda row: (row.at_us, row.run_id), reverse=newest_first)
        return page(found[: limit + 1], limit, as_of)

    def run(self, run_id: RunId) -> RunDetail | None:
        """See `Queries`."""
        with self._read() as reader:
            at_us = slot_of(run_id)
            if at_us is None:
                asked = list(_select(reader, MANUAL_RUNS, "run_id = ?", (run_id,)))
                if not asked:
                    return None
                at_us = asked[0]["at_us"]
            key = (job_of(run_id), at_us, run_id)
            same = "job_id = ? AND at_us = ? AND run_id = ?"
            rows = list(_select(reader, RUNS, f"{same} AND status <> ?", (*key, HIDDEN)))
            if not rows:
                return None
            attempts = _select(
                reader, ATTEMPTS, f"{same} AND started_us IS NOT NULL ORDER BY started_seq", key
            )
            return RunDetail(run=run_row(rows[0]), attempts=tuple(map(attempt_row, attempts)))

    def slots(
        self,
        job_id: JobId,
        from_us: int,
        to_us: int,
        limit: int,
        after: Place | None = None,
    ) -> Sequence[SlotRow]:
        """See `Queries`."""
        limit = min(limit, ROWS_MAX)
        begin_us = from_us if after is None else max(from_us, after[0])
        # At one instant stand a run and a few ranges that end there.
        values = (job_id, begin_us, to_us, limit + 8)
        with self._read() as reader:
            skips = _select(
                reader,
                SKIPS,
                "job_id = ? AND to_us >= ? AND after_us + 1 < ? ORDER BY to_us, after_us LIMIT ?",
                values,
            )
            found = list(map(slots_of_skip, skips))
            cursors = _select(
                reader,
                CURSORS,
                "job_id = ? AND to_us >= ? AND after_us + 1 < ? AND is_open "
                "ORDER BY to_us, after_us LIMIT ?",
                values,
            )
            found += map(slots_of_cursor, cursors)
            runs = _select(
                reader,
                RUNS,
                "job_id = ? AND at_us >= ? AND at_us < ? AND origin <> 'manual' "
                f"AND status <> '{HIDDEN}' ORDER BY at_us, run_id LIMIT ?",
                values,
            )
            found += map(slot_of_run, runs)
        if after is not None:
            found = [row for row in found if slot_place(row) > after]
        return sorted(found, key=slot_place)[:limit]

    def dead_letters(
        self, tenant: TenantId | None, *, after: Place | None, limit: int
    ) -> Page[RunRow]:
        """See `Queries`."""
        limit = min(limit, ROWS_MAX)
        where = _Where(f"d.dead_us > ifnull(d.{GONE}, -1)")
        where.add("d.tenant = ?", tenant)
        if after is not None:
            where.add("(d.at_us, d.run_id) < (?, ?)", *after)
        columns = ", ".join(f"r.{column}" for column in RUNS.columns)
        statement = (
            f"SELECT {columns} FROM dead_letters AS d JOIN runs AS r "
            "ON r.job_id = d.job_id AND r.at_us = d.at_us AND r.run_id = d.run_id "
            f"WHERE {where.text} ORDER BY d.at_us DESC, d.run_id DESC LIMIT ?"
        )
        with self._read() as reader:
            rows = reader.execute(statement, (*where.values, limit + 1)).fetchall()
            found = [run_row(dict(zip(RUNS.columns, row, strict=True))) for row in rows]
            return page(found, limit, _positions(reader))

    def tenants(self) -> Sequence[TenantId]:
        """See `Queries`."""
        with self._read() as reader:
            rows = reader.execute("SELECT DISTINCT tenant FROM tenant_use ORDER BY 1").fetchall()
        return [TenantId(tenant) for (tenant,) in rows]

    def tenant_use(self, tenant: TenantId) -> TenantUse:
        """See `Queries`."""
        with self._read() as reader:
            return tenant_use(tenant, list(_select(reader, TENANT_USE, "tenant = ?", (tenant,))))


class _Where:
    """Conditions and their values."""

    def __init__(self, text: str, *values: Value) -> None:
        self.text = text
        self.values: list[Value] = list(values)

    def add(self, text: str, *values: Value) -> None:
        """One more condition; one whose only value is None is left out."""
        if values == (None,):
            return
        self.text += f" AND {text}"
        self.values += values


def _select(
    reader: Reader, table: Table, where: str, values: Sequence[Value]
) -> Iterator[dict[str, Any]]:
    columns = ", ".join(table.columns)
    found = reader.execute(f"SELECT {columns} FROM {table.name} WHERE {where}", values)
    return (dict(zip(table.columns, row, strict=True)) for row in found.fetchall())


def _positions(reader: Reader) -> dict[int, int]:
    rows = reader.execute("SELECT partition, min(seq) FROM checkpoints GROUP BY partition")
    return dict(rows.fetchall())
