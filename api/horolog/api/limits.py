"""Bounds of the edge: what a caller may send, ask for and wait for."""

from typing import Final

BODY_BYTES_MAX: Final = 1024 * 1024
"""Counted as it comes, whatever Content-Length says."""

JSON_DEPTH_MAX: Final = 32
YAML_DEPTH_MAX: Final = 20
FILE_BYTES_MAX: Final = 1024 * 1024
FILE_JOBS_MAX: Final = 10_000

PAYLOAD_BYTES_MAX: Final = 256 * 1024
"""As in `horolog.streams.limits`, stated again so that a job file is refused without the core."""

PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 1_000
"""More is clamped, not refused: a page of a size nobody serves is no error (AIP-158)."""

NEXT_DEFAULT: Final = 10
NEXT_MAX: Final = 1_000

ERRORS_SHOWN_MAX: Final = 20
VALUE_CHARS_SHOWN_MAX: Final = 80

POSITION_WAIT_S: Final = 2.0
"""A read that names a position waits this long for the projection, then answers 503."""

PREFER_WAIT_MAX_S: Final = 30.0
FOLLOW_IDLE_S: Final = 10.0
"""A follower that has heard nothing this long looks again, and SSE sends a comment."""

EVENTS_LOOKED_AT_MAX: Final = 200_000
"""Of a ledger partition, for one page of events: about a second."""
EVENTS_AT_ONCE: Final = 500
"""Of a ledger partition, sent to a follower before it looks at the next one."""
FOLLOWERS_MAX: Final = 200

LOG_READ_BYTES: Final = 64 * 1024

LEASES_PER_CALL_MAX: Final = 100
HEARTBEATS_PER_CALL_MAX: Final = 1_000
REDRIVES_PER_CALL_MAX: Final = 1_000
REQUESTS_REMEMBERED_MAX: Final = 10_000
GRANTS_REMEMBERED_MAX: Final = 100_000
REPORT_REPEAT_S: Final = 1.0
REPORT_WAIT_S: Final = 5.0
CLAIM_WAIT_S: Final = 3.0
LEASE_CALLS_MAX: Final = 2_000
OUTPUT_BYTES_MAX: Final = 4 * 1024

WORKERS_MAX: Final = 10_000
WORKER_KEPT_US: Final = 600 * 1_000_000
"""A worker over HTTP that has asked and reported nothing for so long is not listed any more."""
WORKER_ID_CHARS_MAX: Final = 256
POOLS_PER_CALL_MAX: Final = 100
HANDLERS_PER_CALL_MAX: Final = 1_000

LIMIT_MAX: Final = 1_000_000_000
"""Of a tenant's limit; what is larger is a mistake, or meant as none."""

SCHEDULE_CHECKS_KEPT_MAX: Final = 256
CLOCK_CHANGES_SHOWN_MAX: Final = 100
