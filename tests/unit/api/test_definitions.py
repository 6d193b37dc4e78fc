import pytest

from horolog.api.definition_models import JobRequest
from horolog.api.definitions import definition_of, read_spec, spec_of
from horolog.api.faults import Refused
from horolog.api.json_values import Json
from horolog.api.merge_patch import merge
from horolog.api.short_form import canonical, canonical_patch
from horolog.api.zone_table import ZoneTable
from horolog.schemas.errors import CONTRADICTION, UNKNOWN_FIELD
from horolog.schemas.records import JobDefinition, Schedule, Target

ZONES = ZoneTable()
ECHO: dict[str, Json] = {"command": ["echo", "hi"]}
S = 1_000_000


def read(raw: dict[str, Json]) -> JobDefinition:
    """The definition; what is taken must also fit the model that OpenAPI shows."""
    whole: dict[str, Json] = {"target": ECHO, **raw}
    definition = definition_of(read_spec(whole), ZONES)
    JobRequest.model_validate(whole)
    return definition


def test_model_of_the_document_has_every_field_of_both_forms() -> None:
    everything: dict[str, Json] = {
        "schedule": {"every": "1h", "jitterS": 1.5, "anchor": "2026-12-01T00:00:00Z"},
        "timezone": "Europe/Paris",
        "timeoutS": 60,
        "killGraceS": 5,
        "leaseTermS": 30,
        "startingDeadlineS": 900,
        "retry": {"max": 1, "backoffS": 10, "maxBackoffS": 60},
    }
    assert spec_of(read(everything)) == spec_of(
        read(
            {
                "schedule": {
                    "every": "1h",
                    "jitter": "1.5s",
                    "anchor": "2026-12-01T00:00:00Z",
                    "timezone": "Europe/Paris",
                },
                "timeout": "1m",
                "killGrace": "5s",
                "leaseTerm": "30s",
                "startingDeadline": "15m",
                "retry": {"max": 1, "backoff": "10s", "maxBackoff": "1m"},
            }
        )
    )


def test_short_form_and_job_file_form_mean_the_same_definition() -> None:
    short = read(
        {
            "schedule": "0 6 * * 1-5",
            "timezone": "Europe/Paris",
            "timeoutS": 600,
            "startingDeadlineS": 900,
            "retry": {"max": 3, "backoffS": 10, "maxBackoffS": 600},
        }
    )
    long = read(
        {
            "schedule": {"cron": "0 6 * * 1-5", "timezone": "Europe/Paris"},
            "timeout": "10m",
            "startingDeadline": "15m",
            "retry": {"max": 3, "backoff": "10s", "maxBackoff": "10m"},
        }
    )
    assert short == long


def test_run_at_of_the_short_form_is_a_schedule_of_one_instant() -> None:
    made = read({"runAt": "2026-12-24T09:00", "timezone": "Europe/Paris"})
    assert made.schedule == Schedule(at="2026-12-24T09:00", timezone="Europe/Paris")


def test_definition_with_a_target_only_has_the_defaults_of_the_record() -> None:
    assert read({}) == JobDefinition(schedule=Schedule(), target=Target(command=("echo", "hi")))


def test_bounds_in_local_time_are_instants_of_the_schedules_zone() -> None:
    made = read(
        {
            "schedule": {
                "every": "90s",
                "timezone": "Europe/Paris",
                "start": "2026-12-24T09:00",
                "end": "2026-12-25T09:00:00+00:00",
            }
        }
    )
    assert made.schedule.start_us == 1_798_099_200 * S
    assert made.schedule.end_us == 1_798_189_200 * S


@pytest.mark.parametrize(
    "raw, pointer, why",
    [
        ({"shedule": "* * * * *"}, "/shedule", 'did you mean "schedule"'),
        ({"schedule": {"crn": "* * * * *"}}, "/schedule/crn", 'did you mean "cron"'),
        ({"retry": {"max_backoff": "1s"}}, "/retry/max_backoff", 'did you mean "maxBackoff"'),
        ({"target": {"http": {"uri": "x", "url": "y"}}}, "/target/http/uri", 'mean "url"'),
        ({"target": {"shell": "x"}}, "/target/shell", "known are command"),
    ],
)
def test_unknown_field_is_refused_with_the_nearest_known(
    raw: dict[str, Json], pointer: str, why: str
) -> None:
    with pytest.raises(Refused) as refused:
        read(raw)
    (fault,) = refused.value.faults
    assert fault.pointer == pointer
    assert why in fault.detail
    assert fault.error is UNKNOWN_FIELD


@pytest.mark.parametrize(
    "raw, pointer, why",
    [
        ({"timeout": 600}, "/timeout", '600 is not a string with a unit, as "90s"'),
        ({"timeout": "600"}, "/timeout", '"600" is no duration'),
        ({"timeoutS": "600"}, "/timeoutS", "no number of seconds"),
        ({"timeoutS": -1}, "/timeoutS", "no number of seconds"),
        ({"timeoutS": True}, "/timeoutS", "no number of seconds"),
        ({"schedule": 5}, "/schedule", "5 is not an object"),
        ({"priority": "urgent"}, "/priority", "'high', 'normal' or 'low'"),
        ({"overlap": "forbid"}, "/overlap", "'allow', 'skip', 'queue' or 'replace'"),
        ({"retry": {"max": "3"}}, "/retry/max", '"3" is not a whole number'),
        ({"target": {"command": "echo hi"}}, "/target/command", '"echo hi" is not a list'),
        ({"labels": {"a": 1}}, "/labels/a", "1 is not a string"),
        ({"payload": {"a": 1}, "contentType": "text/plain"}, "/payload", "is not a string"),
        ({"payloadBase64": "*"}, "/payloadBase64", "no base64"),
        ({"payloadBase64": "MQ\u00e9="}, "/payloadBase64", "no base64"),
        ({"schedule": {"every": "1m", "start": "soon"}}, "/schedule/start", '"soon"'),
        ({"schedule": {"anchor": "2026-01-01"}}, "/schedule/anchor", "is no instant"),
    ],
)
def test_field_of_another_type_is_refused_with_value_and_what_is_right(
    raw: dict[str, Json], pointer: str, why: str
) -> None:
    with pytest.raises(Refused) as refused:
        read(raw)
    (fault,) = refused.value.faults
    assert fault.pointer == pointer
    assert why in fault.detail


@pytest.mark.parametrize(
    "raw, pointer",
    [
        ({"timeout": "1m", "timeoutS": 60}, "/timeoutS"),
        ({"schedule": {"timezone": "UTC"}, "timezone": "Asia/Tokyo"}, "/timezone"),
        ({"schedule": {"at": "2026-12-24T09:00"}, "runAt": "2026-12-25T09:00"}, "/runAt"),
        ({"payload": 1, "payloadBase64": "MQ=="}, "/payloadBase64"),
        ({"retry": {"backoff": "1s", "backoffS": 1}}, "/retry/backoffS"),
    ],
)
def test_field_given_twice_is_refused_as_a_contradiction(
    raw: dict[str, Json], pointer: str
) -> None:
    with pytest.raises(Refused) as refused:
        read(raw)
    assert [(fault.pointer, fault.error) for fault in refused.value.faults] == [
        (pointer, CONTRADICTION)
    ]


def test_fault_of_a_moved_field_points_to_where_it_stood() -> None:
    assert canonical({"schedule": "* * * * *"}).pointers == {"/schedule/cron": "/schedule"}
    with pytest.raises(Refused) as refused:
        read({"schedule": "* * * * *", "timezone": 5})
    assert refused.value.faults[0].pointer == "/timezone"


@pytest.mark.parametrize("missing", [{}, {"schedule": "* * * * *"}])
def test_definition_without_a_target_is_refused(missing: dict[str, Json]) -> None:
    with pytest.raises(Refused, match="/target is missing"):
        read_spec(missing)


def patched(before: dict[str, Json], patch: dict[str, Json]) -> JobDefinition:
    spec = spec_of(read(before))
    merged = merge(spec, canonical_patch(patch, spec))
    return definition_of(read_spec(merged), ZONES)


def test_patch_with_a_short_field_replaces_what_it_is_short_for() -> None:
    before: dict[str, Json] = {"schedule": {"every": "90s", "timezone": "Asia/Tokyo"}}
    after = patched(before, {"schedule": "0 9 * * *", "timeoutS": 60})
    assert after.schedule == Schedule(cron="0 9 * * *", timezone="Asia/Tokyo")
    assert after.timeout_us == 60 * S


def test_patch_with_null_gives_the_default_back() -> None:
    after = patched({"timeout": "1m", "labels": {"a": "b"}}, {"timeout": None, "labels": None})
    assert after == read({})


def test_patch_of_one_field_leaves_every_other() -> None:
    before: dict[str, Json] = {"schedule": "0 6 * * *", "payload": {"a": [1]}, "retry": {"max": 3}}
    assert patched(before, {"retry": {"backoff": "1m"}}) == read(
        {**before, "retry": {"max": 3, "backoff": "1m"}}
    )
