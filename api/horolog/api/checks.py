"""What a definition must keep beyond the types of its fields. Pure; a table, one line a rule.

The scheduler checks again what counts for safety (`streams.scheduler.definitions`), since direct
producers pass no API; here each rule is told to a user in the user's words.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from horolog.api.faults import Fault, shown
from horolog.api.limits import PAYLOAD_BYTES_MAX
from horolog.api.values import US_PER_S, duration_text
from horolog.schemas.errors import (
    CONTRADICTION,
    INVALID_FIELD,
    INVALID_SCHEDULE,
    TOO_LARGE,
    ErrorCode,
)
from horolog.schemas.ids import JOB_NAME_PATTERN, TENANT_PATTERN, is_job_name, is_tenant
from horolog.schemas.records import CatchUp, JobDefinition, JobId, Overlap
from horolog.streams.calendar import Zones, near_matches
from horolog.streams.calendar import check as check_schedule
from horolog.streams.host.tzdata import zone_names
from horolog.streams.limits import LEASE_TERM_MAX_US, LEASE_TERM_MIN_US, MISSED_AFTER_US
from horolog.streams.scheduler.definitions import (
    BACKOFF_MAX_US,
    KILL_GRACE_MAX_US,
    LABELS_MAX,
    RETRIES_MAX,
    TIMEOUT_MAX_US,
)

_LABEL_CHARS_MAX: Final = 256
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")
_MEDIA_TYPE: Final = re.compile(r"[!#$&^\w.+-]+/[!#$&^\w.+-]+(?:\s*;.*)?", re.ASCII)
"""Type and subtype, then parameters (RFC 6838, 4.2)."""
_POOL_RIGHT: Final = "lower-case letters, digits and hyphens, at most 63"
STOP_MARGIN_US: Final = 5 * US_PER_S
"""A worker stops itself its kill grace and some seconds before its lease ends."""


@dataclass(frozen=True)
class Rule:
    """One rule over a definition.

    broken: whether it is broken; value: what stands there; right: what would be right.
    """

    pointer: str
    broken: Callable[[JobDefinition], bool]
    value: Callable[[JobDefinition], str]
    right: str
    error: ErrorCode = INVALID_FIELD


def _between(
    pointer: str, of: Callable[[JobDefinition], int], least_us: int, most_us: int, why: str
) -> Rule:
    return Rule(
        pointer,
        lambda d: not least_us <= of(d) <= most_us,
        lambda d: duration_text(of(d)),
        f"is not from {duration_text(least_us)} to {duration_text(most_us)}{why}",
    )


def _count(pointer: str, of: Callable[[JobDefinition], int], least: int, most: int) -> Rule:
    return Rule(
        pointer,
        lambda d: not least <= of(d) <= most,
        lambda d: str(of(d)),
        f"is not from {least} to {most}",
    )


def _targets(d: JobDefinition) -> list[str]:
    given = {
        "handler": d.target.handler is not None,
        "command": d.target.command is not None,
        "http": d.target.http is not None,
        "container": d.target.container is not None,
    }
    return [name for name, is_given in given.items() if is_given]


def _url(d: JobDefinition) -> str:
    return "" if d.target.http is None else d.target.http.url


def _method(d: JobDefinition) -> str:
    return "GET" if d.target.http is None else d.target.http.method


def _argv(d: JobDefinition) -> list[str]:
    return ["program"] if d.target.command is None else list(d.target.command)


def _deadline(d: JobDefinition) -> int:
    """0 when there is none."""
    return d.starting_deadline_us or 0


def _is_web(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def _image(d: JobDefinition) -> str:
    return "image" if d.target.container is None else d.target.container.image


def _bad_label(d: JobDefinition) -> str | None:
    """Name of a label that cannot be."""
    for name, value in d.labels.items():
        if not _LABEL.fullmatch(name) or len(name) + len(value) > _LABEL_CHARS_MAX:
            return name
    return None


_AMOUNTS: Final[tuple[Rule, ...]] = (
    _between("/timeout", lambda d: d.timeout_us, US_PER_S, TIMEOUT_MAX_US, ""),
    _between("/killGrace", lambda d: d.kill_grace_us, 0, KILL_GRACE_MAX_US, ""),
    _between("/leaseTerm", lambda d: d.lease_term_us, LEASE_TERM_MIN_US, LEASE_TERM_MAX_US, ""),
    _count("/retry/max", lambda d: d.retry.max, 0, RETRIES_MAX),
    _count("/retry/lostMax", lambda d: d.retry.lost_max, 0, RETRIES_MAX),
    _between(
        "/retry/backoff",
        lambda d: d.retry.backoff_us,
        US_PER_S,
        BACKOFF_MAX_US,
        "; a retry without a pause hammers what just failed",
    ),
    Rule(
        "/retry/maxBackoff",
        lambda d: d.retry.max_backoff_us > BACKOFF_MAX_US,
        lambda d: duration_text(d.retry.max_backoff_us),
        f"is more than {duration_text(BACKOFF_MAX_US)}",
    ),
    Rule(
        "/startingDeadline",
        lambda d: d.starting_deadline_us is not None and _deadline(d) < US_PER_S,
        lambda d: duration_text(_deadline(d)),
        "is less than 1s; leave it out to have none",
    ),
    Rule(
        "/payload",
        lambda d: len(d.payload) > PAYLOAD_BYTES_MAX,
        lambda d: f"{len(d.payload)} bytes",
        f"is more than {PAYLOAD_BYTES_MAX} bytes (256 KiB); store it elsewhere, send a reference",
        TOO_LARGE,
    ),
    Rule(
        "/labels",
        lambda d: len(d.labels) > LABELS_MAX,
        lambda d: f"{len(d.labels)} labels",
        f"are more than {LABELS_MAX}",
    ),
    Rule(
        "/labels",
        lambda d: _bad_label(d) is not None,
        lambda d: shown(_bad_label(d) or ""),
        "is no label: a name is letters, digits, and . _ / - within, and with its value has at "
        f"most {_LABEL_CHARS_MAX} characters",
    ),
)

_TARGETS: Final[tuple[Rule, ...]] = (
    Rule(
        "/target",
        lambda d: not _targets(d),
        lambda _: "{}",
        "names nothing to run; give one of handler, command, http, container",
    ),
    Rule(
        "/target",
        lambda d: len(_targets(d)) > 1,
        lambda d: " and ".join(_targets(d)),
        "are given; a target is exactly one of handler, command, http, container",
        CONTRADICTION,
    ),
    Rule(
        "/target/handler",
        lambda d: d.target.handler == "",
        lambda _: '""',
        "is empty; give the name of a registered function",
    ),
    Rule(
        "/target/command",
        lambda d: not any(_argv(d)[:1]),
        lambda d: shown(_argv(d)),
        'has no program; give a program and its arguments, as ["/bin/echo", "hi"]',
    ),
    Rule(
        "/target/command",
        lambda d: any("\0" in part for part in _argv(d)),
        lambda d: shown(_argv(d)),
        "holds a NUL, which no argument can",
    ),
    Rule(
        "/target/http/url",
        lambda d: d.target.http is not None and not _is_web(_url(d)),
        lambda d: shown(_url(d)),
        "is no absolute http or https address",
    ),
    Rule(
        "/target/http/method",
        lambda d: not (_method(d).isalpha() and _method(d).isupper()),
        lambda d: shown(_method(d)),
        "is no request method; write it in capitals, as POST",
    ),
    Rule(
        "/target/container/image",
        lambda d: not _image(d).strip(),
        lambda d: shown(_image(d)),
        "is empty; give the name of an image, as busybox:1.36",
    ),
    Rule(
        "/contentType",
        lambda d: not _MEDIA_TYPE.fullmatch(d.content_type),
        lambda d: shown(d.content_type),
        "is no media type; write type/subtype, as application/json",
    ),
    Rule(
        "/owner/notify",
        lambda d: d.owner.notify != "" and not _is_web(d.owner.notify),
        lambda d: shown(d.owner.notify),
        "is no absolute http or https address",
    ),
    Rule(
        "/pool",
        lambda d: not is_tenant(d.pool),
        lambda d: shown(d.pool),
        f"is no name of a pool: {_POOL_RIGHT}",
    ),
)

_CONTRADICTIONS: Final[tuple[Rule, ...]] = (
    Rule(
        "/retry/maxBackoff",
        lambda d: d.retry.max_backoff_us < d.retry.backoff_us,
        lambda d: duration_text(d.retry.max_backoff_us),
        "is less than backoff; the longest delay is at least the first",
        CONTRADICTION,
    ),
    Rule(
        "/leaseTerm",
        lambda d: LEASE_TERM_MIN_US <= d.lease_term_us <= d.kill_grace_us + STOP_MARGIN_US,
        lambda d: duration_text(d.lease_term_us),
        f"is not more than killGrace + {duration_text(STOP_MARGIN_US)}, the time a worker needs "
        "to stop a run",
        CONTRADICTION,
    ),
    Rule(
        "/startingDeadline",
        lambda d: d.catch_up is CatchUp.ALL and US_PER_S <= _deadline(d) <= MISSED_AFTER_US,
        lambda d: duration_text(_deadline(d)),
        "contradicts catchUp: all: a slot is missed when it is more than "
        f"{duration_text(MISSED_AFTER_US)} late, so each made-up run would be too late; give a "
        "longer deadline, or catchUp: skip",
        CONTRADICTION,
    ),
    Rule(
        "/overlap",
        lambda d: d.catch_up is CatchUp.ALL and d.overlap is Overlap.REPLACE,
        lambda d: d.overlap.value,
        "contradicts catchUp: all: a fresh slot would cancel the made-up runs; use overlap: queue, "
        "or catchUp: one",
        CONTRADICTION,
    ),
)

RULES: Final = (*_AMOUNTS, *_TARGETS, *_CONTRADICTIONS)


def faults_of(definition: JobDefinition, job_id: JobId, now_us: int, zones: Zones) -> list[Fault]:
    """All that is wrong with a definition, by the job file's pointers; none: it can be a job."""
    found = [
        Fault(
            pointer=rule.pointer,
            detail=f"{rule.value(definition)} {rule.right}",
            error=rule.error,
        )
        for rule in RULES
        if rule.broken(definition)
    ]
    return found + list(_schedule(definition, job_id, now_us, zones))


def _schedule(d: JobDefinition, job_id: JobId, now_us: int, zones: Zones) -> Iterator[Fault]:
    for problem in check_schedule(d.schedule, job_id, now_us, zones):
        contradicts = "contradicts" in problem.detail
        value, hint = problem.value, problem.hint
        if problem.field == "timezone":
            hint = _zone_hint(value, hint)
        if problem.field == "every_us" and value.lstrip("-").isdigit():
            value = duration_text(int(value))
        yield Fault(
            pointer=pointer_of(f"schedule.{problem.field}"),
            detail=f"{shown(value)}: {problem.detail}" + (f"; {hint}" if hint else ""),
            error=CONTRADICTION if contradicts else INVALID_SCHEDULE,
            hint=hint,
        )


def _zone_hint(zone: str, otherwise: str) -> str:
    """Zones that were likely meant, of all there are: the calendar knows only those in use."""
    near = near_matches(zone, zone_names())
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def pointer_of(record_field: str) -> str:
    """Pointer in a job file of a field of `JobDefinition`: `retry.max_backoff_us` is
    `/retry/maxBackoff`.
    """
    return "/" + "/".join(_camel(part.removesuffix("_us")) for part in record_field.split("."))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def id_faults(tenant: str, name: str, pointer: str) -> list[Fault]:
    """What is wrong with the parts of a job ID."""
    faults: list[Fault] = []
    if not is_tenant(tenant):
        detail = f"{shown(tenant)} is no tenant; its form is {TENANT_PATTERN}"
        faults.append(Fault(pointer=pointer, detail=detail))
    if not is_job_name(name):
        detail = f"{shown(name)} is no name of a job; its form is {JOB_NAME_PATTERN}"
        faults.append(Fault(pointer=pointer, detail=detail))
    return faults
