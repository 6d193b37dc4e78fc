"""Time zones as data: a zone is a line of time cut where its offset from UTC changes.

The rules come as TZif bytes in log events, so that the log alone decides what a local time means;
nothing here reads a file. Where a zone gets new rules at an instant, that instant is one more cut:
an hour that the new rules add or take away is a repeated hour or a gap like any other.
"""

import bisect
import functools
import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from horolog.streams.calendar.limits import (
    COVERED_UNTIL_S,
    EARLIEST_S,
    S_PER_DAY,
    TIMELINES_MAX,
    US_PER_S,
)

UTC_NAME: Final = "UTC"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GREGORIAN_CYCLE_YEARS: Final = 400
_LOOK_EVERY_S: Final = 7 * S_PER_DAY
_HEADER: Final = struct.Struct(">4sc15x6l")
_MAGIC: Final = b"TZif"
_LEAP_BYTES_V1: Final = 8
_LEAP_BYTES_V2: Final = 12
_TIME_BYTES_V1: Final = 4
_TIME_BYTES_V2: Final = 8
_TYPE_BYTES: Final = 6


class Segment(NamedTuple):
    """A stretch of time [start_s, end_s) of constant offset; the wall shows t + offset_s."""

    start_s: int
    end_s: int
    offset_s: int


class UnknownZone(LookupError):
    """No rules for this zone; the caller loads them first (`host.tzdata.read_zone`)."""

    def __init__(self, zone: str) -> None:
        super().__init__(f'no rules for the time zone "{zone}" are loaded')
        self.zone = zone


def coverage_step(at_s: int) -> int:
    """How far a zone must be worked out to know the instant, as an index of COVERED_UNTIL_S."""
    return min(bisect.bisect_right(COVERED_UNTIL_S, at_s), len(COVERED_UNTIL_S) - 1)


class _Memory:
    """Bytes that ZoneInfo reads as a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        start, self._at = self._at, self._at + size
        return self._data[start : self._at]

    def readline(self) -> bytes:
        """The bytes up to the end of the line."""
        end = self._data.find(b"\n", self._at)
        return self.read((len(self._data) if end < 0 else end + 1) - self._at)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place, counted from the start or, with whence 1, from here."""
        self._at = offset + (self._at if whence else 0)
        return self._at


class Rules:
    """One version of a zone's rules."""

    def __init__(self, tzif: bytes) -> None:
        self._zone = ZoneInfo.from_file(_Memory(tzif))
        self._times, footer = _read_tzif(tzif)
        # Without a comma the footer names one offset for ever.
        self._yearly = b"," in footer
        self._kinds: dict[tuple[int, int], tuple[int, ...]] = {}

    def offset_at(self, at_s: int) -> int:
        """Offset from UTC in seconds at an instant."""
        local = (_EPOCH + timedelta(seconds=at_s)).astimezone(self._zone)
        offset = local.utcoffset()
        assert offset is not None
        return offset // timedelta(seconds=1)

    def changes(self, low_s: int, high_s: int) -> Iterator[int]:
        """Instants in (low_s, high_s) at which the offset may change, in order."""
        yield from (at for at in self._times if low_s < at < high_s)
        if self._yearly:
            last = self._times[-1] if self._times else EARLIEST_S
            yield from self._yearly_changes(max(last, low_s), high_s)

    def _yearly_changes(self, low_s: int, high_s: int) -> Iterator[int]:
        year = (_EPOCH + timedelta(seconds=low_s)).year
        while (start_s := _year_start(year)) < high_s:
            for since_start_s in self._changes_of_kind(year):
                if low_s < start_s + since_start_s < high_s:
                    yield start_s + since_start_s
            year += 1

    def _changes_of_kind(self, year: int) -> tuple[int, ...]:
        """Seconds into the year of its clock changes, by the rule for every year."""
        start = datetime(year, 1, 1, tzinfo=UTC)
        # Cost: a rule names weekdays and days of the year, so it gives the same in each year that
        # begins on the same weekday and is as long; there are 14 kinds to look at, not hundreds.
        kind = (start.weekday(), (start.replace(year=year + 1) - start).days)
        if kind not in self._kinds:
            self._kinds[kind] = tuple(self._look_for_changes(year + _GREGORIAN_CYCLE_YEARS))
        return self._kinds[kind]

    def _look_for_changes(self, year: int) -> Iterator[int]:
        # A rule for every year keeps an offset for a week at least (in fact for months), so a
        # look a week finds each change, and halving finds its second.
        start_s, end_s = _year_start(year), _year_start(year + 1)
        at_s, offset = start_s, self.offset_at(start_s)
        while at_s < end_s:
            later_s = min(at_s + _LOOK_EVERY_S, end_s)
            later_offset = self.offset_at(later_s)
            if later_offset != offset:
                low, high = at_s, later_s
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (
                        (middle, high) if self.offset_at(middle) == offset else (low, middle)
                    )
                yield high - start_s
            at_s, offset = later_s, later_offset


class Timeline:
    """A zone through time; one object per content, so that it can be a cache key by identity.

    rules: (effective_us, TZif bytes) in order; none at all is UTC.
    """

    def __init__(self, rules: tuple[tuple[int, bytes], ...]) -> None:
        self._rules = [(effective_us, Rules(tzif)) for effective_us, tzif in rules]
        # One attribute, so that a reader never sees the one without the other.
        self._covered: tuple[int, tuple[Segment, ...]] = (-1, ())

    def segments(self, step: int) -> tuple[Segment, ...]:
        """Segments in order from EARLIEST_S to COVERED_UNTIL_S[step] or beyond.

        The end of the last one is only as far as was looked.
        """
        known, segments = self._covered
        if step > known:
            segments = tuple(self._cut(COVERED_UNTIL_S[step]))
            self._covered = (step, segments)
        return segments

    def offset_at(self, at_s: int) -> int:
        """Offset from UTC in seconds at an instant."""
        segments = self.segments(coverage_step(at_s))
        i = bisect.bisect_right(segments, at_s, key=lambda segment: segment.start_s)
        return segments[max(i - 1, 0)].offset_s

    def _cut(self, until_s: int) -> Iterator[Segment]:
        start_s, offset_s = EARLIEST_S, 0
        first = True
        for at_s, offset_after_s in self._offsets(until_s):
            if first:
                offset_s, first = offset_after_s, False
            elif offset_after_s != offset_s:
                yield Segment(start_s, at_s, offset_s)
                start_s, offset_s = at_s, offset_after_s
        yield Segment(start_s, until_s, offset_s)

    def _offsets(self, until_s: int) -> Iterator[tuple[int, int]]:
        """(instant, offset from it on), in order, the first at EARLIEST_S."""
        if not self._rules:
            yield EARLIEST_S, 0
        for i, (effective_us, rules) in enumerate(self._rules):
            low_s = EARLIEST_S if i == 0 else _ceil_s(effective_us)
            last = i + 1 == len(self._rules)
            high_s = until_s if last else min(until_s, _ceil_s(self._rules[i + 1][0]))
            if low_s < high_s:
                yield low_s, rules.offset_at(low_s)
                for at_s in rules.changes(low_s, high_s):
                    yield at_s, rules.offset_at(at_s)


@functools.lru_cache(maxsize=TIMELINES_MAX)
def _timeline(rules: tuple[tuple[int, bytes], ...]) -> Timeline:
    return Timeline(rules)


_UTC: Final = Timeline(())


class Zones:
    """The zones whose rules are loaded, by IANA name. Never changes: `load` gives a new one."""

    def __init__(self, timelines: Mapping[str, Timeline] | None = None) -> None:
        self._timelines = {UTC_NAME: _UTC} if timelines is None else dict(timelines)

    def load(self, name: str, rules: Iterable[tuple[int, bytes]]) -> "Zones":
        """These zones and one more, or with all rules of that one replaced.

        rules: (effective_us, TZif bytes) in order of time. Each holds up to the instant at which
        the next one takes effect; the first holds since ever, and of two that take effect at one
        instant the later one counts. Raises ValueError for no rules, rules out of order or bytes
        that are no TZif file. UTC keeps its meaning.
        """
        if name == UTC_NAME:
            return self
        ordered = tuple(rules)
        if not ordered:
            raise ValueError(f'no rules given for the time zone "{name}"')
        if any(a[0] > b[0] for a, b in itertools.pairwise(ordered)):
            raise ValueError(f'rules for the time zone "{name}" are not in order of time')
        return Zones({**self._timelines, name: _timeline(ordered)})

    def names(self) -> tuple[str, ...]:
        """Names of the zones loaded, sorted."""
        return tuple(sorted(self._timelines))

    def __contains__(self, name: object) -> bool:
        return name in self._timelines

    def timeline(self, name: str) -> Timeline:
        """The zone of that name; raises UnknownZone."""
        try:
            return self._timelines[name]
        except KeyError:
            raise UnknownZone(name) from None


class ClockChange(NamedTuple):
    """The clock of a zone is set: at `at_us` its offset from UTC becomes another."""

    at_us: int
    offset_before_us: int
    offset_after_us: int


def clock_changes(zone: str, from_us: int, to_us: int, zones: Zones) -> tuple[ClockChange, ...]:
    """The clock changes of a zone in (from_us, to_us], in order; raises UnknownZone."""
    segments = zones.timeline(zone).segments(coverage_step(to_us // US_PER_S + 1))
    return tuple(
        ClockChange(after.start_s * US_PER_S, before.offset_s * US_PER_S, after.offset_s * US_PER_S)
        for before, after in itertools.pairwise(segments)
        if from_us < after.start_s * US_PER_S <= to_us
    )


def local_text(zone: str, at_us: int, zones: Zones) -> str:
    """An instant as the clocks of a zone show it, ISO 8601 with offset; raises UnknownZone."""
    offset_s = zones.timeline(zone).offset_at(at_us // US_PER_S)
    wall = _EPOCH.replace(tzinfo=None) + timedelta(seconds=at_us // US_PER_S + offset_s)
    sign = "-" if offset_s < 0 else "+"
    hours, rest = divmod(abs(offset_s), 3600)
    minutes, seconds = divmod(rest, 60)
    text = f"{wall.isoformat()}{sign}{hours:02d}:{minutes:02d}"
    return f"{text}:{seconds:02d}" if seconds else text


def _year_start(year: int) -> int:
    return (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)


def _ceil_s(at_us: int) -> int:
    return -(-at_us // US_PER_S)


def _read_tzif(tzif: bytes) -> tuple[tuple[int, ...], bytes]:
    """Transition times in seconds UTC, in order, and the footer, of a TZif file (RFC 9636).

    Only the times: what holds at them is asked of ZoneInfo.
    """
    if len(tzif) < _HEADER.size or not tzif.startswith(_MAGIC):
        raise ValueError("not a TZif file")
    try:
        version, counts = _header(tzif, 0)
        if version == b"\0":
            times = struct.unpack_from(f">{counts[3]}l", tzif, _HEADER.size)
            return times, b""
        second = _HEADER.size + _body_bytes(counts, _TIME_BYTES_V1, _LEAP_BYTES_V1)
        _, counts = _header(tzif, second)
        body = second + _HEADER.size
        times = struct.unpack_from(f">{counts[3]}q", tzif, body)
        footer = tzif[body + _body_bytes(counts, _TIME_BYTES_V2, _LEAP_BYTES_V2) :]
    except struct.error as error:
        raise ValueError("TZif file is cut short") from error
    return times, footer.strip(b"\n")


def _header(tzif: bytes, at: int) -> tuple[bytes, tuple[int, ...]]:
    """Version, and the six counts: isutc, isstd, leap, time, type, char."""
    _, version, *counts = _HEADER.unpack_from(tzif, at)
    return version, tuple(counts)


def _body_bytes(counts: tuple[int, ...], time_bytes: int, leap_bytes: int) -> int:
    isutc, isstd, leap, time, kind, char = counts
    return isutc + isstd + leap * leap_bytes + time * (time_bytes + 1) + kind * _TYPE_BYTES + char
