"""From events to rows in a store: gapless, coalesced, and once.

Each projection is a pure function of an event and of the little that is known of its partition.
What several events change in one row is one write. A batch is taken whole or not at all, and one at
or below the position is left out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from horolog.projections import (
    attempts,
    dead_letters,
    jobs,
    runs,
    slots,
    tenants,
    versions,
)
from horolog.projections.known import RETENTION_US, Known
from horolog.projections.store import Checkpoint, Origin, Store, positions_of, time_of
from horolog.projections.tables import Change, Changes
from horolog.schemas.errors import DATA_DIR_CORRUPT, Corrupt
from horolog.schemas.records import (
    EVENTS,
    Event,
    RunCancelled,
    RunDiscarded,
    RunId,
    RunPlanned,
    RunRefused,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunSucceeded,
)

EXPIRE_EVERY_US: Final = 60_000_000
EXPIRE_AT_ONCE: Final = 500


class Projection(Protocol):
    """A module that folds events into tables of its own."""

    @property
    def NAME(self) -> str:  # noqa: N802  # a module's constant
        """Name, in checkpoints."""
        ...

    @property
    def VERSION(self) -> int:  # noqa: N802  # a module's constant
        """Bumped when a row would come out different."""
        ...

    @property
    def READS(self) -> tuple[type[Event], ...]:  # noqa: N802  # a module's constant
        """Events that change a row; all others give nothing."""
        ...

    @property
    def project(self) -> Callable[[Event, Known], Iterable[Change]]:
        """Changes by one event. Events of a partition come in order."""
        ...


PROJECTIONS: Final[tuple[Projection, ...]] = (
    runs,
    attempts,
    tenants,
    jobs,
    versions,
    slots,
    dead_letters,
)


class Batch(Protocol):
    """What the log gives; the batch of `horolog.streams.log` is one."""

    @property
    def partition(self) -> int:
        """Ledger partition."""
        ...

    @property
    def events(self) -> tuple[Event, ...]:
        """Stamped events, without a gap."""
        ...


class Source(Protocol):
    """A log, as far as a fold needs it."""

    @property
    def partitions(self) -> int:
        """Number of ledger partitions."""
        ...

    @property
    def log_id(self) -> str:
        """Name of the log."""
        ...

    @property
    def generation(self) -> int:
        """Generation of the log."""
        ...

    def read(self, partition: int, after_seq: int) -> Iterable[Batch]:
        """Batches with events above `after_seq`, in order. Raises Corrupt."""
        ...


_ENDS: Final = frozenset(
    {RunSucceeded, RunSkipped, RunCancelled, RunRevoked, RunRefused, RunDiscarded}
)
_Route = tuple[int, Callable[[Event, Known], Iterable[Change]]]


class Fold:
    """Folds batches into a store, begun where the store ends. Used by one thread."""

    def __init__(
        self,
        source: Source,
        store: Store,
        *,
        retention_us: int = RETENTION_US,
        projections: Sequence[Projection] = PROJECTIONS,
    ) -> None:
        """`retention_us`: how long after its end a run is kept. A store that holds what another
        log, another retention or other versions gave is emptied.
        """
        self._store = store
        self._names = [projection.NAME for projection in projections]
        self._routes = _routes(projections)
        store.begin(
            Origin(
                log_id=source.log_id,
                generation=source.generation,
                retention_us=retention_us,
                versions=tuple((each.NAME, each.VERSION) for each in projections),
            )
        )
        checkpoints = store.checkpoints()
        partitions = range(source.partitions)
        # By partition: how far each projection has folded; they differ only where a projection was
        # added or begun anew by itself.
        self._seqs = {
            partition: [_seq(checkpoints, name, partition) for name in self._names]
            for partition in partitions
        }
        self._positions = {partition: min(seqs) for partition, seqs in self._seqs.items()}
        self._written = positions_of(checkpoints)
        self._known = {
            partition: Known(partition, store.get, retention_us) for partition in partitions
        }
        self._now_us = time_of(checkpoints)
        self._expired_us = 0
        self._changes = Changes()
        self._moved: dict[int, int] = {}
        self.events_pending = 0
        """Events that are folded and not written."""

    def position(self, partition: int) -> int:
        """`seq` of the last event that is folded."""
        return self._positions[partition]

    @property
    def written(self) -> Mapping[int, int]:
        """`seq` up to which each partition is in the store."""
        return self._written

    @property
    def open_count(self) -> int:
        """Runs that are remembered because something more is expected of them."""
        return sum(known.open_count for known in self._known.values())

    def follows(self, batch: Batch) -> bool:
        """Whether nothing is missing before a batch."""
        return batch.events[0].seq <= self._positions[batch.partition] + 1

    def fold(self, batch: Batch) -> None:
        """Take a batch. Raises Corrupt if an event before it is missing: stop, keep the log."""
        partition = batch.partition
        position = self._positions[partition]
        seqs = self._seqs[partition]
        known = self._known[partition]
        # A projection that is ahead of another is left out until the other has caught up.
        ahead = None if max(seqs) == position else seqs
        events = _news(batch, position)
        for event in events:
            self._take(event, known, ahead)
        if events:
            self._advance(partition, events[-1])
            self.events_pending += len(events)

    def excerpt(self, partition: int, events: Iterable[Event]) -> None:
        """Take some events of a partition, whatever is missing between them: for a look at one
        job, in a store that nobody goes on with.
        """
        last: Event | None = None
        for event in events:
            self._take(event, self._known[partition], None)
            last = event
        if last is not None:
            self._advance(partition, last)

    def _take(self, event: Event, known: Known, ahead: Sequence[int] | None) -> None:
        if isinstance(event, RunPlanned):
            known.begins(event.run_id, event.slot_us)
        elif isinstance(event, RunRequested):
            known.begins(event.run_id, event.at_us)
        add = self._changes.add
        for number, project in self._routes[type(event)]:
            if ahead is None or ahead[number] < event.seq:
                for change in project(event, known):
                    add(change)
        if type(event) in _ENDS:
            known.ends(_run_of(event))

    def _advance(self, partition: int, last: Event) -> None:
        self._positions[partition] = last.seq
        self._seqs[partition] = [max(seq, last.seq) for seq in self._seqs[partition]]
        self._moved[partition] = last.at_us
        self._now_us = max(self._now_us, last.at_us)

    def write(self) -> None:
        """Write what is pending. Raises Unavailable: the same is written by the next call."""
        if self._moved:
            checkpoints = {
                (name, partition): Checkpoint(seq, at_us)
                for partition, at_us in self._moved.items()
                for name, seq in zip(self._names, self._seqs[partition], strict=True)
            }
            self._store.write(self._changes, checkpoints)
            self._written = {
                **self._written,
                **{partition: self._positions[partition] for partition in self._moved},
            }
            self._changes = Changes()
            self._moved = {}
            self.events_pending = 0
        self._expire()

    def _expire(self) -> None:
        """Remove what has ended, some at a time, once a minute of the log's time."""
        if self._now_us < self._expired_us + EXPIRE_EVERY_US:
            return
        if self._store.expire(self._now_us, EXPIRE_AT_ONCE) < EXPIRE_AT_ONCE:
            self._expired_us = self._now_us


def _news(batch: Batch, position: int) -> Sequence[Event]:
    """The events of a batch above a position, of which none may be missing."""
    events = batch.events
    if events[0].seq <= position:
        events = tuple(event for event in events if event.seq > position)
    for expected, event in enumerate(events, position + 1):
        if event.seq != expected:
            raise Corrupt(
                DATA_DIR_CORRUPT,
                f"ledger partition {batch.partition}: seq {event.seq} where {expected} was "
                "expected; the history stops before it",
            )
    return events


def _seq(checkpoints: Mapping[tuple[str, int], Checkpoint], name: str, partition: int) -> int:
    checkpoint = checkpoints.get((name, partition))
    return 0 if checkpoint is None else checkpoint.seq


def _run_of(event: Event) -> RunId:
    assert isinstance(
        event,
        RunSucceeded | RunSkipped | RunCancelled | RunRevoked | RunRefused | RunDiscarded,
    )
    return event.run_id


def _routes(projections: Sequence[Projection]) -> dict[type[Event], tuple[_Route, ...]]:
    """By type of event, the projections that read it: most events concern few of them."""
    routes: dict[type[Event], tuple[_Route, ...]] = dict.fromkeys(EVENTS, ())
    for number, projection in enumerate(projections):
        for kind in projection.READS:
            routes[kind] += ((number, projection.project),)
    return routes
