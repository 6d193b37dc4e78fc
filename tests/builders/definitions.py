"""Definitions of jobs that the API accepts, as Hypothesis strategies."""

import msgspec
from hypothesis import strategies as st

from horolog.schemas.records import (
    CatchUp,
    ContainerTarget,
    Gap,
    HttpTarget,
    JobDefinition,
    Overlap,
    OverlapHour,
    Owner,
    RetryPolicy,
    Schedule,
    Target,
    Tier,
)

S = 1_000_000
DAY_US = 86_400 * S
LAST_US = 4_102_444_800 * S

durations = st.integers(min_value=0, max_value=7 * DAY_US)
instants = st.integers(min_value=0, max_value=LAST_US)
texts = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
names = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
mappings = st.dictionaries(names, texts, max_size=3)

_zones = st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"])
_kinds = st.one_of(
    st.just(Schedule()),
    st.builds(
        Schedule,
        cron=st.sampled_from(["0 6 * * 1-5", "@daily", "H * * * *"]),
        second=st.none() | st.just("30"),
    ),
    st.builds(Schedule, every_us=durations, anchor_us=instants),
    st.builds(Schedule, at=st.sampled_from(["2026-12-24T09:00", "2026-12-24T09:00:00Z"])),
)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Schedules of each kind."""
    return msgspec.structs.replace(
        draw(_kinds),
        timezone=draw(_zones),
        gap=draw(st.sampled_from(Gap)),
        overlap_hour=draw(st.sampled_from(OverlapHour)),
        jitter_us=draw(durations),
        start_us=draw(st.none() | instants),
        end_us=draw(st.none() | instants),
    )


targets = st.one_of(
    st.builds(Target, handler=names),
    st.builds(Target, command=st.lists(texts, min_size=1, max_size=3).map(tuple)),
    st.builds(
        Target,
        http=st.builds(
            HttpTarget, url=st.just("https://x.example/run"), method=names, headers=mappings
        ),
    ),
    st.builds(
        Target,
        container=st.builds(
            ContainerTarget,
            image=names,
            args=st.lists(texts, max_size=2).map(tuple),
            env=mappings,
            cpu_milli=st.integers(min_value=0, max_value=64_000),
            memory_bytes=st.integers(min_value=0, max_value=2**40),
        ),
    ),
)

payloads = st.one_of(
    st.tuples(st.binary(max_size=30), st.sampled_from(["application/json", "text/plain"])),
    st.sampled_from(
        [
            (b'{"region":"eu"}', "application/json"),
            (b'{"a": 1}', "application/json"),
            (b"null", "application/json"),
            (b"1e999", "application/json"),
            ("{\N{SNOWMAN}}".encode(), "text/plain; charset=utf-8"),
            (b"[1]", "application/vnd.x+json"),
        ]
    ),
)


@st.composite
def definitions(draw: st.DrawFn) -> JobDefinition:
    """Definitions with any value in any field that has a type, contradictory ones too."""
    payload, content_type = draw(payloads)
    return JobDefinition(
        schedule=draw(schedules()),
        target=draw(targets),
        payload=payload,
        content_type=content_type,
        timeout_us=draw(durations),
        kill_grace_us=draw(durations),
        retry=RetryPolicy(
            max=draw(st.integers(0, 100)),
            backoff_us=draw(durations),
            max_backoff_us=draw(durations),
            lost_max=draw(st.integers(0, 100)),
            on_timeout=draw(st.booleans()),
        ),
        priority=draw(st.sampled_from(Tier)),
        pool=draw(names),
        catch_up=draw(st.sampled_from(CatchUp)),
        overlap=draw(st.sampled_from(Overlap)),
        starting_deadline_us=draw(st.none() | durations),
        lease_term_us=draw(durations),
        owner=Owner(name=draw(texts), notify=draw(texts)),
        labels=draw(mappings),
        description=draw(texts),
    )
