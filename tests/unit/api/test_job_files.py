import pytest

from horolog.api.faults import Refused
from horolog.api.job_files import decode, jobs_of, yaml_value

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b]\n"


@pytest.mark.parametrize(
    "text, why",
    [
        (BOMB, "f.yaml:1:4 has an anchor"),
        ("a: *x", "alias"),
        ("a: 1\na: 2", "f.yaml:2:1 is no YAML 1.2: found duplicate key"),
        ("[" * 20_000, "deeper than 20"),
        ("a: !!python/object:os.system ls", "has a tag"),
        ("a: !x 1", "has a tag"),
        ("a: .inf", "inf"),
        ("1: 2", "quote it"),
        ("---\na: 1\n---\nb: 2", "second document"),
        ("<<: {a: 1}", "merges"),
        ("%YAML 1.1\n---\na: no", "another version"),
        ("a: {b: [1,2}", "f.yaml:1:12"),
        ('a: "\\ud800"', "surrogate"),
        ("a: \x00", "no YAML"),
    ],
)
def test_yaml_that_is_hostile_or_ambiguous_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        yaml_value(text.encode(), "f.yaml")


def test_yaml_words_that_version_1_1_misread_stay_what_they_are() -> None:
    text = b"a: no\nb: on\nc: 1:30\nd: 2026-12-24T09:00\ne: 010\nf: 2026-01-01T00:00:00Z"
    assert yaml_value(text, "f.yaml") == {
        "a": "no",
        "b": "on",
        "c": "1:30",
        "d": "2026-12-24T09:00",
        "e": 10,
        "f": "2026-01-01T00:00:00Z",
    }


def test_file_larger_than_the_limit_is_refused_unread() -> None:
    with pytest.raises(Refused, match="more than 1048576"):
        decode(b"#" * (1024 * 1024 + 1), "f.yaml")


@pytest.mark.parametrize(
    "name, text",
    [
        ("f.yaml", "jobs: {a: {target: {command: [echo]}}}"),
        ("f.json", '{"jobs": {"a": {"target": {"command": ["echo"]}}}}'),
        ("f.toml", '[jobs.a.target]\ncommand = ["echo"]'),
    ],
)
def test_job_file_in_each_format_has_the_same_jobs(name: str, text: str) -> None:
    assert jobs_of(text.encode(), name) == (None, {"a": {"target": {"command": ["echo"]}}})


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "no object"),
        ("[]", "no object"),
        ("job: {}", "the field 'job'"),
        ("tenant: 5\njobs: {}", "tenant 5"),
        ("jobs: []", "no field jobs"),
    ],
)
def test_job_file_of_another_shape_is_refused(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        jobs_of(text.encode(), "f.yaml")
