"""What a partition's owner has read from its topics and not yet decided over.

Per topic the records stay in their order, and a position is the offset after the last record whose
inputs a step has taken: it goes into the ledger with what they led to, so no input is decided twice
and none is lost. What cannot be an input is named, moves the position like any other record, and
stops nothing.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from horolog.schemas.ids import job_of, partition_of
from horolog.schemas.records import (
    AdmissionAnswer,
    ClaimRuns,
    Command,
    CompleteRuns,
    Heartbeats,
    InventoryWanted,
    JobId,
    Mark,
    ReleaseRuns,
    RepairWanted,
)
from horolog.streams.host.inbox import MarkRead
from horolog.streams.host.ports import Item, Undecodable
from horolog.streams.host.topics import ANSWERS, COMMANDS, RECORDS, REPORTS, SCHEDULER_READS
from horolog.streams.limits import COMMANDS_PER_STEP, REPORTS_PER_STEP
from horolog.streams.scheduler.inputs import Input

_MOST: Final[Mapping[str, int]] = {
    ANSWERS: REPORTS_PER_STEP,
    REPORTS: REPORTS_PER_STEP,
    COMMANDS: COMMANDS_PER_STEP,
}

_Entry = tuple[int, tuple[Input | MarkRead, ...]]


class Reading:
    """The inputs of one ledger partition that are read and not decided yet."""

    def __init__(self, partition: int, partitions: int, positions: Mapping[str, int]) -> None:
        """Go on after the positions that stand in the ledger."""
        self._partition = partition
        self._partitions = partitions
        self._queues: dict[str, deque[_Entry]] = {topic: deque() for topic in SCHEDULER_READS}
        self._read: dict[str, int] = {topic: positions.get(topic, 0) for topic in SCHEDULER_READS}
        self.positions: dict[str, int] = dict(self._read)
        """Topic -> offset of the first record that no step has taken."""

    def __bool__(self) -> bool:
        return any(self._queues.values())

    def offer(self, item: Item) -> str | None:
        """Keep a record for the next step. What is below the position was decided before: a copy,
        dropped. Returns why it is no input, if it is none: then it belongs into quarantine.
        """
        if item.offset < self._read[item.topic]:
            return None
        self._read[item.topic] = item.offset + 1
        inputs = self._inputs(item)
        if isinstance(inputs, str):
            self._queues[item.topic].append((item.offset, ()))
            return inputs
        self._queues[item.topic].append((item.offset, inputs))
        return None

    def take(self) -> Iterator[Input | MarkRead]:
        """What a step reads: answers, reports, then some commands. A record is taken whole."""
        for topic, queue in self._queues.items():
            taken = 0
            while queue and taken < _MOST[topic]:
                offset, inputs = queue.popleft()
                self.positions[topic] = offset + 1
                taken += max(len(inputs), 1)
                yield from inputs

    def _inputs(self, item: Item) -> tuple[Input | MarkRead, ...] | str:
        value = item.value
        if isinstance(value, Undecodable):
            return value.why
        if type(value) not in RECORDS[item.topic]:
            return f"a {type(value).__name__} has no place in {item.topic}"
        inputs = _flat(value, item.append_us)
        for each in inputs:
            where = self._place_of(each)
            if where != self._partition:
                return f"belongs in partition {where} by its key, and stands in {self._partition}"
        return inputs

    def _place_of(self, item: Input | MarkRead) -> int:
        if isinstance(item, AdmissionAnswer | InventoryWanted | RepairWanted):
            return item.partition
        run_id = getattr(item, "run_id", None)
        job_id: JobId | None = getattr(item, "job_id", None)
        if run_id is not None and job_id is not None and job_of(run_id) != job_id:
            return -1
        if job_id is None and run_id is not None:
            job_id = job_of(run_id)
        return self._partition if job_id is None else partition_of(job_id, self._partitions)


def _flat(value: object, append_us: int) -> tuple[Input | MarkRead, ...]:
    match value:
        case ClaimRuns():
            return value.claims
        case Heartbeats():
            return value.heartbeats
        case CompleteRuns():
            return value.completions
        case ReleaseRuns():
            return value.releases
        case Mark():
            return (MarkRead(append_us=append_us),)
        case AdmissionAnswer() | InventoryWanted() | RepairWanted():
            return (value,)
        case _:
            assert isinstance(value, Command), f"{type(value).__name__} is in no topic's list"
            return (value,)
