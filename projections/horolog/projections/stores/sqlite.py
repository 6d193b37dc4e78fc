"""Tables and queries on one SQLite file, `history.db`.

Disposable: `synchronous=NORMAL`, and a file of another version is thrown away and built again from
the ledger. A batch's rows and its checkpoint are one transaction; a batch at or below the checkpoint
is left out, so repeating one changes nothing.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from horolog.projections.fold import VERSION
from horolog.projections.queries import Page, Place
from horolog.projections.rows import (
    KEYS,
    AttemptRow,
    Change,
    Delete,
    JobRow,
    RunDetail,
    RunRow,
    SlotRow,
    TenantUse,
    Value,
    VersionRow,
)
from horolog.schemas.records import JobId, RunId, TenantId

FILE: Final = "history.db"

_TABLES: Final = """
CREATE TABLE meta (version INTEGER NOT NULL);
CREATE TABLE checkpoints (partition INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY, tenant TEXT, status TEXT, version INTEGER DEFAULT 0,
    definition TEXT, labels TEXT, pool TEXT, created_us INTEGER, updated_us INTEGER,
    updated_by TEXT DEFAULT '', paused_until_us INTEGER, pause_reason TEXT DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX jobs_by_tenant ON jobs (tenant, job_id);
CREATE TABLE versions (
    job_id TEXT, version INTEGER, at_us INTEGER, principal TEXT, change TEXT, definition TEXT,
    PRIMARY KEY (job_id, version)
) WITHOUT ROWID;
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY, job_id TEXT, tenant TEXT, at_us INTEGER, slot_us INTEGER,
    due_us INTEGER, origin TEXT DEFAULT '', status TEXT, tier TEXT DEFAULT '',
    pool TEXT DEFAULT '', attempt INTEGER DEFAULT 0, round INTEGER DEFAULT 0,
    started_us INTEGER, ended_us INTEGER, exit_code INTEGER, error TEXT DEFAULT '',
    reason TEXT DEFAULT '', into_run TEXT, warning TEXT DEFAULT '', output BLOB DEFAULT x'',
    retry_at_us INTEGER, worker_id TEXT DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX runs_by_job ON runs (job_id, at_us, run_id);
CREATE INDEX runs_rare ON runs (job_id, status, at_us, run_id) WHERE status <> 'succeeded';
CREATE INDEX runs_by_status ON runs (tenant, status, at_us, run_id)
    WHERE status NOT IN ('succeeded', 'skipped');
CREATE INDEX runs_by_end ON runs (ended_us) WHERE ended_us IS NOT NULL;
CREATE TABLE attempts (
    run_id TEXT, token INTEGER, round INTEGER, attempt INTEGER, worker_id TEXT DEFAULT '',
    started_us INTEGER, ended_us INTEGER, outcome TEXT DEFAULT '', exit_code INTEGER,
    error TEXT DEFAULT '', PRIMARY KEY (run_id, token)
) WITHOUT ROWID;
CREATE TABLE skips (
    job_id TEXT, to_us INTEGER, after_us INTEGER, slots_count INTEGER, reason TEXT,
    into_run TEXT, at_us INTEGER, PRIMARY KEY (job_id, to_us, after_us)
) WITHOUT ROWID;
"""

_RUN_COLUMNS: Final = (
    "run_id, job_id, tenant, at_us, slot_us, due_us, origin, status, tier, pool, attempt, round, "
    "started_us, ended_us, exit_code, error, reason, into_run, warning, output, retry_at_us, "
    "worker_id"
)
_JOB_COLUMNS: Final = (
    "job_id, tenant, status, version, definition, created_us, updated_us, updated_by, "
    "paused_until_us, pause_reason"
)
RARE: Final = frozenset(
    ("pending", "planned", "queued", "running", "cancelled", "dead", "skipped", "refused")
)


class SqliteHistory:
    """The tables of the projections, written by one thread and read by any."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it; one of another version is thrown away."""
        self.path = path
        self._writer = _connect(path)
        if self._version() != VERSION:
            self._make_anew()
        self._positions = dict(
            self._writer.execute("SELECT partition, seq FROM checkpoints").fetchall()
        )
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []

    # --- writing

    def apply(self, changes: Sequence[Change], positions: Mapping[int, int]) -> None:
        """Write rows and the positions they reach, in one transaction."""
        cursor = self._writer.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            for statement, rows in _grouped(changes).items():
                cursor.executemany(statement, rows)
            cursor.executemany(
                "INSERT INTO checkpoints VALUES (?, ?) "
                "ON CONFLICT (partition) DO UPDATE SET seq = excluded.seq",
                list(positions.items()),
            )
            cursor.execute("COMMIT")
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        self._positions = {**self._positions, **positions}

    def forget_ended(self, before_us: int) -> int:
        """Remove runs that ended before an instant, some at a time; how many were removed."""
        cursor = self._writer.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        gone = cursor.execute(
            "SELECT run_id FROM runs WHERE ended_us < ? LIMIT 1000", (before_us,)
        ).fetchall()
        cursor.executemany("DELETE FROM attempts WHERE run_id = ?", gone)
        cursor.executemany("DELETE FROM runs WHERE run_id = ?", gone)
        cursor.execute("COMMIT")
        return len(gone)

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
        for reader in self._readers:
            reader.close()

    def _version(self) -> int | None:
        with contextlib.suppress(sqlite3.OperationalError):
            row = self._writer.execute("SELECT version FROM meta").fetchone()
            return None if row is None else int(row[0])
        return None

    def _make_anew(self) -> None:
        self._writer.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self._writer = _connect(self.path)
        self._writer.executescript(f"BEGIN; {_TABLES} INSERT INTO meta VALUES ({VERSION}); COMMIT;")

    # --- queries

    def positions(self) -> Mapping[int, int]:
        """See `Queries`."""
        return self._positions

    def job(self, job_id: JobId) -> JobRow | None:
        """See `Queries`."""
        rows = self._all(f"SELECT {_JOB_COLUMNS} FROM jobs WHERE job_id = ?", (job_id,))
        return _job(rows[0]) if rows else None

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
        where.add("job_id > ?", after)
        where.add("status = ?", None if paused is None else "paused" if paused else "active")
        where.add("instr(job_id, ?) > 0", text)
        for key, value in labels.items():
            where.add("instr(labels, ?) > 0", f"\n{key}={value}\n")
        return [
            _job(row)
            for row in self._all(
                f"SELECT {_JOB_COLUMNS} FROM jobs WHERE {where.text} ORDER BY job_id LIMIT ?",
                (*where.values, limit),
            )
        ]

    def versions(self, job_id: JobId) -> Sequence[VersionRow]:
        """See `Queries`."""
        rows = self._all(
            "SELECT version, at_us, principal, change, definition FROM versions "
            "WHERE job_id = ? ORDER BY version DESC",
            (job_id,),
        )
        return [
            VersionRow(
                job_id=job_id,
                version=row[0],
                at_us=row[1],
                principal=row[2],
                change=row[3],
                definition=row[4],
            )
            for row in rows
        ]

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
        """See `Queries`. Rare statuses are read from an index that leaves successes out, one
        status at a time.
        """
        where = _Where("job_id = ?", job_id)
        where.add("at_us >= ?", from_us)
        where.add("at_us < ?", to_us)
        if not statuses:
            return self._run_page(where, after, limit, newest_first=newest_first)
        rows: list[RunRow] = []
        for status in sorted(set(statuses)):
            part = where.copy()
            part.add("status = ?", status)
            if status in RARE:
                part.add("status <> 'succeeded'")
            rows += self._run_page(part, after, limit, newest_first=newest_first).rows
        rows.sort(key=lambda row: (row.at_us, row.run_id), reverse=newest_first)
        return _page(rows[: limit + 1], limit)

    def run(self, run_id: RunId) -> RunDetail | None:
        """See `Queries`."""
        rows = self._all(f"SELECT {_RUN_COLUMNS} FROM runs WHERE run_id = ?", (run_id,))
        if not rows:
            return None
        attempts = self._all(
            "SELECT round, attempt, token, worker_id, started_us, ended_us, outcome, exit_code, "
            "error FROM attempts WHERE run_id = ? ORDER BY token",
            (run_id,),
        )
        return RunDetail(
            run=_run(rows[0]),
            attempts=tuple(
                AttemptRow(
                    run_id=run_id,
                    round=row[0],
                    attempt=row[1],
                    token=row[2],
                    worker_id=row[3],
                    started_us=row[4],
                    ended_us=row[5],
                    outcome=row[6],
                    exit_code=row[7],
                    error=row[8],
                )
                for row in attempts
            ),
        )

    def slots(self, job_id: JobId, from_us: int, to_us: int, limit: int) -> Sequence[SlotRow]:
        """See `Queries`."""
        ranges = self._all(
            "SELECT after_us, to_us, slots_count, reason, into_run FROM skips "
            "WHERE job_id = ? AND to_us >= ? AND after_us < ? ORDER BY to_us LIMIT ?",
            (job_id, from_us, to_us, limit),
        )
        found = [
            SlotRow(
                after_us=row[0],
                to_us=row[1],
                slots_count=row[2],
                outcome="skipped",
                reason=row[3],
                run_id=None,
                into=row[4],
            )
            for row in ranges
        ]
        runs = self._all(
            f"SELECT {_RUN_COLUMNS} FROM runs WHERE job_id = ? AND at_us >= ? AND at_us < ? "
            "AND origin <> 'manual' ORDER BY at_us, run_id LIMIT ?",
            (job_id, from_us, to_us, limit),
        )
        for run in map(_run, runs):
            found.append(
                SlotRow(
                    after_us=run.at_us,
                    to_us=run.at_us,
                    slots_count=1,
                    outcome=run.status,
                    reason=run.reason,
                    run_id=run.run_id,
                    into=run.into,
                )
            )
        found.sort(key=lambda row: (row.to_us, row.after_us))
        return found[:limit]

    def dead_letters(
        self, tenant: TenantId | None, *, after: Place | None, limit: int
    ) -> Page[RunRow]:
        """See `Queries`."""
        where = _Where("status = 'dead' AND status NOT IN ('succeeded', 'skipped')")
        where.add("tenant = ?", tenant)
        return self._run_page(where, after, limit, newest_first=True)

    def tenants(self) -> Sequence[TenantId]:
        """See `Queries`."""
        return [
            TenantId(row[0])
            for row in self._all("SELECT DISTINCT tenant FROM jobs ORDER BY tenant", ())
        ]

    def tenant_use(self, tenant: TenantId) -> TenantUse:
        """See `Queries`."""
        ((jobs_count,),) = self._all(
            "SELECT count(*) FROM jobs WHERE tenant = ? AND status IN ('active', 'paused')",
            (tenant,),
        )
        by_status = dict(
            self._all(
                "SELECT status, count(*) FROM runs WHERE tenant = ? "
                "AND status NOT IN ('succeeded', 'skipped') GROUP BY status",
                (tenant,),
            )
        )
        return TenantUse(
            tenant=tenant,
            jobs_count=jobs_count,
            waiting_count=sum(
                by_status.get(status, 0) for status in ("pending", "planned", "queued")
            ),
            running_count=by_status.get("running", 0),
            dead_count=by_status.get("dead", 0),
        )

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """All rows of a table in the order of its key, to be compared with another store's."""
        key = ", ".join(KEYS[table])
        yield from self._all(f"SELECT * FROM {table} ORDER BY {key}", ())

    def _run_page(
        self, where: "_Where", after: Place | None, limit: int, *, newest_first: bool
    ) -> Page[RunRow]:
        order = "DESC" if newest_first else "ASC"
        place = where.copy()
        if after is not None:
            place.add(f"(at_us, run_id) {'<' if newest_first else '>'} (?, ?)", after[0], after[1])
        rows = self._all(
            f"SELECT {_RUN_COLUMNS} FROM runs WHERE {place.text} "
            f"ORDER BY at_us {order}, run_id {order} LIMIT ?",
            (*place.values, limit + 1),
        )
        return _page([_run(row) for row in rows], limit)

    def _all(self, statement: str, values: Sequence[Value]) -> list[tuple[Any, ...]]:
        reader: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = _connect(self.path)
            self._readers.append(reader)
        return reader.execute(statement, values).fetchall()


class _Where:
    """Conditions and their values. All text is from here; values are always bound."""

    def __init__(self, text: str, *values: Value) -> None:
        self.text = text
        self.values: list[Value] = list(values)

    def add(self, text: str, *values: Value) -> None:
        """One more condition; one whose only value is None is left out."""
        if values and values[0] is None:
            return
        self.text += f" AND {text}"
        self.values += values

    def copy(self) -> "_Where":
        """The same conditions, to be added to."""
        return _Where(self.text, *self.values)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _grouped(changes: Sequence[Change]) -> dict[str, list[tuple[Value, ...]]]:
    """Rows by statement: one statement for each table and set of columns."""
    groups: dict[str, list[tuple[Value, ...]]] = {}
    statements: dict[tuple[str, tuple[str, ...]], str] = {}
    for change in changes:
        if isinstance(change, Delete):
            groups.setdefault(_deleting(change.table), []).append(change.key)
            continue
        columns = tuple(change.columns)
        statement = statements.get((change.table, columns))
        if statement is None:
            statement = _upserting(change.table, columns)
            statements[change.table, columns] = statement
        groups.setdefault(statement, []).append((*change.key, *change.columns.values()))
    return groups


def _upserting(table: str, columns: tuple[str, ...]) -> str:
    keys = KEYS[table]
    names = ", ".join((*keys, *columns))
    marks = ", ".join("?" * (len(keys) + len(columns)))
    updates = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return (
        f"INSERT INTO {table} ({names}) VALUES ({marks}) "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates}"
    )


def _deleting(table: str) -> str:
    return f"DELETE FROM {table} WHERE " + " AND ".join(f"{key} = ?" for key in KEYS[table])


def _page(rows: list[RunRow], limit: int) -> Page[RunRow]:
    if len(rows) <= limit:
        return Page(rows=rows, after=None)
    kept = rows[:limit]
    return Page(rows=kept, after=(kept[-1].at_us, kept[-1].run_id))


def _job(row: tuple[Any, ...]) -> JobRow:
    return JobRow(
        job_id=row[0],
        tenant=row[1],
        status=row[2],
        version=row[3],
        definition=row[4],
        created_us=row[5],
        updated_us=row[6],
        updated_by=row[7],
        paused_until_us=row[8],
        pause_reason=row[9],
    )


def _run(row: tuple[Any, ...]) -> RunRow:
    return RunRow(
        run_id=row[0],
        job_id=row[1],
        tenant=row[2],
        at_us=row[3],
        slot_us=row[4],
        due_us=row[5],
        origin=row[6],
        status=row[7],
        tier=row[8],
        pool=row[9],
        attempt=row[10],
        round=row[11],
        started_us=row[12],
        ended_us=row[13],
        exit_code=row[14],
        error=row[15],
        reason=row[16],
        into=row[17],
        warning=row[18],
        output=row[19],
        retry_at_us=row[20],
        worker_id=row[21],
    )
