"""Errors by what the catcher does, and the register of those that a user can see.

A code `HRLnnnn` stands for one meaning for good: a number that was shipped is never used for
another, and one that no longer occurs stays in the register. Each has a page
`docs/errors/HRLnnnn.md`. The slug is what events, replies and problems carry.

The first digit says where to look: 1 what was sent, 2 the state it met, 3 the lease of a run,
4 a part that cannot answer now, 5 this server and its data.
"""

import enum
from typing import Final

import msgspec


class Reaction(enum.Enum):
    """Class of an error: what whoever meets it does."""

    REJECTED = "rejected"
    """A value, not an exception: reply, go on."""
    INVALID_INPUT = "invalid_input"
    """Refuse the request; quarantine the record and take the next."""
    UNAVAILABLE = "unavailable"
    """Retry with limit and back-off, then pause the partition."""
    FENCED = "fenced"
    """Drop the partition at once, never retry."""
    CORRUPT = "corrupt"
    """Stop the partition, keep the evidence, call someone."""
    BUG = "bug"
    """Ours: crash."""


class ErrorCode(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the register."""

    number: str
    """`HRLnnnn`."""
    slug: str
    title: str
    reaction: Reaction
    http_status: int | None
    """None: cannot be the answer to a request."""
    transient: bool
    """Whether the same request may pass later."""
    hint: str
    """What to do next, in one sentence."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was understood and refused."""

    error: ErrorCode
    detail: str
    """What was wrong, with the value, and what would be right."""
    field: str = ""
    """JSON pointer into the command; empty: no single field."""


class HorologError(Exception):
    """Base of the errors below; `error` is the entry of the register."""

    def __init__(self, error: ErrorCode, detail: str, *, field: str = "") -> None:
        super().__init__(f"{error.number} {error.slug}: {detail}")
        self.error = error
        self.detail = detail
        self.field = field


class InvalidInput(HorologError):
    """Malformed at the edge. A request is answered 4xx; a record goes to quarantine."""


class Unavailable(HorologError):
    """A broker, database or registry gave no answer. Retry with limit and back-off."""


class Fenced(HorologError):
    """A newer owner exists. Drop the partition at once, never retry."""


class Corrupt(HorologError):
    """A gap, a bad checksum, an unknown schema in a log. Stop, keep the evidence."""


_REGISTER: Final[list[ErrorCode]] = []


def _entry(
    number: int,
    slug: str,
    reaction: Reaction,
    http_status: int | None,
    title: str,
    hint: str,
    *,
    transient: bool = False,
) -> ErrorCode:
    made = ErrorCode(
        number=f"HRL{number}",
        slug=slug,
        title=title,
        reaction=reaction,
        http_status=http_status,
        transient=transient,
        hint=hint,
    )
    _REGISTER.append(made)
    return made


_R = Reaction.REJECTED
_I = Reaction.INVALID_INPUT
_U = Reaction.UNAVAILABLE
_C = Reaction.CORRUPT

# fmt: off
# One entry, two lines: a table is read by column.
MALFORMED: Final = _entry(1001, "malformed", _I, 400, "The data cannot be decoded",
    "Compare what was sent with the schema or the JSON expected here.")
TOO_LARGE: Final = _entry(1002, "too_large", _I, 413, "The data is larger than its limit",
    "Store what is large elsewhere and send a reference to it.")
INVALID_FIELD: Final = _entry(1003, "invalid_field", _I, 400, "A field has a value it cannot have",
    "The error names the field, its value and what would be right.")
UNKNOWN_FIELD: Final = _entry(1004, "unknown_field", _I, 400, "A field is not known here",
    "Check the spelling; the error names the nearest known field.")
INVALID_SCHEDULE: Final = _entry(1005, "invalid_schedule", _I, 400, "The schedule cannot be used",
    "Try it with `horolog explain`.")
CONTRADICTION: Final = _entry(1006, "contradiction", _I, 400, "Two fields contradict each other",
    "Leave out one of the two fields that the error names.")
UNKNOWN_SCHEMA: Final = _entry(1007, "unknown_schema", _I, 400, "The record's schema is not known",
    "Write with a schema that a release shipped, or upgrade the reader first.")
MISPLACED: Final = _entry(1008, "misplaced", _I, 400, "The record is where it cannot belong",
    "Partition by key as Kafka's Java client does, and write to the tenant's own topic.")
INVALID_CURSOR: Final = _entry(1009, "invalid_cursor", _I, 400, "The page cursor cannot be used",
    "Start again without a cursor, with the filter that is wanted.")
INVALID_SETTING: Final = _entry(1010, "invalid_setting", _I, None, "A setting cannot be used",
    "See all settings and where each comes from with `horolog settings --origin`.")
UNAUTHENTICATED: Final = _entry(1011, "unauthenticated", _I, 401, "No valid credential was sent",
    "Send an API key as `Authorization: Bearer KEY`.")
FORBIDDEN: Final = _entry(1012, "forbidden", _I, 403, "The credential does not allow this",
    "Use a key that has the right that the error names.")
UNKNOWN_PATH: Final = _entry(1013, "unknown_path", _I, 404, "There is nothing at this path",
    "See `/docs` for all paths.")
WRONG_METHOD: Final = _entry(1014, "wrong_method", _I, 405, "The path does not have this method",
    "See `/docs` for the methods of each path.")
WRONG_MEDIA_TYPE: Final = _entry(1015, "wrong_media_type", _I, 415, "The body's type is not taken",
    "Send `application/json`, or `application/merge-patch+json` for PATCH.")

REFUSED: Final = _entry(2000, "refused", _R, 409, "The request was refused",
    "The detail says why; a newer part of the cluster refused it for a reason unknown here.")
UNKNOWN_JOB: Final = _entry(2001, "unknown_job", _R, 404, "There is no such job",
    "List the jobs of the tenant with `horolog jobs`.")
UNKNOWN_RUN: Final = _entry(2002, "unknown_run", _R, 404, "There is no such run",
    "List the runs of the job with `horolog runs JOB`.")
UNKNOWN_TENANT: Final = _entry(2003, "unknown_tenant", _R, 404, "There is no such tenant",
    "List the tenants with `horolog tenants`.")
UNKNOWN_WORKER: Final = _entry(2004, "unknown_worker", _R, 404, "There is no such worker",
    "Name a worker by the ID with which it leases.")
JOB_EXISTS: Final = _entry(2005, "job_exists", _R, 409, "A different job has this name",
    "Change the job with `horolog apply`, or take another name.")
JOB_DELETED: Final = _entry(2006, "job_deleted", _R, 410, "The job was deleted",
    "Create it again if it is wanted.")
VERSION_MISMATCH: Final = _entry(2007, "version_mismatch", _R, 412, "It was changed meanwhile",
    "Read it again, and repeat the change on what it is now.")
KEY_REUSED: Final = _entry(2008, "key_reused", _R, 409, "The key was used for another request",
    "Take a new idempotency key for a new request.")
IN_PROGRESS: Final = _entry(2009, "in_progress", _R, 409, "The first request is not answered yet",
    "Repeat the same request in a moment.", transient=True)
LIMIT: Final = _entry(2010, "limit", _R, 409, "A limit is reached",
    "Wait until open runs have ended, or delete what is no longer needed.", transient=True)
RATE_LIMITED: Final = _entry(2011, "rate_limited", _R, 429, "Too many requests in a short time",
    "Send again after the time in `Retry-After`.", transient=True)
BACKLOG_FULL: Final = _entry(2012, "backlog_full", _R, 429, "The tenant's backlog is full",
    "Wait until runs have started, or raise the limit with `horolog tenant set`.", transient=True)
TOO_MANY_JOBS: Final = _entry(2013, "too_many_jobs", _R, 409, "The tenant may have no more jobs",
    "Delete jobs, or raise the limit with `horolog tenant set`.", transient=True)
RUN_ENDED: Final = _entry(2014, "run_ended", _R, 409, "The run has already ended",
    "Nothing is left to do for this run; trigger the job to run it again.")
RUN_NOT_DEAD: Final = _entry(2015, "run_not_dead", _R, 409, "The run is not a dead letter",
    "List the dead letters with `horolog dead`.")
NOT_BACKFILLABLE: Final = _entry(2016, "not_backfillable", _R, 409, "Slots cannot be backfilled",
    "See which slots were skipped with `horolog backfill JOB --dry-run`.")
UNKNOWN_PROJECTION: Final = _entry(2017, "unknown_projection", _R, 404,
    "There is no such projection", "`horolog projections status` lists those there are.")

TAKEN: Final = _entry(3001, "taken", _R, 409, "Another worker has the run",
    "Take the next run.")
NOT_YET: Final = _entry(3002, "not_yet", _R, 409, "The run is not due yet",
    "Ask again at the time given.", transient=True)
STALE_PLAN: Final = _entry(3003, "stale_plan", _R, 409, "The run was planned anew since",
    "Take the next run; this one is offered again.")
GONE: Final = _entry(3004, "gone", _R, 410, "The run is not open any more",
    "Take the next run.")
STALE_TOKEN: Final = _entry(3005, "stale_token", _R, 409, "The lease has ended",
    "Stop this attempt: its result does not count.")
MISSING_TOKEN: Final = _entry(3006, "missing_token", _I, 400, "The report has no fencing token",
    "Send back the `fencingToken` and `claimId` that came with the lease.")

UNAVAILABLE: Final = _entry(4001, "unavailable", _U, 503, "A part did not answer in time",
    "Repeat the same request with the same key.", transient=True)
BEHIND: Final = _entry(4002, "behind", _U, 503, "The view is older than the position asked for",
    "Read again in a moment.", transient=True)
SHUTTING_DOWN: Final = _entry(4003, "shutting_down", _U, 503, "The server is stopping",
    "Repeat the same request; another instance answers, or this one, restarted.", transient=True)
DISK_FULL: Final = _entry(4004, "disk_full", _U, 503, "There is no room to write the log",
    "Make room on the volume that holds the data folder.", transient=True)
UNREACHABLE: Final = _entry(4005, "unreachable", _U, None, "No server answers at this address",
    "Start one with `horolog up`, or name another with `--server`.", transient=True)
FENCED: Final = _entry(4006, "fenced", Reaction.FENCED, 503, "A newer owner has the partition",
    "Repeat the same request; the new owner answers.", transient=True)
CLOCK_DISAGREES: Final = _entry(4010, "clock_disagrees", _U, None, "This host's clock is wrong",
    "Have its clock set by NTP; until then other hosts do its work.", transient=True)

DATA_DIR_LOCKED: Final = _entry(5001, "data_dir_locked", _U, None, "Another process uses the data",
    "Stop the other process, or name another folder with `--data`.")
DATA_DIR_CORRUPT: Final = _entry(5002, "data_dir_corrupt", _C, 503, "The log is damaged",
    "Keep the folder as it is, and follow the page of this error.")
DATA_DIR_UNUSABLE: Final = _entry(5003, "data_dir_unusable", _U, None, "The folder cannot be used",
    "Give this user the right to write to it, or name another with `--data`.")
PORT_IN_USE: Final = _entry(5004, "port_in_use", _U, None, "Another process listens on the port",
    "Name another with `--port`.")
NEWER_FORMAT: Final = _entry(5005, "newer_format", _C, None, "The data is of a newer release",
    "Start the release that wrote it, or a later one.")
NOT_IDENTICAL: Final = _entry(5006, "not_identical", _C, None, "A replay gave another state",
    "Keep the folder as it is, and report the first difference.")
INTERNAL: Final = _entry(5007, "internal", Reaction.BUG, 500, "The server made a mistake",
    "Report it with the request ID; the log of the server holds the rest.")
# fmt: on

ERRORS: Final[tuple[ErrorCode, ...]] = tuple(_REGISTER)
"""The register, in order of number."""

_BY_SLUG: Final = {one.slug: one for one in ERRORS}


def error_of(slug: str) -> ErrorCode:
    """Entry of a slug as it stands in events and replies.

    A slug of a newer release is read as `refused`: a reader must not stop at it.
    """
    return _BY_SLUG.get(slug, REFUSED)
