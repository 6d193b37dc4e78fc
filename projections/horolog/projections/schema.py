"""The tables, each written by the projection that its section names.

Bump that projection's `VERSION` with any change here.
"""

from typing import Final

from horolog.projections.tables import Group, Table

# --- jobs

JOBS: Final = Table(
    name="jobs",
    key=("tenant", "job_id"),
    groups=(
        Group("status_us", ("status", "paused_until_us", "pause_reason", "status_by")),
        Group(
            "updated_us",
            ("version", "definition", "labels", "pool", "search_text", "updated_by"),
        ),
        Group("created_us", ("created_by",)),
    ),
    expires=True,
)
"""What a job is now. Run statistics are not here: the version of a definition, and with it the ETag
of the API, stays as it is while runs come and go.
"""

# --- versions

VERSIONS: Final = Table(
    name="versions",
    key=("tenant", "job_id", "at_us"),
    groups=(Group("written_us", ("version", "change", "principal", "definition")),),
    lives_with=JOBS,
)
"""Each definition a job had. By time and not by number: a job that was deleted, forgotten and made
again counts from 1 again.
"""

# --- runs

RUNS: Final = Table(
    name="runs",
    key=("job_id", "at_us", "run_id"),
    groups=(
        Group("status_us", ("status", "reason", "into_run", "retry_at_us", "status_by")),
        Group("planned_us", ("slot_us", "due_us", "tier", "pool", "origin", "asked_by")),
        Group("begun_us", ("round", "attempt", "started_us", "worker_id", "version")),
        Group("ended_us", ("outcome", "exit_code", "error", "warning", "output")),
        Group("cancel_us", ("cancel_by", "cancel_reason")),
    ),
    expires=True,
    indexes=(("job_id", "status", "at_us", "run_id"),),
)
"""A run, in the order of history: `at_us` is its slot, or when a manual run was asked for."""

MANUAL_RUNS: Final = Table(
    name="manual_runs",
    key=("run_id",),
    groups=(Group("asked_us", ("at_us",)),),
    expires=True,
)
"""Where a manual run stands in `runs`: its ID does not say. The ID is that of the newest run that
was asked for with its key.
"""

# --- attempts

ATTEMPTS: Final = Table(
    name="attempts",
    key=("job_id", "at_us", "run_id", "started_seq"),
    groups=(
        Group("started_us", ("round", "attempt", "token", "worker_id", "version")),
        Group(
            "ended_us",
            ("outcome", "exit_code", "error", "warning", "output", "retry_at_us"),
        ),
    ),
    lives_with=RUNS,
)
"""Each attempt of a run. By the `seq` of its start, which is in the token too: a released attempt
leaves its number to the next one.
"""

# --- slots

SKIPS: Final = Table(
    name="skips",
    key=("job_id", "to_us", "after_us"),
    groups=(Group("decided_us", ("slots_count", "reason", "into_run")),),
    expires=True,
)
"""Slots that were skipped together: (after, to], one row however many they are."""

CURSORS: Final = Table(
    name="cursors",
    key=("job_id", "cursor_id"),
    groups=(
        Group("moved_us", ("is_open",)),
        Group("started_us", ("origin", "after_us", "to_us")),
    ),
    expires=True,
)
"""Ranges of past slots that are being turned into runs."""

# --- dead_letters

DEAD_LETTERS: Final = Table(
    name="dead_letters",
    key=("tenant", "at_us", "run_id"),
    groups=(Group("dead_us", ("job_id", "round", "reason")),),
    deletes=True,
)
"""Runs that wait for a person."""

# --- tenants

TENANT_USE: Final = Table(
    name="tenant_use",
    key=("tenant", "partition"),
    groups=(
        Group(
            "counted_us",
            ("seq", "jobs", "waiting", "running", "dead", "day_us", "day_started"),
        ),
    ),
)
"""What a tenant has in one ledger partition, counted up to `seq`; its use is the sum of its rows.
Counts are written whole, never added to: so a repeated write changes nothing.
"""

TABLES: Final = (
    JOBS,
    VERSIONS,
    RUNS,
    MANUAL_RUNS,
    ATTEMPTS,
    SKIPS,
    CURSORS,
    DEAD_LETTERS,
    TENANT_USE,
)
