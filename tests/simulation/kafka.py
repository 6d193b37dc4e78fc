"""A model of Kafka with its warts: topics that lose, double and delay, and transactional ledgers.

Topics are plain: append time of the broker, any number of readers by offset. What is sent may be
lost (noticed or not), come twice, and come late, as the faults of the moment say.

A ledger partition has one producer at a time. `init` ends what is open and raises the epoch, after
which an older producer is fenced. The end of a transaction is a request like others: it may be
lost, its answer may be lost, it may be late, and a copy of it (a ghost) may arrive while the *next*
transaction is open and end that one, torn (`reliability.md` K4). A transaction that is open for too
long is aborted by the broker.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from horolog.schemas.errors import FENCED, Fenced
from horolog.schemas.records import Event
from horolog.streams.host.ports import Item, Undecodable
from horolog.streams.log import Batch, SnapshotRecord
from horolog.streams.log.assemble import assemble
from tests.simulation.oracle.observation import Told
from tests.simulation.world import SECOND_US, Gate, World

TRANSACTION_TIMEOUT_US: Final = 10 * SECOND_US
Value = msgspec.Struct | Undecodable
Place = tuple[str, int]


class Rates(msgspec.Struct):
    """How likely each wart of the network is at present, of one message in 1."""

    lost: float = 0.0
    lost_unnoticed: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    late_us: int = 2 * SECOND_US


class Endings(msgspec.Struct):
    """How likely each way is in which a transaction may end badly, of one in 1."""

    aborted: float = 0.0
    request_lost: float = 0.0
    answer_lost: float = 0.0
    request_late: float = 0.0
    ghost: float = 0.0


class Broker:
    """Topics and ledgers."""

    def __init__(self, world: World, ledger_partitions: int) -> None:
        self.world = world
        self.ledgers = [Ledger(world, self, number) for number in range(ledger_partitions)]
        self.rates = Rates()
        self.endings = Endings()
        self.stalled_until_us = 0
        self._topics: dict[Place, list[Item]] = {}
        self._cursors: dict[Place, list[Cursor]] = {}
        self._chances = {
            name: world.chance(f"network/{name}") for name in ("lost", "doubled", "late", "delay")
        }
        self._last_us = 0

    def delay_us(self) -> int:
        """How long a request takes."""
        stall_us = max(self.stalled_until_us - self.world.now_us, 0)
        return stall_us + self._chances["delay"].randrange(500, 6_000)

    # --- topics

    def topic(self, place: Place) -> list[Item]:
        """Records of a partition of a topic."""
        return self._topics.setdefault(place, [])

    def listen(self, place: Place, cursor: "Cursor") -> None:
        """Tell a reader whenever something comes."""
        self._cursors.setdefault(place, []).append(cursor)

    def unlisten(self, place: Place, cursor: "Cursor") -> None:
        """Tell it no more."""
        self._cursors[place].remove(cursor)

    def append(self, place: Place, value: Value) -> None:
        """A record arrives."""
        records = self.topic(place)
        self._last_us = max(self._last_us, self.world.now_us)
        records.append(
            Item(
                topic=place[0],
                partition=place[1],
                offset=len(records),
                append_us=self._last_us,
                value=value,
            )
        )
        for cursor in self._cursors.get(place, ()):
            cursor.came(place)

    def send(self, place: Place, value: Value, failed: Callable[[Place], None]) -> None:
        """A producer sends a record. `failed`: it is known that it may not have arrived."""
        rates = self.rates
        lost = self._chances["lost"].random()
        doubled = self._chances["doubled"].random()
        late = self._chances["late"].random()
        delay_us = self.delay_us()
        if late < rates.late:
            delay_us += int(rates.late_us * late / rates.late)
        if lost < rates.lost_unnoticed:
            return
        if lost < rates.lost_unnoticed + rates.lost:
            self.world.after(delay_us, lambda: failed(place))
            return
        self.world.after(delay_us, lambda: self.append(place, value))
        if doubled < rates.doubled:
            again_us = delay_us + int(rates.late_us * doubled / rates.doubled)
            self.world.after(again_us, lambda: self.append(place, value))

    def wipe(self, place: Place) -> None:
        """The topic was deleted and made again: what was not read is gone.

        Offsets go on, as if the records had been trimmed, so that no reader is stuck.
        """
        records = self.topic(place)
        for index, item in enumerate(records):
            if not isinstance(item.value, Undecodable):
                gone = Undecodable(data=b"", why=TRIMMED)
                records[index] = msgspec.structs.replace(item, value=gone)


TRIMMED: Final = "trimmed"


class _Transaction:
    def __init__(self, begun_us: int) -> None:
        self.begun_us = begun_us
        self.events: list[Event] = []
        self.snapshots: list[tuple[str, SnapshotRecord | None]] = []


class TransactionGone(Exception):
    """The broker knows no open transaction of this producer: somebody ended it."""


class Ledger:
    """A ledger partition and its snapshots, written in transactions of one stable ID."""

    def __init__(self, world: World, broker: Broker, partition: int) -> None:
        self._world = world
        self._broker = broker
        self.partition = partition
        self.producer = 0
        """Epoch of the producer that may write."""
        self.settled: list[Event] = []
        """Committed records in order: what a reader of committed data gets."""
        self.settled_us: list[int] = []
        """When each was committed."""
        self.snapshots: dict[str, SnapshotRecord] = {}
        self._open: _Transaction | None = None
        self._count = 0

    def init(self) -> int:
        """End what is open, fence the older producers; the new producer's epoch."""
        self._open = None
        self.producer += 1
        return self.producer

    def begin(self, producer: int) -> None:
        """A transaction begins. Raises Fenced."""
        self._check(producer)
        self._open = opened = _Transaction(self._world.now_us)
        self._world.after(TRANSACTION_TIMEOUT_US, lambda: self._time_out(opened))

    def produce(
        self,
        producer: int,
        events: tuple[Event, ...],
        snapshots: tuple[tuple[str, SnapshotRecord | None], ...],
    ) -> None:
        """Records of the open transaction. Raises Fenced, TransactionGone."""
        self._check(producer)
        if self._open is None:
            raise TransactionGone
        self._open.events += events
        self._open.snapshots += snapshots

    def end(self, producer: int, *, commit: bool) -> None:
        """End the open transaction, whichever it is by now; none is no error. Raises Fenced."""
        self._check(producer)
        ended, self._open = self._open, None
        if ended is None or not commit:
            return
        self.settled += ended.events
        self.settled_us += [self._world.now_us] * len(ended.events)
        for key, record in ended.snapshots:
            if record is None:
                self.snapshots.pop(key, None)
            else:
                self.snapshots[key] = record
        if ended.events:
            last = ended.events[-1]
            self._world.note(
                "commit", self.partition, last.seq, last.writer_epoch, len(ended.events)
            )

    def _check(self, producer: int) -> None:
        if producer != self.producer:
            raise Fenced(FENCED, f"producer {producer} of ledger {self.partition} is fenced")

    def _time_out(self, opened: _Transaction) -> None:
        if self._open is opened:
            self.init()

    def told(self) -> Iterator[Told]:
        """The events that count, with their times."""
        times = dict(zip(map(id, self.settled), self.settled_us, strict=True))
        for batch in assemble(self.partition, self.settled).batches:
            for event in batch.events:
                yield Told(times[id(event)], self.partition, event)

    def tail(self, after_seq: int) -> list[Event]:
        """Committed records from the first record of a batch at or below `after_seq` + 1 on."""
        index = len(self.settled)
        while index > 0:
            index -= 1
            record = self.settled[index]
            if record.seq == record.batch and record.seq <= after_seq + 1:
                break
        return self.settled[index:]


class LedgerView:
    """A ledger as a `Log` that is read."""

    generation = 1
    log_id = "simulated"

    def __init__(self, ledgers: list[Ledger]) -> None:
        self._ledgers = ledgers
        self.partitions = len(ledgers)

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """See `Log`."""
        records = self._ledgers[partition].tail(after_seq)
        yield from assemble(partition, records, after_seq).batches

    def snapshots(self, partition: int) -> Iterator[tuple[str, SnapshotRecord]]:
        """See `Log`."""
        return iter(list(self._ledgers[partition].snapshots.items()))

    def last_seq(self, partition: int) -> int:
        """See `Log`."""
        batches = assemble(partition, self._ledgers[partition].settled).batches
        return batches[-1].last_seq if batches else 0

    def append(self, batches: object) -> None:
        """Nobody writes through a view."""
        raise AssertionError(f"a view was written to: {batches}")

    def close(self) -> None:
        """See `Log`."""


class Cursor:
    """A reader of some partitions of topics."""

    def __init__(self, broker: Broker, gate: Gate | None = None) -> None:
        self._broker = broker
        self.gate = gate or Gate()
        self._offsets: dict[Place, int] = {}
        self._came: dict[Place, None] = {}

    def follow(self, place: Place, offset: int | None = None) -> None:
        """Read a partition from an offset on; None: from its end."""
        if place not in self._offsets:
            self._broker.listen(place, self)
        self._offsets[place] = len(self._broker.topic(place)) if offset is None else offset
        self.came(place)

    def leave(self, place: Place) -> None:
        """Read it no more."""
        if self._offsets.pop(place, None) is not None:
            self._broker.unlisten(place, self)

    def close(self) -> None:
        """Read nothing any more."""
        for place in list(self._offsets):
            self.leave(place)

    def came(self, place: Place) -> None:
        """Something came."""
        self._came[place] = None
        self.gate.open()

    def take(self) -> list[Item]:
        """What has come."""
        found: list[Item] = []
        if not self._came:
            return found
        for place in self._came:
            offset = self._offsets.get(place)
            if offset is not None:
                records = self._broker.topic(place)
                found += [item for item in records[offset:] if not _is_trimmed(item)]
                self._offsets[place] = len(records)
        self._came.clear()
        return found


def _is_trimmed(item: Item) -> bool:
    return isinstance(item.value, Undecodable) and item.value.why == TRIMMED
