"""What a loop on a shared log needs of the outside: coroutines, so that one loop serves a broker's
client, whose calls block a thread and never suspend, and the simulator, where each call suspends
and anything may happen meanwhile.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from horolog.schemas.records import Event, TenantSettings
from horolog.streams.limits import SECOND_US
from horolog.streams.log import Batch, Log

IDLE_MOST_US: Final = 5 * SECOND_US
"""A loop waits no longer than this without looking. Its waits are counted by the boot-time clock,
and a clock that is slewed by 500 ppm is off by 2.5 ms after so long.
"""


class Undecodable(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that are no record of ours."""

    data: bytes
    why: str


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A record of an input topic."""

    topic: str
    partition: int
    offset: int
    append_us: int
    """The broker's append time, microseconds UTC."""
    value: msgspec.Struct | Undecodable


class Reads(msgspec.Struct, frozen=True, kw_only=True):
    """What came in since the last call."""

    items: Sequence[Item] = ()
    undelivered: frozenset[tuple[str, int]] = frozenset()
    """Topic and partition of what was sent and is not known to have arrived."""


class Outcome(enum.Enum):
    """What became of a transaction."""

    WRITTEN = "written"
    DOUBTED = "doubted"
    """Written, but a copy of its end may still be on its way and would hit the next transaction:
    the producer must be opened anew before that (`reliability.md` K4)."""
    ABORTED = "aborted"
    """Not written, for certain: the same may be written again."""
    UNKNOWN = "unknown"
    """Nobody can know before the producer is opened anew and the end of the log is read."""


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a ledger, as it is after the producer was opened."""

    records: Sequence[Event]
    """Committed records from some batch's first on."""


class LedgerPort(Protocol):
    """One ledger partition, as one process that should own it reaches it."""

    async def open(self) -> None:
        """Fence every older owner and end its open transaction; the log is settled from then on,
        until somebody else opens it. Raises Unavailable.
        """
        ...

    @property
    def log(self) -> Log:
        """The ledger and the snapshots, by batches that count. Only after `open`."""
        ...

    async def tail(self, after_seq: int) -> Tail:
        """Records from the batch on that holds the event after this one, with all that does not
        count. Only after `open`.
        """
        ...

    async def append(self, batch: Batch) -> Outcome:
        """One transaction with the batch and its snapshots, and nothing else. Raises Fenced."""
        ...

    async def seek(self, positions: Mapping[str, int]) -> None:
        """Read each input topic from this offset on."""
        ...

    async def read(self, wait_us: int) -> Reads:
        """Inputs, as soon as there are any; nothing after `wait_us`. Raises Fenced when the
        process has learnt that the partition is not its own any more.
        """
        ...

    async def broker_us(self) -> int:
        """The broker's clock, microseconds UTC, at some instant between call and return."""
        ...

    def send(self, topic: str, to: int | str, record: msgspec.Struct) -> None:
        """Send a record to a partition (number) or by its key (text). May get lost or come twice;
        if it is noticed, `read` says so.
        """
        ...

    def set_aside(self, item: Item, why: str) -> None:
        """Keep what is no input, as it came, in quarantine."""
        ...


class DispatcherPort(Protocol):
    """One dispatcher partition, as one process that should own it reaches it."""

    async def open(self) -> int:
        """Fence every older dispatcher. Returns the epoch that is recorded; 0 = none. Raises
        Unavailable.
        """
        ...

    async def record(self, epoch: int) -> Outcome:
        """Record the epoch, transactionally. Raises Fenced."""
        ...

    async def settings(self) -> Sequence[TenantSettings]:
        """The limits of all tenants, the latest of each. `read` goes on from there."""
        ...

    async def read(self, wait_us: int) -> Reads:
        """Run states sent from `open` on, and settings. As `LedgerPort.read`."""
        ...

    async def broker_us(self) -> int:
        """See `LedgerPort`."""
        ...

    def send(self, topic: str, to: int | str, record: msgspec.Struct) -> None:
        """See `LedgerPort`."""
        ...

    def set_aside(self, item: Item, why: str) -> None:
        """See `LedgerPort`."""
        ...
