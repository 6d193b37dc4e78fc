"""Limits of the core: each queue, batch, list and retry has one.

A request that would pass a limit is refused with the code `limit` and the limit in its text;
what is not asked for by anybody (a slot) is accounted for as skipped with the reason `limit`.
"""

from typing import Final

MILLISECOND_US: Final = 1_000
SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

LOOKAHEAD_US: Final = 30 * SECOND_US
"""Runs are planned this long before their slots: the herd at the top of the hour is a ramp."""

AHEAD_MAX: Final = 10
AHEAD_LEAST: Final = 5
"""Slots of one job that are planned before they are due: up to the first number at a time, and
again once so many are left. With all 30 of a job that recurs each second, whatever looks at its
runs costs three times as much.
"""

MISSED_AFTER_US: Final = MINUTE_US
"""A slot the scheduler first gets to later than this past due is missed; catch-up decides."""

OPEN_RUNS_MAX: Final = 1_000
"""Open runs of one job."""

KEYS_MAX: Final = 100_000
"""Idempotency keys remembered of one job."""

KEYS_KEPT_US: Final = DAY_US
"""The idempotency window: so long a key, and the stub of a deleted job, is remembered."""

TRIGGERS_PER_S: Final = 10
TRIGGERS_BURST: Final = 100
"""Manual runs of one job: rate and burst of its bucket."""

PAYLOAD_BYTES_MAX: Final = 256 * 1024
OUTPUT_BYTES_MAX: Final = 4 * 1024
"""Result of a run that stands in the ledger; what it printed goes to the logs."""
ERROR_CHARS_MAX: Final = 2_000

COMMANDS_REMEMBERED: Final = 20
SKIPPED_RANGES_MAX: Final = 100
ENDED_KEPT_US: Final = 10 * MINUTE_US
ENDED_MAX: Final = 1_000
REJECTED_REMEMBERED: Final = 100

PLANNED_AT_ONCE: Final = 100
"""Runs of one job planned in one go, by its schedule or a cursor."""

CURSORS_MAX: Final = 10

LEASE_TERM_MIN_US: Final = 10 * SECOND_US
LEASE_TERM_MAX_US: Final = 10 * MINUTE_US
MARK_STEP_MAX_US: Final = 2 * SECOND_US
"""One mark moves lease time by at most this, whatever the broker's clock says."""

TIMEOUT_SLACK_US: Final = 5 * SECOND_US
"""Beyond time-out and kill grace, before the scheduler ends an attempt by itself."""

CLAIM_EARLY_US: Final = 2 * SECOND_US
"""A claim this much before the run is due is told when to come back."""

DEAD_KEPT_US: Final = 30 * DAY_US

FENCING_GENERATION: Final = 1 << 40
"""Fencing token = seq + generation * this; below 2^53, so exact in JSON for 8,191 generations."""

RESEND_PER_STEP: Final = 1_000
SNAPSHOTS_PER_STEP: Final = 200
SNAPSHOT_TAIL: Final = 100_000
"""Events a recovery reads beyond the snapshots, about: at some 30 microseconds each."""
COMMANDS_PER_STEP: Final = 500
REPORTS_PER_STEP: Final = 5_000
WAKES_PER_STEP: Final = 250
