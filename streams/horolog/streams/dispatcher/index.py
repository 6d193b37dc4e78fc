"""The index itself: states come in, hints and answers go out.

Messages are states of runs, not changes, and carry the stamp of the state they were read from; what
is older than what was read before is dropped. A run holds a place of its tenant's quota from the
first hint until its scheduler tells that it has ended or waits with a newer plan. Nothing else
frees the place, however long it takes and whatever is lost: so any hint that is out may be claimed
at any time without passing the quota.
"""

from typing import Final, assert_never

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
    RepairWanted,
    RunId,
    RunState,
    RunStates,
    TenantId,
    TenantJobs,
    TenantSettings,
    Tier,
)
from horolog.streams.dispatcher import standing
from horolog.streams.dispatcher.admission import Admission
from horolog.streams.dispatcher.digest import part_of
from horolog.streams.dispatcher.entries import (
    GONE,
    LATER,
    OUT,
    READY,
    REFUSED,
    RESTING,
    STARTED,
    UNDECIDED,
    Entry,
    LaneKey,
    holds,
    same_place,
)
from horolog.streams.dispatcher.later import Later
from horolog.streams.dispatcher.queues import Lane, Pool, ReadyQueue
from horolog.streams.dispatcher.sources import COMPLETE, Source
from horolog.streams.dispatcher.standing import Backlog, Standing
from horolog.streams.dispatcher.tenants import Tenant

Incoming = (
    RunStates | InventoryBegan | InventoryEnded | DigestSent | EpochSuperseded | TenantSettings
)
Outgoing = Hints | AdmissionAnswer | InventoryWanted | RepairWanted

HINTS_PER_RECORD: Final = 1_000

_PENDING: Final = DispatchStatus.PENDING
_WAITING: Final = DispatchStatus.WAITING
_CLOSED: Final = DispatchStatus.CLOSED


class Dispatcher:
    """Index of the open runs of the tenants of one dispatcher partition."""

    def __init__(self, *, dispatcher: int, epoch: int, ledger_partitions: int) -> None:
        """Empty; `tick` asks every ledger partition for its open runs."""
        self.dispatcher = dispatcher
        self.epoch = epoch
        self.superseded_by: int | None = None
        """Epoch of a newer dispatcher: this one does nothing any more."""
        self._sources = [Source(partition) for partition in range(ledger_partitions)]
        self._tenants: dict[TenantId, Tenant] = {}
        self._pools: dict[str, Pool] = {}
        self._lanes: dict[LaneKey, Lane] = {}
        self._active: dict[ReadyQueue, None] = {}
        """Queues in which something waits or is out."""
        self._later = Later()
        self._places = 0
        self._freed: dict[Tenant, None] = {}
        """Tenants that have lines parked and may have room again."""
        self._admission = Admission(dispatcher, epoch)
        self._repairs: list[RepairWanted] = []
        self._known = False

    # --- what comes in

    def receive(self, message: Incoming, now_us: int) -> None:
        """Take a message; what it makes possible happens in the next `tick`."""
        if self.superseded_by is not None:
            return
        if isinstance(message, TenantSettings):
            tenant = self._tenant(message.tenant)
            tenant.limit(message)
            self._freed[tenant] = None
            self._admission.is_new = True
            return
        if not 0 <= message.partition < len(self._sources):
            return
        source = self._sources[message.partition]
        if isinstance(message, EpochSuperseded):
            self._supersede(message)
        elif not source.is_news(message.writer_epoch, message.seq):
            pass
        elif isinstance(message, RunStates):
            if source.takes(message.writer_epoch, now_us):
                self._tell(source, message, now_us)
        elif message.dispatcher == self.dispatcher:
            self._mark(source, message, now_us)

    def _supersede(self, message: EpochSuperseded | InventoryBegan) -> None:
        if message.dispatcher == self.dispatcher and message.epoch > self.epoch:
            self.superseded_by = message.epoch

    def _mark(
        self, source: Source, message: InventoryBegan | InventoryEnded | DigestSent, now_us: int
    ) -> None:
        match message:
            case InventoryBegan():
                self._supersede(message)
                if message.epoch == self.epoch:
                    source.begin(message, now_us)
            case InventoryEnded():
                if message.epoch == self.epoch and source.takes(
                    message.writer_epoch, now_us, ends=True
                ):
                    self._ended(source, message)
            case DigestSent():
                if source.takes(message.writer_epoch, now_us):
                    self._compare(source, message)
            case _:
                assert_never(message)

    def _ended(self, source: Source, mark: InventoryEnded) -> None:
        untold = source.end(mark)
        if untold is None:
            return
        for entry in untold:
            self._close(source, entry)
        for tenant in source.jobs.keys() - source.jobs_told:
            self._count_jobs(source, TenantJobs(tenant=tenant, jobs_count=0))

    def _compare(self, source: Source, digest: DigestSent) -> None:
        buckets, unknown = source.compare(digest)
        if source.phase is not COMPLETE:
            return
        for entry in unknown:
            self._close(source, entry)
        if buckets:
            self._repairs.append(
                RepairWanted(
                    partition=source.partition,
                    dispatcher=self.dispatcher,
                    epoch=self.epoch,
                    buckets=buckets,
                )
            )
        for run_id, digests in source.pending.items():
            source.pending[run_id] = digests + 1
            if digests > 0:
                self._admission.ask_run(run_id, source.partition)
        for tenant in list(source.asking):
            if not self._tenant(tenant).age_promises(source.partition):
                source.asking.discard(tenant)

    def _tell(self, source: Source, message: RunStates, now_us: int) -> None:
        source.counted += len(message.runs)
        for numbers in message.tenants:
            source.jobs_told.add(numbers.tenant)
            self._count_jobs(source, numbers)
        entries = source.entries
        sums = source.digest.sums
        for state in message.runs:
            run_id = state.run_id
            entry = entries.get(run_id)
            status = state.status
            if status is _CLOSED:
                if entry is not None:
                    self._close(source, entry)
                continue
            if entry is None:
                bucket, part = part_of(state)
                sums[bucket] += part
                entry = Entry(state, source.partition, bucket, part, source.round)
                entries[run_id] = entry
            else:
                entry.seen = source.round
                if entry.state == state:
                    if status is _PENDING:
                        self._admission.ask_run(run_id, source.partition)
                    continue
                _, part = part_of(state)
                sums[entry.bucket] += part - entry.part
                entry.part = part
            if status is _PENDING:
                self._ask(source, entry, state, now_us)
                continue
            if source.pending:
                source.pending.pop(run_id, None)
            if status is _WAITING:
                self._wait(entry, state, now_us)
            else:
                # A status of a newer release: whatever it is, the run is open, so it holds.
                self._start(entry, state, now_us)
        for ask in message.asks:
            self._admission.ask_job(ask, source.partition)

    def _wait(self, entry: Entry, state: RunState, now_us: int) -> None:
        if entry.stage is OUT or entry.stage is RESTING:
            before = entry.state
            if before.plan == state.plan:
                # The hint that is out is good for it.
                if same_place(before, state):
                    entry.state = state
                return
        tenant = self._tenant(state.tenant)
        self._leave(entry, tenant)
        entry.state = state
        self._queue_up(entry, tenant, now_us)

    def _start(self, entry: Entry, state: RunState, now_us: int) -> None:
        tenant = self._tenant(state.tenant)
        if entry.stage is OUT or entry.stage is RESTING:
            self._queue(entry.state).claimed(entry, now_us)
            tenant.waiting -= 1
        else:
            self._leave(entry, tenant)
            tenant.holding.add(state.run_id)
        entry.state = state
        entry.stage = STARTED
        self._pool(state.pool).started += 1

    def _ask(self, source: Source, entry: Entry, state: RunState, now_us: int) -> None:
        stage = entry.stage
        if (stage is OUT or stage is RESTING) and entry.state.plan == state.plan:
            # Admitted before, and its hint is good; the answer may have been lost.
            if same_place(entry.state, state):
                entry.state = state
        else:
            tenant = self._tenant(state.tenant)
            self._leave(entry, tenant)
            entry.state = state
            if stage is LATER or stage is READY:
                self._queue_up(entry, tenant, now_us)
            else:
                entry.stage = UNDECIDED
        source.pending[state.run_id] = 0
        self._admission.ask_run(state.run_id, source.partition)

    def _close(self, source: Source, entry: Entry) -> None:
        run_id = entry.state.run_id
        source.digest.sums[entry.bucket] -= entry.part
        source.pending.pop(run_id, None)
        del source.entries[run_id]
        self._leave(entry, self._tenant(entry.state.tenant))
        entry.stage = GONE

    def _count_jobs(self, source: Source, numbers: TenantJobs) -> None:
        before = source.jobs.get(numbers.tenant, 0)
        source.jobs[numbers.tenant] = numbers.jobs_count
        self._tenant(numbers.tenant).count_jobs(source.partition, before, numbers.jobs_count)

    # --- where a run is

    def _leave(self, entry: Entry, tenant: Tenant) -> None:
        """Take a run out of where it is, and free what it holds."""
        stage = entry.stage
        if stage is STARTED:
            self._pool(entry.state.pool).started -= 1
            self._free(entry, tenant)
        elif stage is LATER:
            tenant.waiting -= 1
            self._later.drop()
        elif stage is READY:
            tenant.waiting -= 1
            self._queue(entry.state).drop(entry)
        elif stage is OUT or stage is RESTING:
            tenant.waiting -= 1
            self._queue(entry.state).withdraw(entry)
            self._free(entry, tenant)

    def _free(self, entry: Entry, tenant: Tenant) -> None:
        tenant.holding.discard(entry.state.run_id)
        if tenant.parked:
            self._freed[tenant] = None

    def _queue_up(self, entry: Entry, tenant: Tenant, now_us: int) -> None:
        tenant.waiting += 1
        self._places += 1
        entry.place = self._places
        entry.offers = 0
        entry.step = 0
        if entry.state.not_before_us <= now_us:
            queue = self._queue(entry.state)
            queue.put(entry, tenant)
            self._active[queue] = None
        else:
            self._later.put(entry)

    def _tenant(self, name: TenantId) -> Tenant:
        if name not in self._tenants:
            self._tenants[name] = Tenant(name)
        return self._tenants[name]

    def _queue(self, state: RunState) -> ReadyQueue:
        key = (state.pool, state.handler)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key, self._pool(state.pool))
        return lane.queue(state.tier)

    def _pool(self, name: str) -> Pool:
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = Pool()
        return pool

    # --- what goes out

    def tick(self, now_us: int) -> list[Outgoing]:
        """What is to be sent now, in order."""
        if self.superseded_by is not None:
            return []
        out: list[Outgoing] = [
            self._question(source) for source in self._sources if source.asks(now_us)
        ]
        known = all(source.is_known for source in self._sources)
        if known and not self._known:
            self._freed |= {tenant: None for tenant in self._tenants.values() if tenant.parked}
            self._admission.is_new = True
        self._known = known
        if self._admission.is_new:
            self._decide(now_us)
        out += self._admission.answers()
        out += self._repairs
        self._repairs = []
        self._fall_due(now_us)
        for hints in self._release(now_us).values():
            out += [
                Hints(hints=tuple(hints[first : first + HINTS_PER_RECORD]))
                for first in range(0, len(hints), HINTS_PER_RECORD)
            ]
        return out

    def _question(self, source: Source) -> InventoryWanted:
        # What waits is told anew. What holds a place may go only when it is known not to.
        for entry in [entry for entry in source.entries.values() if not holds(entry)]:
            self._close(source, entry)
        return InventoryWanted(
            partition=source.partition, dispatcher=self.dispatcher, epoch=self.epoch
        )

    def _decide(self, now_us: int) -> None:
        """Answer what was asked, as far as the limits in question are known."""
        admission = self._admission
        admission.is_new = False
        for run_id, partition in list(admission.runs.items()):
            entry = self._sources[partition].entries.get(run_id)
            if entry is None or entry.state.status is not _PENDING:
                del admission.runs[run_id]
                continue
            tenant = self._tenant(entry.state.tenant)
            if entry.stage is UNDECIDED or entry.stage is REFUSED:
                if tenant.backlog_most is not None and not self._known:
                    continue
                if tenant.admits_run():
                    self._queue_up(entry, tenant, now_us)
                else:
                    entry.stage = REFUSED
            del admission.runs[run_id]
            admission.answer_run(run_id, partition, tenant, admitted=entry.stage is not REFUSED)
        for job_id, (partition, ask) in list(admission.jobs.items()):
            tenant = self._tenant(ask.tenant)
            if tenant.jobs_most is not None and not self._known:
                continue
            del admission.jobs[job_id]
            admitted = tenant.admits_job(job_id, partition)
            if admitted:
                self._sources[partition].asking.add(tenant.name)
            admission.answer_job(ask, partition, tenant, admitted=admitted)

    def _fall_due(self, now_us: int) -> None:
        for entry in self._later.due(now_us):
            queue = self._queue(entry.state)
            queue.put(entry, self._tenant(entry.state.tenant))
            self._active[queue] = None

    def _release(self, now_us: int) -> dict[ReadyQueue, list[Hint]]:
        """Hints to send. A place of a quota that becomes free goes to the tenant's line that was
        parked longest; what that one cannot use now, to its other lines.
        """
        hints: dict[ReadyQueue, list[Hint]] = {}
        for queue in self._active:
            again = queue.offer_again(now_us)
            if again:
                hints[queue] = [self._hint(entry, valid_us) for entry, valid_us in again]
        self._wake(everything=False)
        self._take(hints, now_us)
        if self._wake(everything=True):
            self._take(hints, now_us)
        self._freed.clear()
        for queue in [queue for queue in self._active if queue.is_idle]:
            del self._active[queue]
        return hints

    def _wake(self, *, everything: bool) -> bool:
        """Let parked lines of tenants that have room take part again."""
        woken = False
        for tenant in self._freed:
            if not tenant.parked or not tenant.has_room(self._known):
                continue
            lines = list(tenant.parked.items())
            if tenant.quota is not None and not everything:
                lines = lines[: tenant.quota - len(tenant.holding)]
            for line, queue in lines:
                del tenant.parked[line]
                queue.enter(line)
                self._active[queue] = None
                woken = True
        return woken

    def _take(self, hints: dict[ReadyQueue, list[Hint]], now_us: int) -> None:
        for queue in self._active:
            taken = queue.take(known=self._known, now_us=now_us)
            if taken:
                sent = hints.setdefault(queue, [])
                sent += [self._hint(entry, queue.offer(entry, now_us)) for entry in taken]

    def _hint(self, entry: Entry, valid_until_us: int) -> Hint:
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
            valid_until_us=valid_until_us,
            offer=entry.offers,
        )

    def wake_us(self, now_us: int) -> int | None:
        """When `tick` has something to do without new input; None = never."""
        if self.superseded_by is not None:
            return None
        if self._admission.is_new or self._repairs or self._freed:
            return now_us
        instants = [ask_us for source in self._sources if (ask_us := source.wake_us()) is not None]
        next_us = self._later.next_us()
        if next_us is not None:
            instants.append(next_us)
        for queue in self._active:
            wake_us = queue.wake_us(now_us)
            if wake_us is not None:
                instants.append(wake_us)
        return min(instants, default=None)

    # --- for operators

    def excuse(self, partition: int) -> None:
        """Let what a silent partition has not told count as none until it answers. Its runs may
        then pass a quota, if it was not silent but cut off.
        """
        self._sources[partition].excused = True

    def silent(self, now_us: int) -> list[int]:
        """Partitions that were asked for all their runs and have said nothing usable for 30 s."""
        return [source.partition for source in self._sources if source.is_silent(now_us)]

    @property
    def missing(self) -> tuple[int, ...]:
        """Partitions for which tenants with limits wait."""
        return tuple(source.partition for source in self._sources if not source.is_known)

    def explain(self, run_id: RunId, now_us: int) -> Standing:
        """Where a run stands. Changes nothing; may be called from another thread."""
        for source in self._sources:
            entry = source.entries.get(run_id)
            if entry is not None:
                state = entry.state
                lane = self._lanes.get((state.pool, state.handler)) or Lane(
                    (state.pool, state.handler), Pool()
                )
                tenant = self._tenants.get(state.tenant) or Tenant(state.tenant)
                return standing.standing_of(entry, tenant, lane, self.missing, now_us)
        return standing.UNKNOWN

    def backlog(self) -> dict[tuple[str, Tier], Backlog]:
        """What is due and not started, by pool and tier. Cost: one pass over what waits."""
        found: dict[tuple[str, Tier], Backlog] = {}
        for (pool, _), lane in list(self._lanes.items()):
            for queue in lane.queues:
                key = pool, queue.tier
                found[key] = found.get(key, Backlog()).with_queue(queue)
        return found
