"""What a definition must keep to be a job, whoever sends it.

The API refuses the same things earlier and with JSON pointers; this is the check that counts, for
direct producers too.
"""

from collections.abc import Iterator

import msgspec

from horolog.schemas.records import JobDefinition, JobId, Target
from horolog.streams.calendar import Zones
from horolog.streams.calendar import check as check_schedule
from horolog.streams.limits import (
    LEASE_TERM_MAX_US,
    LEASE_TERM_MIN_US,
    PAYLOAD_BYTES_MAX,
    SECOND_US,
)

RETRIES_MAX = 100
LABELS_MAX = 20
TIMEOUT_MAX_US = 7 * 24 * 3600 * SECOND_US
BACKOFF_MAX_US = 24 * 3600 * SECOND_US
KILL_GRACE_MAX_US = 60 * SECOND_US


class Fault(msgspec.Struct, frozen=True):
    """A field that is not right: where, what it is, and what would be right."""

    field: str
    value: str
    detail: str


def faults_of(
    definition: JobDefinition, job_id: JobId, now_us: int, zones: Zones
) -> tuple[Fault, ...]:
    """All that is wrong with a definition; none: it can be a job."""
    found = [*_target(definition.target), *_amounts(definition), *_policies(definition)]
    found += [
        Fault(
            f"schedule.{problem.field}", problem.value, f"{problem.detail} {problem.hint}".strip()
        )
        for problem in check_schedule(definition.schedule, job_id, now_us, zones)
    ]
    return tuple(found)


def _target(target: Target) -> Iterator[Fault]:
    named = [
        name
        for name in ("handler", "command", "http", "container")
        if getattr(target, name) is not None
    ]
    if len(named) != 1:
        yield Fault("target", ", ".join(named), "exactly one of handler, command, http, container")
    if target.command is not None and (not target.command or not target.command[0]):
        yield Fault("target.command", "", "a program and its arguments, at least the program")
    if target.http is not None and not target.http.url.startswith(("http://", "https://")):
        yield Fault("target.http.url", target.http.url, "an absolute http or https address")
    if target.handler == "":
        yield Fault("target.handler", "", "the name of a registered function")


def _amounts(definition: JobDefinition) -> Iterator[Fault]:
    retry = definition.retry
    ranges = (
        ("timeout_us", definition.timeout_us, SECOND_US, TIMEOUT_MAX_US),
        ("kill_grace_us", definition.kill_grace_us, 0, KILL_GRACE_MAX_US),
        ("lease_term_us", definition.lease_term_us, LEASE_TERM_MIN_US, LEASE_TERM_MAX_US),
        ("retry.max", retry.max, 0, RETRIES_MAX),
        ("retry.lost_max", retry.lost_max, 0, RETRIES_MAX),
        ("retry.backoff_us", retry.backoff_us, SECOND_US, BACKOFF_MAX_US),
        ("retry.max_backoff_us", retry.max_backoff_us, retry.backoff_us, BACKOFF_MAX_US),
    )
    for field, value, least, most in ranges:
        if not least <= value <= most:
            yield Fault(field, str(value), f"from {least} to {most}")
    if len(definition.payload) > PAYLOAD_BYTES_MAX:
        yield Fault(
            "payload", f"{len(definition.payload)} bytes", f"at most {PAYLOAD_BYTES_MAX} bytes"
        )
    if len(definition.labels) > LABELS_MAX:
        yield Fault("labels", f"{len(definition.labels)} labels", f"at most {LABELS_MAX}")
    if not definition.pool:
        yield Fault("pool", "", "the name of a pool of workers")


def _policies(definition: JobDefinition) -> Iterator[Fault]:
    deadline = definition.starting_deadline_us
    if deadline is not None and deadline < SECOND_US:
        yield Fault("starting_deadline_us", str(deadline), f"at least {SECOND_US}, or absent")
    # A worker stops itself kill_grace + 3 s before the term ends; less than that is no lease.
    if definition.lease_term_us <= definition.kill_grace_us + 5 * SECOND_US:
        yield Fault(
            "lease_term_us",
            str(definition.lease_term_us),
            "more than kill_grace_us + 5 s, the time a worker needs to stop a run",
        )
