"""Rolling snapshots, and recovery from them and the tail of the ledger.

A step adds some of the changed jobs as they were *before* its own events, so that a torn step
spoils none. Each record carries the `seq` it was taken at; the partition's record names the lowest
`seq` that every job is covered up to. Recovery reads the ledger above that and applies an event
only above its job's own `seq`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from horolog.schemas.records import (
    Event,
    JobId,
    JobSnapshot,
    JobStatus,
    KeysSnapshot,
    PartitionSnapshot,
    RunSnapshot,
)
from horolog.streams.limits import SECOND_US, SNAPSHOT_TAIL, SNAPSHOTS_PER_STEP
from horolog.streams.log import Log
from horolog.streams.scheduler import snapshot
from horolog.streams.scheduler.evolve import apply, evolve
from horolog.streams.scheduler.snapshot import SnapshotRecord
from horolog.streams.scheduler.state import Job, PartitionState

Entry = tuple[str, SnapshotRecord | None]

OLDEST_US: Final = 30 * SECOND_US
"""A changed job is in a snapshot this much later at the latest, if steps have room."""
RECENT_MOST: Final = 20_000
"""Events kept for `react` at a takeover."""

_IDLE: Final = 1
"""Events of a step that had nothing else to do than to take snapshots."""
_EVENTS_A_JOB: Final = 16
"""Events of a step for each job that it covers at least, when snapshots are wanted."""

_NO_MARK: Final[object] = None


class Snapshotter:
    """Which jobs changed since their snapshot, and which records stand for each."""

    def __init__(self, seq: int) -> None:
        """Every job is covered up to `seq`."""
        self._dirty: dict[JobId, tuple[int, int]] = {}
        self._parts: dict[JobId, dict[str, object]] = {}
        self._graves: dict[JobId, int] = {}
        self._covered_seq = seq
        self._taken_seq = seq

    def know(self, job_id: JobId, parts: tuple[str, ...]) -> None:
        """A job's snapshot stands in the log with these parts."""
        self._parts[job_id] = dict.fromkeys(parts, _NO_MARK)

    def changed(self, job_id: JobId, seq: int, at_us: int) -> None:
        """An event changed a job."""
        if job_id not in self._dirty:
            self._dirty[job_id] = (seq, at_us)

    def take(self, state: PartitionState, now_us: int) -> tuple[Entry, ...]:
        """Records to append with the next batch, empty when nothing presses. Called before the
        batch's own events are evolved.
        """
        count = self._pressing(state, now_us)
        if not count:
            return ()
        entries: list[Entry] = []
        for job_id in list(islice(self._dirty, count)):
            del self._dirty[job_id]
            entries += self._job(state, job_id)
        covered = next((seq - 1 for seq, _ in self._dirty.values()), state.seq)
        self._covered_seq = covered
        entries += self._bury(covered)
        entries.append((snapshot.PARTITION_KEY, snapshot.partition_record(state, covered)))
        return tuple(entries)

    def due_us(self) -> int | None:
        """When the oldest change should be covered; None = nothing changed."""
        oldest = next(iter(self._dirty.values()), None)
        return None if oldest is None else oldest[1] + OLDEST_US

    def _pressing(self, state: PartitionState, now_us: int) -> int:
        """How many jobs are to be covered now.

        In step with the events, so that all changed jobs are gone round once in each tail: a
        number for each step would be a fixed cost of every step, the more the fewer runs it has.
        """
        due_us = self.due_us()
        events = state.seq - self._taken_seq
        self._taken_seq = state.seq
        if due_us is None:
            return 0
        is_long = 2 * (state.seq - self._covered_seq) > SNAPSHOT_TAIL
        is_old = now_us >= due_us
        if not is_long and not is_old:
            return 0
        if events <= _IDLE:
            return SNAPSHOTS_PER_STEP
        paced = 2 * events * len(self._dirty) // SNAPSHOT_TAIL if is_long else 0
        return min(max(paced, events // _EVENTS_A_JOB, 1), SNAPSHOTS_PER_STEP)

    def _job(self, state: PartitionState, job_id: JobId) -> Iterator[Entry]:
        job = state.jobs.get(job_id)
        old = self._parts.pop(job_id, {})
        if job is None:
            self._graves[job_id] = state.seq
            yield snapshot.job_key(job_id), snapshot.tombstone(job_id, state.seq)
        else:
            is_whole = snapshot.holds_runs(job)
            runs = snapshot.runs_of(job, state.seq) if is_whole else ()
            parts = dict(snapshot.parts_of(job, state.seq, with_runs=not is_whole))
            yield snapshot.job_key(job_id), snapshot.job_record(job, state.seq, tuple(parts), runs)
            for name, record in parts.items():
                # A part of keys is as it was while no key of its hour came or went.
                mark = record.keys if isinstance(record, KeysSnapshot) else None
                if mark is None or old.get(name) != mark:
                    yield name, record
                old.pop(name, None)
            self._parts[job_id] = {
                name: record.keys if isinstance(record, KeysSnapshot) else None
                for name, record in parts.items()
            }
        for name in old:
            yield name, None

    def _bury(self, covered_seq: int) -> Iterator[Entry]:
        """Remove the tombstones that no recovery can need any more."""
        for job_id, seq in list(self._graves.items()):
            if seq <= covered_seq:
                del self._graves[job_id]
                yield snapshot.job_key(job_id), None


class Recovery:
    """A partition's state as its log gives it."""

    def __init__(self, log: Log, partition: int, *, from_snapshots: bool = True) -> None:
        """Read snapshots (unless told not to) and the tail. Raises Corrupt."""
        self.partition = partition
        self._floor: dict[JobId, int] = {}
        self._partition_floor = 0
        self.state = PartitionState(partition)
        self.snapshotter = Snapshotter(0)
        covered = self._load(log) if from_snapshots else 0
        self.recent: list[Event] = []
        """The last events read, for `react`: what the last minute of the ledger changed."""
        self._fold(log, covered)
        for job_id in [job.job_id for job in self.state.jobs.values() if _is_grave(job)]:
            del self.state.jobs[job_id]

    def _load(self, log: Log) -> int:
        jobs: list[JobSnapshot] = []
        parts: dict[str, RunSnapshot | KeysSnapshot] = {}
        covered = 0
        for key, record in log.snapshots(self.partition):
            if isinstance(record, PartitionSnapshot):
                self.state = snapshot.partition_from(record)
                self._partition_floor = record.seq
                covered = record.covered_seq
            elif isinstance(record, JobSnapshot):
                jobs.append(record)
            else:
                parts[key] = record
        self.snapshotter = Snapshotter(covered)
        for record in jobs:
            self._floor[record.job_id] = record.seq
            self.snapshotter.know(record.job_id, record.parts)
            job = snapshot.job_from(record, parts)
            self.state.jobs[record.job_id] = job
        self.state.recount()
        return covered

    def _fold(self, log: Log, covered: int) -> None:
        state = self.state
        for batch in log.read(self.partition, covered):
            for event in batch.events:
                job_id: JobId | None = getattr(event, "job_id", None)
                floor = (
                    self._partition_floor if job_id is None else self._floor.get(job_id, covered)
                )
                if event.seq > floor:
                    apply(state, event)
                if job_id is not None:
                    self.snapshotter.changed(job_id, event.seq, event.at_us)
                state.seq = max(state.seq, event.seq)
                state.at_us = max(state.at_us, event.at_us)
                self._keep_recent(event)

    def _keep_recent(self, event: Event) -> None:
        self.recent.append(event)
        if len(self.recent) > 2 * RECENT_MOST:
            del self.recent[:RECENT_MOST]


def _is_grave(job: Job) -> bool:
    return job.status is JobStatus.UNSPECIFIED


def fold(log: Log, partition: int, to_seq: int | None = None) -> PartitionState:
    """The state of a partition from its events alone, up to `to_seq` inclusive."""
    state = PartitionState(partition)
    for batch in log.read(partition, 0):
        for event in batch.events:
            if to_seq is not None and event.seq > to_seq:
                return state
            evolve(state, event)
    return state
