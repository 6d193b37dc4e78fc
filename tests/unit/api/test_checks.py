import msgspec
import pytest

from horolog.api.checks import RULES, faults_of, id_faults, pointer_of
from horolog.api.zone_table import ZoneTable
from horolog.schemas.errors import (
    CONTRADICTION,
    INVALID_FIELD,
    INVALID_SCHEDULE,
    TOO_LARGE,
    ErrorCode,
)
from horolog.schemas.records import (
    CatchUp,
    ContainerTarget,
    HttpTarget,
    JobDefinition,
    JobId,
    Overlap,
    Owner,
    RetryPolicy,
    Schedule,
    Target,
)
from horolog.streams.scheduler.definitions import faults_of as faults_of_scheduler

S = 1_000_000
NOW_US = 1_714_996_800 * S
JOB = JobId("acme.nightly")
ZONES = ZoneTable()
GOOD = JobDefinition(
    schedule=Schedule(cron="0 6 * * 1-5", timezone="Europe/Paris"),
    target=Target(command=("/bin/echo", "hi")),
)


def faults(definition: JobDefinition) -> list[tuple[str, ErrorCode]]:
    zones = ZONES.with_zone(definition.schedule.timezone)
    return [(one.pointer, one.error) for one in faults_of(definition, JOB, NOW_US, zones)]


def test_definition_that_is_right_has_no_fault() -> None:
    assert faults(GOOD) == []


BROKEN: list[tuple[dict[str, object], str, ErrorCode]] = [
    ({"timeout_us": 0}, "/timeout", INVALID_FIELD),
    ({"timeout_us": 8 * 86_400 * S}, "/timeout", INVALID_FIELD),
    ({"kill_grace_us": 61 * S, "lease_term_us": 90 * S}, "/killGrace", INVALID_FIELD),
    ({"lease_term_us": 601 * S}, "/leaseTerm", INVALID_FIELD),
    ({"lease_term_us": 9 * S}, "/leaseTerm", INVALID_FIELD),
    ({"retry": RetryPolicy(max=101)}, "/retry/max", INVALID_FIELD),
    ({"retry": RetryPolicy(max=-1)}, "/retry/max", INVALID_FIELD),
    ({"retry": RetryPolicy(lost_max=101)}, "/retry/lostMax", INVALID_FIELD),
    ({"retry": RetryPolicy(backoff_us=0)}, "/retry/backoff", INVALID_FIELD),
    ({"retry": RetryPolicy(max_backoff_us=90_000 * S)}, "/retry/maxBackoff", INVALID_FIELD),
    (
        {"retry": RetryPolicy(backoff_us=20 * S, max_backoff_us=10 * S)},
        "/retry/maxBackoff",
        CONTRADICTION,
    ),
    ({"lease_term_us": 15 * S}, "/leaseTerm", CONTRADICTION),
    ({"starting_deadline_us": 0}, "/startingDeadline", INVALID_FIELD),
    (
        {"starting_deadline_us": 60 * S, "catch_up": CatchUp.ALL},
        "/startingDeadline",
        CONTRADICTION,
    ),
    ({"overlap": Overlap.REPLACE, "catch_up": CatchUp.ALL}, "/overlap", CONTRADICTION),
    ({"target": Target()}, "/target", INVALID_FIELD),
    ({"target": Target(handler="a", command=("b",))}, "/target", CONTRADICTION),
    ({"target": Target(handler="")}, "/target/handler", INVALID_FIELD),
    ({"target": Target(command=())}, "/target/command", INVALID_FIELD),
    ({"target": Target(command=("", "a"))}, "/target/command", INVALID_FIELD),
    ({"target": Target(command=("a", "b\0"))}, "/target/command", INVALID_FIELD),
    ({"target": Target(http=HttpTarget(url="ftp://x"))}, "/target/http/url", INVALID_FIELD),
    (
        {"target": Target(http=HttpTarget(url="http://x", method="GET x"))},
        "/target/http/method",
        INVALID_FIELD,
    ),
    ({"payload": b"x" * (256 * 1024 + 1)}, "/payload", TOO_LARGE),
    ({"pool": "No Pool"}, "/pool", INVALID_FIELD),
    ({"labels": {f"l{i}": "" for i in range(21)}}, "/labels", INVALID_FIELD),
    ({"labels": {"": "x"}}, "/labels", INVALID_FIELD),
    ({"labels": {"a b": "x"}}, "/labels", INVALID_FIELD),
    ({"content_type": "text"}, "/contentType", INVALID_FIELD),
    (
        {"target": Target(container=ContainerTarget(image=" "))},
        "/target/container/image",
        INVALID_FIELD,
    ),
    ({"owner": Owner(notify="mail me")}, "/owner/notify", INVALID_FIELD),
    ({"schedule": Schedule(cron="* * * *")}, "/schedule/cron", INVALID_SCHEDULE),
    ({"schedule": Schedule(cron="0 0 30 2 *")}, "/schedule/cron", INVALID_SCHEDULE),
    (
        {"schedule": Schedule(cron="* * * * *", every_us=S)},
        "/schedule/every",
        CONTRADICTION,
    ),
    ({"schedule": Schedule(timezone="Berlin")}, "/schedule/timezone", INVALID_SCHEDULE),
    ({"schedule": Schedule(at="2024-01-01T00:00:00Z")}, "/schedule/at", INVALID_SCHEDULE),
]


@pytest.mark.parametrize(
    "fields, pointer, error",
    BROKEN,
    ids=[f"{pointer}-{i}" for i, (_, pointer, _) in enumerate(BROKEN)],
)
def test_definition_that_breaks_one_rule_has_that_fault(
    fields: dict[str, object], pointer: str, error: ErrorCode
) -> None:
    assert faults(msgspec.structs.replace(GOOD, **fields)) == [(pointer, error)]


def test_rules_without_a_broken_example_do_not_exist() -> None:
    broken = {pointer for _, pointer, _ in BROKEN}
    assert {rule.pointer for rule in RULES} <= broken


@pytest.mark.parametrize("fields", [fields for fields, _, _ in BROKEN])
def test_what_the_scheduler_refuses_the_api_refuses_too(fields: dict[str, object]) -> None:
    definition = msgspec.structs.replace(GOOD, **fields)
    zones = ZONES.with_zone(definition.schedule.timezone)
    if faults_of_scheduler(definition, JOB, NOW_US, zones):
        assert faults(definition)


def test_pointer_of_a_record_field_is_that_of_the_job_file() -> None:
    assert pointer_of("retry.max_backoff_us") == "/retry/maxBackoff"
    assert pointer_of("schedule.overlap_hour") == "/schedule/overlapHour"


@pytest.mark.parametrize(
    "tenant, name", [("Acme", "a"), ("", "a"), ("a" * 64, "a"), ("a", "A"), ("a", "x/y"), ("a", "")]
)
def test_job_id_with_a_part_of_another_form_has_a_fault(tenant: str, name: str) -> None:
    (fault,) = id_faults(tenant, name, "/name")
    assert fault.pointer == "/name"
    assert "its form is" in fault.detail
