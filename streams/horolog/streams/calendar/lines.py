"""From wall times to instants: where the clock is changed, and what a job wants then.

A zone with the policies of a job becomes a row of pieces in order of time. A *span* maps wall
times [low, high) to instants, one to one; a *gap* maps all of its wall times to one instant.

    clock moved on:    the times it jumps over are a gap; its instant is right after the jump
    clock moved back:  the times it shows twice are in two spans

`shift` makes a gap a piece, `skip` leaves it out; `first` cuts the repeated times from the later
span, `second` from the earlier one, `both` from neither. Expressions that follow elapsed time
take every span whole and no gap. So each rule is stated once, and next, previous, count and range
are walks over the same row.
"""

import bisect
import functools
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, assert_never

from horolog.schemas.records import OverlapHour
from horolog.streams.calendar.limits import (
    COVERED_UNTIL_S,
    EARLIEST_S,
    LATEST_S,
    LINES_MAX,
    REACH_S,
    ROWS_MAX,
    SPANS_PER_LINE_MAX,
)
from horolog.streams.calendar.walls import Walls, cron_walls
from horolog.streams.calendar.zones import Segment, Timeline, coverage_step


class Policy(NamedTuple):
    """What happens where the clock is changed."""

    shift: bool
    overlap: OverlapHour


ELAPSED: Final = Policy(shift=False, overlap=OverlapHour.BOTH)
"""Each real minute that shows a matching time, and no other."""


class Piece(NamedTuple):
    """Wall times [low, high), and the instants they stand for.

    gap_s: the one instant of all of them; None in a span, where it is wall - offset_s.
    """

    low: int
    high: int
    offset_s: int
    gap_s: int | None


class Row(NamedTuple):
    """Pieces in order of their instants, with the earliest and latest instant of each."""

    pieces: tuple[Piece, ...]
    firsts: tuple[int, ...]
    lasts: tuple[int, ...]
    end_s: int


@functools.lru_cache(maxsize=ROWS_MAX)
def _row(timeline: Timeline, policy: Policy, step: int) -> Row:
    segments = timeline.segments(step)
    pieces = tuple(piece for i in range(len(segments)) for piece in _pieces(segments, i, policy))
    firsts = tuple(p.low - p.offset_s if p.gap_s is None else p.gap_s for p in pieces)
    lasts = tuple(p.high - p.offset_s - 1 if p.gap_s is None else p.gap_s for p in pieces)
    return Row(pieces, firsts, lasts, segments[-1].end_s)


def _pieces(segments: tuple[Segment, ...], i: int, policy: Policy) -> Iterator[Piece]:
    """The gap before segment `i`, if it counts, and the spans of the segment."""
    start_s, end_s, offset_s = segments[i]
    earlier = [_shown(s) for s in _near(segments, range(i - 1, -1, -1), start_s)]
    later = [_shown(s) for s in _near(segments, range(i + 1, len(segments)), end_s)]
    own = _shown(segments[i])
    if i > 0 and policy.shift:
        jumped = (_shown(segments[i - 1])[1], own[0])
        for low, high in _without(jumped, [*earlier, own, *later]):
            yield Piece(low, high, offset_s, start_s)
    match policy.overlap:
        case OverlapHour.FIRST:
            taken = earlier
        case OverlapHour.SECOND:
            taken = later
        case OverlapHour.BOTH:
            taken = []
        case _:
            assert_never(policy.overlap)
    for low, high in _without(own, taken):
        yield Piece(low, high, offset_s, None)


def _shown(segment: Segment) -> tuple[int, int]:
    """The wall times a segment shows."""
    return segment.start_s + segment.offset_s, segment.end_s + segment.offset_s


def _near(segments: tuple[Segment, ...], indices: range, at_s: int) -> Iterator[Segment]:
    """Segments that may show the same wall times as one that begins or ends at `at_s`."""
    for i in indices:
        segment = segments[i]
        if max(segment.start_s - at_s, at_s - segment.end_s) > REACH_S:
            return
        yield segment


def _without(whole: tuple[int, int], taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of a range of wall times, in order."""
    left = [whole] if whole[0] < whole[1] else []
    for low, high in taken:
        left = [
            part
            for a, b in left
            for part in ((a, min(b, low)), (max(a, high), b))
            if part[0] < part[1]
        ]
    return left


class _Ahead:
    """The next match from anywhere; looks again only where it does not know."""

    def __init__(self, walls: Walls) -> None:
        self._walls = walls
        self._from: int | None = None
        self.hit: int | None = None

    def after(self, wall: int) -> int | None:
        known = self._from is not None and self._from <= wall
        if not known or (self.hit is not None and self.hit <= wall):
            self._from, self.hit = wall, self._walls.after(wall)
        return self.hit


class _Behind:
    """The previous match from anywhere."""

    def __init__(self, walls: Walls) -> None:
        self._walls = walls
        self._from: int | None = None
        self._hit: int | None = None

    def before(self, wall: int) -> int | None:
        known = self._from is not None and self._from >= wall
        if not known or (self._hit is not None and self._hit >= wall):
            self._from, self._hit = wall, self._walls.before(wall)
        return self._hit


def next_instant(walls: Walls, timeline: Timeline, policy: Policy, after_s: int) -> int | None:
    """The first slot strictly after an instant; None if there is none before LATEST_S."""
    after_s = max(after_s, EARLIEST_S - 1)
    step = coverage_step(after_s)
    ahead = _Ahead(walls)
    while after_s < LATEST_S - 1:
        row = _row(timeline, policy, step)
        for i in range(bisect.bisect_right(row.lasts, after_s), len(row.pieces)):
            low, high, offset_s, gap_s = row.pieces[i]
            first = low if gap_s is not None else max(low, after_s + offset_s + 1)
            hit = ahead.after(first - 1)
            if hit is not None and hit < high:
                return hit - offset_s if gap_s is None else gap_s
        if ahead.hit is None or step == len(COVERED_UNTIL_S) - 1:
            return None
        after_s = row.end_s - 1
        step = max(step + 1, coverage_step(ahead.hit))
    return None


def previous_instant(walls: Walls, timeline: Timeline, policy: Policy, before_s: int) -> int | None:
    """The last slot strictly before an instant; None if there is none since EARLIEST_S."""
    before_s = min(before_s, LATEST_S)
    row = _row(timeline, policy, coverage_step(before_s))
    behind = _Behind(walls)
    for i in range(bisect.bisect_left(row.firsts, before_s) - 1, -1, -1):
        low, high, offset_s, gap_s = row.pieces[i]
        end = high if gap_s is not None else min(high, before_s + offset_s)
        hit = behind.before(end)
        if hit is not None and hit >= low:
            return hit - offset_s if gap_s is None else gap_s
    return None


def count_instants(
    walls: Walls, timeline: Timeline, policy: Policy, after_s: int, to_s: int
) -> int:
    """How many slots there are in (after_s, to_s]. Cost: by the day, not by the slot."""
    after_s, to_s = max(after_s, EARLIEST_S - 1), min(to_s, LATEST_S - 1)
    row = _row(timeline, policy, coverage_step(to_s))
    count = 0
    counted_s: int | None = None
    for i in range(bisect.bisect_right(row.lasts, after_s), len(row.pieces)):
        low, high, offset_s, gap_s = row.pieces[i]
        if row.firsts[i] > to_s:
            break
        if gap_s is None:
            low, high = max(low, after_s + offset_s + 1), min(high, to_s + offset_s + 1)
            count += walls.count(low, high)
            # A slot right after a gap, and slots shifted there from within it, are one.
            if counted_s is not None and low - offset_s == counted_s:
                count -= walls.count(low, low + 1)
        elif gap_s != counted_s and walls.count(low, high):
            count += 1
            counted_s = gap_s
    return count


class _Known:
    """Answers for ranges of questions: for each x in [low, high) the answer is the same.

    Bounded; forgets the earliest range first, since time goes forward.
    """

    def __init__(self) -> None:
        # Replaced whole, so that a reader in another thread sees one state or the other.
        self._ranges: tuple[tuple[int, int, int | None], ...] = ()

    def get(self, x: int) -> tuple[int | None] | None:
        """The answer in a tuple, or None if it is not known."""
        ranges = self._ranges
        i = bisect.bisect_right(ranges, x, key=lambda r: r[0]) - 1
        return (ranges[i][2],) if i >= 0 and x < ranges[i][1] else None

    def put(self, low: int, high: int, answer: int | None) -> None:
        """Remember an answer, together with what was known of the same one."""
        ranges = list(self._ranges)
        for known in self._ranges:
            if known[2] == answer:
                low, high = min(low, known[0]), max(high, known[1])
                ranges.remove(known)
        bisect.insort(ranges, (low, high, answer), key=lambda r: r[0])
        self._ranges = tuple(ranges[-SPANS_PER_LINE_MAX:])


class Meter:
    """Counts how often an expression was evaluated rather than remembered."""

    def __init__(self) -> None:
        self.evaluations = 0


METER: Final = Meter()


class Line:
    """All slots of an expression in a zone under a policy; remembers what it was asked last.

    `walls` gives the evaluator when it is needed, since most questions need none.
    """

    def __init__(self, walls: Callable[[], Walls], timeline: Timeline, policy: Policy) -> None:
        self._walls = walls
        self._timeline = timeline
        self._policy = policy
        self._next = _Known()
        self._previous = _Known()

    def next(self, after_s: int) -> int | None:
        """The first slot strictly after an instant."""
        known = self._next.get(after_s)
        if known is not None:
            return known[0]
        METER.evaluations += 1
        slot = next_instant(self._walls(), self._timeline, self._policy, after_s)
        self._next.put(after_s, LATEST_S if slot is None else slot, slot)
        return slot

    def previous(self, before_s: int) -> int | None:
        """The last slot strictly before an instant."""
        known = self._previous.get(before_s)
        if known is not None:
            return known[0]
        METER.evaluations += 1
        slot = previous_instant(self._walls(), self._timeline, self._policy, before_s)
        self._previous.put(EARLIEST_S if slot is None else slot + 1, before_s + 1, slot)
        return slot

    def between(self, after_s: int, to_s: int) -> Iterator[int]:
        """The slots in (after_s, to_s], in order. Leaves what is remembered alone."""
        walls = self._walls()
        slot = next_instant(walls, self._timeline, self._policy, after_s)
        while slot is not None and slot <= to_s:
            yield slot
            slot = next_instant(walls, self._timeline, self._policy, slot)

    def count(self, after_s: int, to_s: int) -> int:
        """How many slots there are in (after_s, to_s]."""
        if after_s >= to_s:
            return 0
        return count_instants(self._walls(), self._timeline, self._policy, after_s, to_s)


@functools.lru_cache(maxsize=LINES_MAX)
def cron_line(text: str, timeline: Timeline, policy: Policy) -> Line:
    """The line that all jobs with this concrete expression, zone and policies share."""
    return Line(functools.partial(cron_walls, text), timeline, policy)
