"""The agent of a process that decides and executes: `leases`, driven by the host's own thread.

A turn of the agent comes before each turn of the host, so claims stand in the owner's inbox and
grants begin without a hand-over between threads, which cost more than the rest of a run's life
(docs/benchmarks.md). The host's thread runs no user code, so heartbeats leave in time whatever a
job does; and while it cannot commit, it lets no lease end either.
"""

import secrets
import threading
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from horolog.schemas.records import Hint, LogChunk
from horolog.workers.clock import boot_us, wall_us
from horolog.workers.executors.protocol import Executor
from horolog.workers.hands import Hands
from horolog.workers.leases import SECOND_US, Delivered, Leases, Order, Outcome, Report, Send, Start

CLAIM_ID_BYTES: Final = 16
CLAIM_IDS_AT_ONCE: Final = 256
DRAIN_S: Final = 30.0
REPORT_S: Final = 10.0
"""When everything has ended, a stopping agent waits so long for the answers to its reports."""
LOOK_S: Final = 0.1


class Exchange(Protocol):
    """How an agent reaches its scheduler and its logs. Must not block."""

    def hints(self, most: int, now_us: int) -> Sequence[Hint]:
        """Take at most so many hints that are valid at `now_us`."""
        ...

    def report(self, partition: int, report: Report) -> None:
        """Send a report to the owner of a ledger partition."""
        ...

    def log(self, chunk: LogChunk) -> None:
        """Keep a piece of a run's output."""
        ...

    def wake(self) -> None:
        """Have `turn` called soon. From any thread."""
        ...


def _claim_ids() -> Iterator[str]:
    """128 random bits each. Cost: the system is asked for many at a time, since each time this
    thread gives up the interpreter and waits to have it back.
    """
    while True:
        drawn = secrets.token_bytes(CLAIM_IDS_AT_ONCE * CLAIM_ID_BYTES)
        for at in range(0, len(drawn), CLAIM_ID_BYTES):
            encoded = urlsafe_b64encode(drawn[at : at + CLAIM_ID_BYTES])
            yield encoded.rstrip(b"=").decode()


class Agent:
    """Claims runs for this process, has them executed, keeps their leases, reports their ends."""

    def __init__(
        self,
        exchange: Exchange,
        executors: Mapping[str, Executor],
        *,
        worker_id: str,
        slots: int,
        drain_s: float = DRAIN_S,
        report_s: float = REPORT_S,
        now_us: Callable[[], int] = wall_us,
    ) -> None:
        """`executors`: by field of the target (`handler`, `command`, `http`, `container`).
        `now_us`: the scheduler's time, as far as this process knows it; microseconds UTC.
        """
        self._exchange = exchange
        self._drain_us = int(drain_s * SECOND_US)
        self._report_us = int(report_s * SECOND_US)
        self._now_us = now_us
        self._leases = Leases(
            worker_id=worker_id,
            inbox=worker_id,
            slots=slots,
            new_claim_id=_claim_ids().__next__,
        )
        self._hands = Hands(executors, log=exchange.log, wake=exchange.wake)
        self._inbound: deque[Delivered] = deque()
        self._stopping = False
        self._drain_until_us: int | None = None
        self._gone = threading.Event()

    # --- called from other threads

    def start(self) -> None:
        """Be ready to execute."""
        self._hands.start()

    def drain(self) -> None:
        """Claim nothing more; what runs goes on, and the agent with it."""
        self._leases.drain()

    def stop(self) -> None:
        """Drain: claim nothing more, let what runs end within the grace, stop and give back the
        rest. Returns when everything is reported, or nobody answers the reports: those runs are
        started again when their leases end.
        """
        self._stopping = True
        self._exchange.wake()
        # A host that cannot commit gives no turns; so this goes by what is seen from here.
        begun_us = boot_us()
        report_until_us = begun_us + self._report_us
        while not self._gone.wait(LOOK_S):
            now_us = boot_us()
            if self._hands.is_busy:
                report_until_us = now_us + self._report_us
                if now_us >= begun_us + self._drain_us + SECOND_US:
                    self._hands.stop_all()
            elif now_us >= report_until_us:
                break
        self._hands.close()

    @property
    def leases(self) -> Leases:
        """What it holds; of other threads for `slots`, `runs` and `is_draining` only."""
        return self._leases

    @property
    def executing(self) -> int:
        """Runs being executed."""
        return self._leases.executing

    # --- called from the host's thread

    def deliver(self, message: Delivered) -> None:
        """A message came to the inbox; the next turn reads it."""
        self._inbound.append(message)

    def turn(self) -> None:
        """Read what came, do what time asks for, and claim for the free slots."""
        now_us, booted_us = self._now_us(), boot_us()
        inbound = self._inbound
        while inbound:
            self._do(self._leases.deliver(inbound.popleft(), booted_us, now_us))
        for claim_id, outcome in self._hands.ended():
            self._end(claim_id, outcome, booted_us)
        self._do(self._leases.tick(booted_us))
        free = self._leases.free
        if free and not self._stopping:
            self._do(self._leases.claim(self._exchange.hints(free, now_us), booted_us))
        if self._stopping:
            self._drain(booted_us)

    def next_us(self) -> int | None:
        """Boot time at which a turn has something to do by itself; None = never."""
        instants = (self._leases.next_us(), self._drain_until_us)
        return min((instant for instant in instants if instant is not None), default=None)

    def gone(self) -> None:
        """There will be no more turns."""
        self._gone.set()

    # --- parts

    def _drain(self, booted_us: int) -> None:
        if self._drain_until_us is None:
            self._leases.drain()
            self._drain_until_us = booted_us + self._drain_us
        elif booted_us >= self._drain_until_us:
            # Asked again each turn: a grant may still come.
            self._drain_until_us = booted_us + SECOND_US
            self._do(self._leases.stop_all())
        if self._leases.is_idle:
            self._gone.set()

    def _do(self, orders: Iterable[Order]) -> None:
        for order in orders:
            if isinstance(order, Send):
                self._exchange.report(order.partition, order.report)
            elif isinstance(order, Start):
                self._hands.begin(order.grant)
            else:
                self._hands.stop(order.claim_id, order.why)

    def _end(self, claim_id: str, outcome: Outcome, booted_us: int) -> None:
        self._do(self._leases.ended(claim_id, outcome, booted_us))
