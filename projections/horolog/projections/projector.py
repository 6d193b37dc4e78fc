"""Keeps the tables up with the ledger, in a thread of its own.

The host offers each committed batch; what the projector missed (it was behind, or restarted) it
reads from the log. Rows and positions are one transaction, and a batch at or below the position is
left out, so nothing is folded twice.
"""

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from horolog.projections.fold import coalesced, fold
from horolog.projections.rows import Change
from horolog.schemas.records import Event

EVENTS_AT_ONCE: Final = 5_000
OFFERED_MOST: Final = 2_000
"""Batches kept in memory; beyond it the projector reads the log instead."""
IDLE_S: Final = 1.0


class Batch(Protocol):
    """What the log gives; the batch of `horolog.streams.log` is one."""

    @property
    def partition(self) -> int:
        """Ledger partition."""
        ...

    @property
    def events(self) -> tuple[Event, ...]:
        """Stamped events."""
        ...


class Source(Protocol):
    """Where events are read that were not offered."""

    @property
    def partitions(self) -> int:
        """Number of ledger partitions."""
        ...

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """Batches with events above `after_seq`, in order."""
        ...


class Store(Protocol):
    """Where rows go."""

    def apply(self, changes: Sequence[Change], positions: Mapping[int, int]) -> None:
        """Write rows and positions together."""
        ...

    def positions(self) -> Mapping[int, int]:
        """Position by partition."""
        ...


class Projector:
    """Folds batches into a store."""

    def __init__(self, source: Source, store: Store) -> None:
        """Begins where the store ends."""
        self._source = source
        self._store = store
        self._offered: deque[Batch] = deque()
        self._overflowed = True
        self._moved = threading.Condition()
        self._stopping = False
        self._awake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="horolog-projector", daemon=True)
        self.failure: BaseException | None = None
        """What ended the thread, if it did not end by `stop`."""

    def start(self) -> None:
        """Begin to follow the ledger."""
        self._thread.start()

    def stop(self) -> None:
        """Fold what was offered and end."""
        self._stopping = True
        self._awake.set()
        self._thread.join()

    def offer(self, batches: Sequence[Batch]) -> None:
        """Batches were committed. From the host's thread; does not block."""
        if len(self._offered) > OFFERED_MOST:
            self._overflowed = True
            self._offered.clear()
        self._offered.extend(batches)
        self._awake.set()

    def position(self, partition: int) -> int:
        """`seq` up to which a partition is in the tables."""
        return self._store.positions().get(partition, 0)

    def wait_for(self, partition: int, seq: int, timeout_s: float) -> bool:
        """Wait until a partition has got to `seq`; False if it has not in time."""
        with self._moved:
            return self._moved.wait_for(lambda: self.position(partition) >= seq, timeout_s)

    def _run(self) -> None:
        try:
            while True:
                stopping = self._stopping
                self._awake.clear()
                self.catch_up()
                if stopping:
                    return
                self._awake.wait(IDLE_S)
        except BaseException as failure:
            self.failure = failure
            raise

    def catch_up(self) -> None:
        """Fold all there is now."""
        if self._overflowed:
            self._overflowed = False
            for partition in range(self._source.partitions):
                self._read(partition)
        while self._offered:
            batches: list[Batch] = []
            size = 0
            while self._offered and size < EVENTS_AT_ONCE:
                batches.append(self._offered.popleft())
                size += len(batches[-1].events)
            self._fold(batches)

    def _read(self, partition: int) -> None:
        batches: list[Batch] = []
        size = 0
        for batch in self._source.read(partition, self.position(partition)):
            batches.append(batch)
            size += len(batch.events)
            if size >= EVENTS_AT_ONCE:
                self._fold(batches)
                batches, size = [], 0
        self._fold(batches)

    def _fold(self, batches: Sequence[Batch]) -> None:
        positions = dict(self._store.positions())
        events: list[Event] = []
        for batch in batches:
            position = positions.get(batch.partition, 0)
            news = [event for event in batch.events if event.seq > position]
            if not news:
                continue
            if news[0].seq != position + 1:
                # Something before it was not offered: the log has it.
                self._overflowed = True
                break
            positions[batch.partition] = news[-1].seq
            events += news
        if events:
            self._store.apply(coalesced(fold(events)), positions)
            with self._moved:
                self._moved.notify_all()
        if self._overflowed:
            self._offered.clear()
            self._awake.set()
