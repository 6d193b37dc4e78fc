"""The embedded host: every partition and the dispatcher in one thread, on one log.

A turn reads what there is for each partition, commits all batches in one transaction of the log,
and only then tells anybody. Messages pass in memory as objects. There is no timer thread and no
writer thread: a turn begins when something was offered or an instant has come.

Other threads offer commands and reports and are called back from the host's thread; a callback must
not block.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from horolog.schemas.errors import Unavailable
from horolog.schemas.ids import partition_of
from horolog.schemas.records import (
    ClaimRefused,
    Command,
    Grant,
    Hint,
    Hints,
    Reply,
    ReportAnswered,
    RunState,
    StopRun,
    TenantSettings,
)
from horolog.streams.dispatcher import Dispatcher
from horolog.streams.host.clock import SteadyClock
from horolog.streams.host.outbox import Outbox
from horolog.streams.host.owner import Owner, ZoneSource
from horolog.streams.host.preview import Preview
from horolog.streams.limits import MINUTE_US, SECOND_US
from horolog.streams.log import Batch, Log
from horolog.streams.scheduler.inputs import Report
from horolog.streams.scheduler.messages import Message, WorkerMessage

RETRY_AFTER_S: Final = 0.5
DISPATCHER: Final = 0


class Listener(Protocol):
    """Who is told what; called in the host's thread after the commit, must not block."""

    def committed(self, batches: Sequence[Batch]) -> None:
        """Batches are in the log."""
        ...

    def reply(self, reply: Reply) -> None:
        """A command has its answer."""
        ...

    def hints(self, hints: Sequence[Hint]) -> None:
        """Runs may be claimed."""
        ...

    def worker(self, message: WorkerMessage) -> None:
        """A worker is answered or told."""
        ...


class Companion(Protocol):
    """What shares the host's thread, and so needs no hand-over to offer it reports."""

    def turn(self) -> None:
        """Before each turn of the host. Must not block."""
        ...

    def next_us(self) -> int | None:
        """Boot time at which it wants a turn by itself; None = never."""
        ...

    def gone(self) -> None:
        """There will be no more turns."""
        ...


class EmbeddedHost:
    """Schedulers of all partitions and their dispatcher, in one thread of this process."""

    def __init__(
        self,
        log: Log,
        clock: SteadyClock,
        listener: Listener,
        *,
        name: str,
        zones: ZoneSource,
        tzdata: str,
    ) -> None:
        """Recover every partition; nothing is decided before `start`. Raises Corrupt."""
        self._log = log
        self._clock = clock
        self._listener = listener
        self._owners = [
            Owner(log, partition, name=name, zones=zones, tzdata=tzdata)
            for partition in range(log.partitions)
        ]
        clock.start_at(max(owner.state.at_us for owner in self._owners))
        self._outboxes = [Outbox(owner.state, 1) for owner in self._owners]
        epoch = 1 + max(owner.state.dispatcher_epochs.get(DISPATCHER, 0) for owner in self._owners)
        self._dispatcher = Dispatcher(
            dispatcher=DISPATCHER, epoch=epoch, ledger_partitions=log.partitions
        )
        self._offered = threading.Event()
        self._stopping = False
        self._settings: list[TenantSettings] = []
        self._previews: deque[tuple[Command, Callable[[Preview], None]]] = deque()
        self._digest_next_us = 0
        self._companion: Companion | None = None
        self._thread = threading.Thread(target=self._run, name="horolog-host", daemon=True)
        self.unavailable: Unavailable | None = None
        """Why nothing is committed at present; None: all is well."""
        self.failure: BaseException | None = None
        """What ended the host's thread, if it did not end by `stop`."""
        self.on_failure: Callable[[], None] = lambda: None

    # --- called from other threads

    def attach(self, companion: Companion) -> None:
        """Give somebody a turn before each of the host's; before `start` only."""
        self._companion = companion

    def start(self) -> None:
        """Take the partitions over and begin to decide. Raises Unavailable: the log cannot be
        written; nothing has begun.
        """
        self._take_over()
        self._thread.start()

    def stop(self) -> None:
        """Decide no more; what is decided is committed. Returns when the thread has ended."""
        self._stopping = True
        self._offered.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def submit(self, command: Command) -> None:
        """Offer a command; `Listener.reply` gets its answer, if it is not lost: repeat it with the
        same command ID until it comes.
        """
        self._owner_of(command).inbox.command(command)
        self.wake()

    def preview(self, command: Command, told: Callable[[Preview], None]) -> None:
        """Have `told` called, in the host's thread, with what a command would do now."""
        self._previews.append((command, told))
        self.wake()

    def report(self, partition: int, report: Report) -> None:
        """Offer a worker's report for a ledger partition."""
        self._owners[partition].inbox.report(report)
        self.wake()

    def wake(self) -> None:
        """Have a turn begin soon."""
        # Cost: to set an event that is set takes a lock all the same.
        if not self._offered.is_set():
            self._offered.set()

    def limit(self, settings: TenantSettings) -> None:
        """Set the limits of a tenant from now on."""
        self._settings.append(settings)
        self._offered.set()

    @property
    def owners(self) -> Sequence[Owner]:
        """The partitions' owners; their state may be read by the host's thread only."""
        return self._owners

    def live_claims(self) -> frozenset[str]:
        """Claims of the leases that were live when the log ended; before `start` only."""
        return frozenset(claim_id for owner in self._owners for claim_id in owner.live_claims())

    @property
    def clock_skew_us(self) -> int:
        """What the wall clock shows beyond the time believed; any thread may ask."""
        return self._clock.skew_us

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher; may be read by the host's thread, and for `explain` by others."""
        return self._dispatcher

    def _owner_of(self, command: Command) -> Owner:
        return self._owners[partition_of(command.job_id, len(self._owners))]

    # --- the host's thread

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._offered.clear()
                if not self.turn():
                    self._offered.wait(self._idle_s())
        except BaseException as failure:
            # Whatever it is, nothing is decided any more; `up` ends with it, loudly.
            self.failure = failure
            self.on_failure()
            raise
        finally:
            if self._companion is not None:
                self._companion.gone()

    def _take_over(self) -> None:
        now_us, lease_us = self._clock.now_us(), self._clock.boot_us()
        batches = [owner.take_over(now_us, lease_us) for owner in self._owners]
        self._log.append(batches)
        self._listener.committed(batches)
        for owner, outbox in zip(self._owners, self._outboxes, strict=True):
            for message in [*owner.committed(), *owner.recent(now_us)]:
                self._route(outbox, message)

    def turn(self) -> bool:
        """Read, decide, commit, tell. False: there was nothing to do."""
        if self._companion is not None:
            self._companion.turn()
        now_us, lease_us = self._clock.now_us(), self._clock.boot_us()
        batches = [
            batch for owner in self._owners if (batch := owner.step(now_us, lease_us)) is not None
        ]
        if batches and not self._commit(batches):
            return False
        for owner, outbox in zip(self._owners, self._outboxes, strict=True):
            for message in owner.committed():
                self._route(outbox, message)
        self._send_digests(now_us)
        self._dispatch(now_us)
        while self._previews:
            command, told = self._previews.popleft()
            told(self._owner_of(command).preview(command, now_us))
        return bool(batches) or any(owner.inbox for owner in self._owners)

    def _commit(self, batches: list[Batch]) -> bool:
        """Write the batches, the same ones again while the log says that they are not written.
        False: the host stops before they could be; then nothing of them was told.
        """
        while True:
            try:
                self._log.append(batches)
            except Unavailable as reason:
                self.unavailable = reason
                if self._stopping:
                    return False
                self._offered.clear()
                self._offered.wait(RETRY_AFTER_S)
            else:
                self.unavailable = None
                self._listener.committed(batches)
                return True

    def _route(self, outbox: Outbox, message: Message) -> None:
        if isinstance(message, RunState):
            # Cost: the most frequent first; a look at a union costs as much as all else here.
            outbox.add(message)
        elif isinstance(message, Grant | ReportAnswered | ClaimRefused | StopRun):
            self._listener.worker(message)
        elif isinstance(message, Reply):
            self._listener.reply(message)
        else:
            outbox.add(message)

    def _send_digests(self, now_us: int) -> None:
        if now_us >= self._digest_next_us:
            self._digest_next_us = now_us + MINUTE_US
            for outbox in self._outboxes:
                outbox.digests()

    def _dispatch(self, now_us: int) -> None:
        dispatcher = self._dispatcher
        while self._settings:
            dispatcher.receive(self._settings.pop(0), now_us)
        for outbox in self._outboxes:
            for _, told in outbox.flush():
                dispatcher.receive(told, now_us)
        for message in dispatcher.tick(now_us):
            if isinstance(message, Hints):
                self._listener.hints(message.hints)
            else:
                self._owners[message.partition].inbox.answer(message)

    def _idle_s(self) -> float:
        """How long nothing will happen by itself, at most a second: the clock may be set."""
        if any(owner.inbox for owner in self._owners) or any(
            outbox.is_sending for outbox in self._outboxes
        ):
            return 0.0
        now_us, lease_us = self._clock.now_us(), self._clock.boot_us()
        waits = [SECOND_US, self._digest_next_us - now_us]
        for owner in self._owners:
            waits.append(owner.mark_next_us - lease_us)
            next_us = owner.next_us()
            if next_us is not None:
                waits.append(next_us - now_us)
        companion_us = None if self._companion is None else self._companion.next_us()
        if companion_us is not None:
            waits.append(companion_us - lease_us)
        wake_us = self._dispatcher.wake_us(now_us)
        if wake_us is not None:
            waits.append(wake_us - now_us)
        return max(min(waits), 0) / SECOND_US
