"""The index itself: states come in, hints and answers go out.

Messages are states of runs, not changes, and carry the stamp of the state they were read from; what
is older than what was read before is dropped. A tenant's running count is the *set* of runs
released or started, so nothing is counted or freed twice.
"""

import heapq
from collections.abc import Iterator
from typing import Final

import msgspec

from horolog.schemas import errors
from horolog.schemas.ids import job_of
from horolog.schemas.records import (
    AdmissionAnswer,
    DigestSent,
    DispatchStatus,
    EpochSuperseded,
    Hint,
    Hints,
    InventoryBegan,
    InventoryEnded,
    InventoryWanted,
    JobAsk,
    RepairWanted,
    RunId,
    RunState,
    RunStates,
    TenantId,
    TenantSettings,
)
from horolog.streams.dispatcher.entries import Entry, QueueKey, key_of
from horolog.streams.dispatcher.queues import ReadyQueue, valid_until_us
from horolog.streams.dispatcher.sources import Source
from horolog.streams.dispatcher.tenants import Tenant

Incoming = (
    RunStates | InventoryBegan | InventoryEnded | DigestSent | EpochSuperseded | TenantSettings
)
Outgoing = Hints | AdmissionAnswer | InventoryWanted | RepairWanted

HINTS_AT_ONCE: Final = 10_000


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands, for whoever asks why it has not started."""

    status: str
    """`unknown`, `not_due`, `waiting`, `offered` or `started`."""
    due_us: int = 0
    holding: int = 0
    """Runs of the tenant that are released or started."""
    quota: int | None = None
    ahead: int = 0
    """Runs of the tenant in the same queue that come before it."""
    offers: int = 0
    claims_per_s: int = 0
    """Claims of the last second from its queue; 0: no worker of the pool takes anything."""


class Dispatcher:
    """Index of the open runs of the tenants of one dispatcher partition."""

    def __init__(self, *, dispatcher: int, epoch: int, ledger_partitions: int) -> None:
        """Empty; `tick` asks every ledger partition for its open runs."""
        self.dispatcher = dispatcher
        self.epoch = epoch
        self.superseded_by: int | None = None
        """Epoch of a newer dispatcher: this one must stop."""
        self._sources = [Source(partition) for partition in range(ledger_partitions)]
        self._entries: dict[RunId, Entry] = {}
        self._tenants: dict[TenantId, Tenant] = {}
        self._queues: dict[QueueKey, ReadyQueue] = {}
        self._later: list[tuple[int, int, Entry]] = []
        """Waiting runs that are not due yet, by when they are."""
        self._tie = 0
        self._answers: list[Outgoing] = []

    # --- what comes in

    def receive(self, message: Incoming, now_us: int) -> None:
        """Take a message; what it makes possible happens in the next `tick`."""
        if isinstance(message, RunStates):
            self._states(message, now_us)
        elif isinstance(message, InventoryBegan):
            self._began(message, now_us)
        elif isinstance(message, InventoryEnded):
            if message.epoch == self.epoch:
                self._sources[message.partition].end(message)
        elif isinstance(message, DigestSent):
            self._digest(message)
        elif isinstance(message, TenantSettings):
            self._limit(message)
        elif message.epoch > self.epoch:
            self.superseded_by = message.epoch

    def _states(self, message: RunStates, now_us: int) -> None:
        source = self._sources[message.partition]
        if not source.counts(message) or not source.is_news(message.writer_epoch, message.seq):
            return
        for numbers in message.tenants:
            self._tenant(numbers.tenant).count_jobs(message.partition, numbers.jobs_count)
        for state in message.runs:
            self._state(source, state, now_us)
        for ask in message.asks:
            self._ask(message.partition, ask, now_us)

    def _state(self, source: Source, state: RunState, now_us: int) -> None:
        entry = self._entries.get(state.run_id)
        if entry is not None:
            if entry.state == state and not entry.gone:
                if state.status is DispatchStatus.PENDING:
                    self._answer(source.partition, state, None)
                return
            self._sources[entry.partition].digest.remove(entry.state)
        source.digest.add(state)
        match state.status:
            case DispatchStatus.STARTED:
                self._started(source, entry, state, now_us)
            case DispatchStatus.WAITING:
                self._waits(source, entry, state)
            case DispatchStatus.PENDING:
                self._pending(source, entry, state)
            case DispatchStatus.CLOSED | DispatchStatus.UNSPECIFIED:
                if entry is not None:
                    self._drop(entry)

    def _started(self, source: Source, entry: Entry | None, state: RunState, now_us: int) -> None:
        if entry is not None:
            before = entry.state
            self._queue(before).claimed(entry, now_us)
            self._drop(entry)
        self._keep(Entry(state=state, partition=source.partition, released=True))
        self._tenant(state.tenant).holding.add(state.run_id)

    def _waits(self, source: Source, entry: Entry | None, state: RunState) -> None:
        if entry is not None:
            same_plan = entry.released and entry.state.plan == state.plan
            if same_plan and entry.state.status is not DispatchStatus.STARTED:
                # Told again while a hint is out: it stays out.
                entry.state = state
                return
            self._drop(entry)
        self._wait(Entry(state=state, partition=source.partition))

    def _pending(self, source: Source, entry: Entry | None, state: RunState) -> None:
        tenant = self._tenant(state.tenant)
        if entry is None and not tenant.admits_run():
            source.digest.remove(state)
            refusal = (
                f"{state.tenant} has {tenant.waiting} waiting runs, "
                f"{tenant.settings.backlog} are the most"
            )
            self._answer(source.partition, state, refusal)
            return
        if entry is not None:
            self._drop(entry)
        self._wait(Entry(state=state, partition=source.partition))
        self._answer(source.partition, state, None)

    def _wait(self, entry: Entry) -> None:
        self._keep(entry)
        self._tenant(entry.state.tenant).waiting += 1
        self._tie += 1
        heapq.heappush(self._later, (entry.state.not_before_us, self._tie, entry))

    def _keep(self, entry: Entry) -> None:
        self._entries[entry.state.run_id] = entry

    def _drop(self, entry: Entry) -> None:
        """Forget a run and free what it held."""
        state = entry.state
        entry.gone = True
        del self._entries[state.run_id]
        tenant = self._tenant(state.tenant)
        if state.status is not DispatchStatus.STARTED:
            tenant.waiting -= 1
            self._queue(state).withdraw(entry)
        if state.run_id in tenant.holding:
            tenant.holding.discard(state.run_id)
            self._unpark(tenant)

    def _unpark(self, tenant: Tenant) -> None:
        if tenant.parked and tenant.has_room:
            for key in sorted(tenant.parked):
                self._queues[key].enter(tenant.name)
            tenant.parked.clear()

    def _answer(self, partition: int, state: RunState, refusal: str | None) -> None:
        self._answers.append(
            AdmissionAnswer(
                partition=partition,
                dispatcher=self.dispatcher,
                epoch=self.epoch,
                job_id=job_of(state.run_id),
                run_id=state.run_id,
                admitted=refusal is None,
                code="" if refusal is None else errors.BACKLOG_FULL.slug,
                detail=refusal or "",
            )
        )

    def _ask(self, partition: int, ask: JobAsk, now_us: int) -> None:
        tenant = self._tenant(ask.tenant)
        admitted = tenant.admits_job(partition, ask.job_id, now_us)
        self._answers.append(
            AdmissionAnswer(
                partition=partition,
                dispatcher=self.dispatcher,
                epoch=self.epoch,
                job_id=ask.job_id,
                run_id=None,
                admitted=admitted,
                code="" if admitted else errors.TOO_MANY_JOBS.slug,
                detail=""
                if admitted
                else f"{ask.tenant} has its {tenant.settings.jobs} jobs, the most",
            )
        )

    def _began(self, mark: InventoryBegan, now_us: int) -> None:
        if mark.epoch != self.epoch:
            return
        for entry in [e for e in self._entries.values() if e.partition == mark.partition]:
            self._drop(entry)
        source = self._sources[mark.partition]
        source.begin(mark, now_us)
        source.is_news(mark.writer_epoch, mark.seq)

    def _digest(self, message: DigestSent) -> None:
        source = self._sources[message.partition]
        if not source.complete or not source.is_news(message.writer_epoch, message.seq):
            return
        differing = source.digest.differing(message.buckets)
        if not differing:
            source.mismatched = False
        elif source.mismatched:
            # The repair did not help: something is held that the scheduler does not know.
            source.ask_again()
        else:
            source.mismatched = True
            self._answers.append(
                RepairWanted(
                    partition=message.partition,
                    dispatcher=self.dispatcher,
                    epoch=self.epoch,
                    buckets=differing,
                )
            )

    def _limit(self, settings: TenantSettings) -> None:
        tenant = self._tenant(settings.tenant)
        tenant.settings = settings
        self._unpark(tenant)

    # --- what goes out

    def tick(self, now_us: int) -> list[Outgoing]:
        """What to send now: questions, answers, hints."""
        if self.superseded_by is not None:
            return []
        out: list[Outgoing] = list(self._questions(now_us))
        out += self._answers
        self._answers = []
        while self._later and self._later[0][0] <= now_us:
            _, _, entry = heapq.heappop(self._later)
            if not entry.gone:
                self._queue(entry.state).put(entry)
        known = all(source.complete or source.excused for source in self._sources)
        for queue in self._queues.values():
            hints = self._hints(queue, known=known, now_us=now_us)
            if hints:
                out.append(Hints(hints=hints))
        return out

    def _questions(self, now_us: int) -> Iterator[InventoryWanted]:
        for source in self._sources:
            if source.asks(now_us):
                yield InventoryWanted(
                    partition=source.partition, dispatcher=self.dispatcher, epoch=self.epoch
                )

    def _hints(self, queue: ReadyQueue, *, known: bool, now_us: int) -> tuple[Hint, ...]:
        offered: list[Entry] = []
        for entry in queue.unclaimed(now_us):
            queue.offer(entry, now_us)
            offered.append(entry)
        offered += queue.take(self._tenants, known=known, now_us=now_us)
        return tuple(self._hint(entry) for entry in offered)

    def _hint(self, entry: Entry) -> Hint:
        state = entry.state
        return Hint(
            run_id=state.run_id,
            partition=entry.partition,
            plan=state.plan,
            dispatcher=self.dispatcher,
            epoch=self.epoch,
            tier=state.tier,
            pool=state.pool,
            handler=state.handler,
            valid_until_us=valid_until_us(entry),
        )

    def wake_us(self, now_us: int) -> int | None:
        """When `tick` has something to do without new input; None = never."""
        instants = [ask for source in self._sources if (ask := source.ask_us()) is not None]
        if self._answers:
            instants.append(now_us)
        if self._later:
            instants.append(self._later[0][0])
        for queue in self._queues.values():
            wake_us = queue.wake_us(now_us)
            if wake_us is not None:
                instants.append(wake_us)
        return min(instants, default=None)

    # --- for operators

    def excuse(self, partition: int) -> None:
        """Let the runs of a silent partition count as none until it answers."""
        self._sources[partition].excused = True

    def silent(self, now_us: int) -> list[int]:
        """Partitions asked for 30 s without an answer."""
        return [source.partition for source in self._sources if source.is_silent(now_us)]

    def explain(self, run_id: RunId, now_us: int) -> Standing:
        """Where a run stands."""
        entry = self._entries.get(run_id)
        if entry is None:
            return Standing(status="unknown")
        state = entry.state
        tenant = self._tenant(state.tenant)
        queue = self._queue(state)
        if state.status is DispatchStatus.STARTED:
            status = "started"
        elif entry.released:
            status = "offered"
        else:
            status = "not_due" if state.not_before_us > now_us else "waiting"
        return Standing(
            status=status,
            due_us=state.not_before_us,
            holding=len(tenant.holding),
            quota=tenant.settings.concurrency,
            ahead=queue.ahead_of(entry),
            offers=entry.offers,
            claims_per_s=queue.rate.per_s(now_us),
        )

    def backlog(self) -> dict[QueueKey, int]:
        """Runs that are due and wait, with hints out or not, by queue."""
        return {key: queue.waiting() + len(queue.out) for key, queue in self._queues.items()}

    def _tenant(self, name: TenantId) -> Tenant:
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = self._tenants[name] = Tenant(name)
        return tenant

    def _queue(self, state: RunState) -> ReadyQueue:
        key = key_of(state)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = ReadyQueue()
        return queue
