"""What the API needs of the process it runs in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from horolog.api.gateway import Exchange, WorkerMessage
from horolog.api.workers import WorkerState
from horolog.projections.logs import LogStore
from horolog.projections.queries import Queries
from horolog.schemas.records import Command, Event, Reply, RunId
from horolog.streams.host.preview import Preview
from horolog.streams.host.tenants import TenantLimits


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the process can decide and answer."""

    ready: bool
    detail: str
    """Why not, or what is odd all the same; empty: all is well."""


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far the tables are with a ledger partition."""

    partition: int
    position: int
    """`seq` of the last event in the tables."""
    end: int
    """`seq` of the last event in the ledger."""
    seconds: float
    """Age of the oldest event that is not in the tables; 0 = all are."""


class Backend(Protocol):
    """A host, its projections and its workers."""

    @property
    def queries(self) -> Queries:
        """The history."""
        ...

    @property
    def logs(self) -> LogStore:
        """Output of runs."""
        ...

    @property
    def limits(self) -> TenantLimits:
        """Limits of tenants."""
        ...

    @property
    def partitions(self) -> int:
        """Number of ledger partitions."""
        ...

    def positions(self) -> Mapping[int, int]:
        """Up to which `seq` the history has each ledger partition."""
        ...

    def projection_lags(self) -> Sequence[Lag]:
        """How far the tables are with each ledger partition; from a thread that may wait."""
        ...

    def rebuild_projections(self) -> int:
        """Build the tables anew and swap them in; how many events were folded. Takes as long as
        the log is; from a thread that may wait. Raises Unavailable or Corrupt: the old ones stay.
        """
        ...

    def events(self, partition: int, after_seq: int) -> Iterator[Event]:
        """Events of a ledger partition after one, in order; any thread may ask."""
        ...

    async def submit(self, command: Command) -> Reply:
        """Have a command decided. Raises Unavailable if it is not within 5 s."""
        ...

    async def preview(self, command: Command) -> Preview:
        """What a command would do now; nothing is done. Raises Unavailable."""
        ...

    async def wait_for(self, partition: int, seq: int, timeout_s: float) -> bool:
        """Wait until the history has got to a position."""
        ...

    def standing(self, run_id: RunId) -> str:
        """Where a waiting run stands, in a sentence; empty when nothing is known."""
        ...

    def exchange(self, pool: str, handlers: frozenset[str] | None) -> Exchange:
        """Hints of a pool for workers over HTTP: of these functions only, or, for None, of all
        other kinds of targets.
        """
        ...

    def connect(self, inbox: str, deliver: Callable[[WorkerMessage], None]) -> None:
        """Have the messages to an inbox delivered."""
        ...

    def workers(self) -> Sequence[WorkerState]:
        """Workers in this process."""
        ...

    def drain(self, worker_id: str) -> bool:
        """Have a worker in this process take nothing more; False: there is no such one."""
        ...

    def health(self) -> Health:
        """Whether all is well."""
        ...

    def metrics_text(self) -> bytes:
        """Metrics of the process, in Prometheus' text format."""
        ...

    def now_us(self) -> int:
        """Wall clock, microseconds UTC."""
        ...
