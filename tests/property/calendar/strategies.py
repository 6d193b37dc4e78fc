"""Expressions that a user may write, each form of the dialect about as often as any other."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

MONTH_NAMES = ("JAN", "feb", "Mar", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAY_NAMES = ("SUN", "mon", "Tue", "WED", "THU", "FRI", "SAT")


def _range(low: int, high: int) -> SearchStrategy[tuple[int, int]]:
    pair = st.tuples(st.integers(low, high), st.integers(low, high))
    return pair.map(lambda p: (min(p), max(p))).filter(lambda p: p[0] < p[1])


def plain_term(low: int, high: int) -> SearchStrategy[str]:
    """`a`, `a-b`, `a-b/n`, without a star: a term that all crons read alike."""
    return st.one_of(
        st.integers(low, high).map(str),
        _range(low, high).map(lambda p: f"{p[0]}-{p[1]}"),
        st.tuples(_range(low, high), st.integers(1, high)).map(
            lambda t: f"{t[0][0]}-{t[0][1]}/{t[1]}"
        ),
    )


def plain_field(low: int, high: int) -> SearchStrategy[str]:
    """A star, a stepped star, or a list of one to three terms."""
    terms = st.lists(plain_term(low, high), min_size=1, max_size=3).map(",".join)
    return st.one_of(
        st.just("*"), st.integers(1, high).map("*/{}".format), terms, plain_term(low, high)
    )


def wrapping_term(low: int, high: int) -> SearchStrategy[str]:
    """What is ours: `a/n`, ranges that run backwards, ranges of one."""
    number = st.integers(low, high)
    return st.one_of(
        st.tuples(number, st.integers(1, high)).map(lambda t: f"{t[0]}/{t[1]}"),
        st.tuples(number, number).map(lambda t: f"{t[0]}-{t[1]}"),
        st.tuples(number, number, st.integers(1, high)).map(lambda t: f"{t[0]}-{t[1]}/{t[2]}"),
    )


def field(low: int, high: int) -> SearchStrategy[str]:
    """Any field."""
    terms = st.lists(plain_term(low, high) | wrapping_term(low, high), min_size=1, max_size=3)
    return plain_field(low, high) | terms.map(",".join)


MONTHS = st.one_of(st.just("*"), field(1, 12), st.sampled_from(MONTH_NAMES))
PLAIN_DAYS = st.one_of(st.just("*"), st.just("*"), plain_field(1, 31))
PLAIN_WEEKDAYS = st.one_of(
    st.just("*"), st.just("*"), plain_field(0, 6), st.sampled_from(WEEKDAY_NAMES)
)
SPECIAL_DAYS = st.one_of(
    st.just("L"), st.just("LW"), st.integers(1, 31).map("{}W".format), field(1, 31)
)
SPECIAL_WEEKDAYS = st.one_of(
    st.tuples(st.integers(0, 7), st.integers(1, 5)).map(lambda t: f"{t[0]}#{t[1]}"),
    st.integers(0, 7).map("{}L".format),
    st.sampled_from(WEEKDAY_NAMES).map("{}L".format),
    field(0, 7),
)


def _join(*parts: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


def _some(strategy: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.lists(strategy, min_size=1, max_size=2).map(",".join)


EARLY_HOURS = st.one_of(field(0, 4), field(0, 23))
"""Most clock changes are before five."""

ANY_CRON = _join(
    field(0, 59),
    EARLY_HOURS,
    st.just("*") | _some(SPECIAL_DAYS),
    MONTHS,
    st.just("*") | _some(SPECIAL_WEEKDAYS),
)
"""The whole dialect but `H`."""

DAY_CRON = _join(
    st.just("0"),
    st.just("0"),
    st.one_of(st.just("*"), field(1, 31), _some(SPECIAL_DAYS), st.just("*/2,15W")),
    MONTHS,
    st.one_of(st.just("*"), field(0, 7), _some(SPECIAL_WEEKDAYS)),
)
"""One time a day, all that can be said of days."""

FREQUENT_CRON = _join(field(0, 59), EARLY_HOURS, PLAIN_DAYS, st.just("*"), PLAIN_WEEKDAYS)
"""Several slots in a few days, mostly."""

COMMON_CRON = _join(
    plain_field(0, 59), plain_field(0, 23), PLAIN_DAYS, st.just("*") | plain_field(1, 12),
    PLAIN_WEEKDAYS,
)  # fmt: skip
"""What croniter and we read alike."""
