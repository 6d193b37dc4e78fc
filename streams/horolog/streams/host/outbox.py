"""What an owner tells the dispatchers: states grouped by target and stamped, inventories some at a
time, and the minute's digest.

Every part is read from the state when it is sent and carries the state's `seq`, so one owner's
stamps never go down and a reader needs one stamp per source partition.
"""

from collections.abc import Iterator

from horolog.schemas.ids import partition_of, tenant_of
from horolog.schemas.records import (
    DigestSent,
    EpochSuperseded,
    InventoryBegan,
    InventoryEnded,
    JobAsk,
    JobId,
    JobStatus,
    RunState,
    RunStates,
    TenantId,
    TenantJobs,
)
from horolog.streams.dispatcher.digest import Digest, bucket_of
from horolog.streams.limits import RESEND_PER_STEP
from horolog.streams.scheduler.messages import DispatcherMessage, Resend
from horolog.streams.scheduler.react import is_open, job_ask, state_of
from horolog.streams.scheduler.state import PartitionState

ToDispatcher = RunStates | InventoryBegan | InventoryEnded | DigestSent | EpochSuperseded


class Outbox:
    """Messages of one owner that wait to be sent, by dispatcher partition."""

    def __init__(self, state: PartitionState, dispatchers: int) -> None:
        """`dispatchers`: number of dispatcher partitions; tenants are spread over them by key."""
        self._state = state
        self._dispatchers = dispatchers
        self._waiting: dict[int, list[RunState | JobAsk | TenantJobs]] = {}
        self._told: list[tuple[int, ToDispatcher]] = []
        self._resends: dict[int, _Resending] = {}

    def add(self, message: DispatcherMessage | Resend) -> None:
        """Keep a message for the next `flush`, or begin to send a dispatcher what it asked for."""
        if isinstance(message, RunState | JobAsk | TenantJobs):
            self._waiting.setdefault(self._dispatcher_of(message.tenant), []).append(message)
        elif isinstance(message, Resend):
            self._resends[message.dispatcher] = _Resending(message, list(self._state.jobs))
        else:
            self._told.append((message.dispatcher, message))

    def digests(self) -> None:
        """Send each dispatcher the digest of its open runs; by the ledger, since the owner before
        may have been the one that was asked for the inventory.
        """
        for dispatcher in self._state.dispatcher_epochs:
            if dispatcher not in self._resends:
                # Asks and numbers of jobs have no digest: they are told again with it, so that a
                # lost one is mended within a minute.
                self._told.append((dispatcher, self._states(list(self._of_jobs(dispatcher)))))
                self._told.append((dispatcher, self._digest(dispatcher)))

    @property
    def is_sending(self) -> bool:
        """Whether `flush` has more to send by itself."""
        return bool(self._resends)

    def flush(self) -> Iterator[tuple[int, ToDispatcher]]:
        """What to send now, by dispatcher partition, in order."""
        for dispatcher, states in self._waiting.items():
            resending = self._resends.get(dispatcher)
            if resending is not None and resending.began:
                resending.count(states)
            yield dispatcher, self._states(states)
        self._waiting = {}
        for dispatcher in list(self._resends):
            yield from self._go_on(dispatcher)
        told, self._told = self._told, []
        yield from told

    def _dispatcher_of(self, tenant: TenantId) -> int:
        return partition_of(tenant, self._dispatchers)

    def _states(self, messages: list[RunState | JobAsk | TenantJobs]) -> RunStates:
        state = self._state
        return RunStates(
            partition=state.partition,
            writer_epoch=state.writer_epoch,
            seq=state.seq,
            runs=tuple(each for each in messages if isinstance(each, RunState)),
            asks=tuple(each for each in messages if isinstance(each, JobAsk)),
            tenants=tuple(each for each in messages if isinstance(each, TenantJobs)),
        )

    def _go_on(self, dispatcher: int) -> Iterator[tuple[int, ToDispatcher]]:
        resending = self._resends[dispatcher]
        state = self._state
        order = resending.order
        if not order.buckets and not resending.began:
            resending.began = True
            yield (
                dispatcher,
                InventoryBegan(
                    partition=state.partition,
                    writer_epoch=state.writer_epoch,
                    seq=state.seq,
                    dispatcher=dispatcher,
                    epoch=order.epoch,
                ),
            )
            yield dispatcher, self._states(list(self._tenants(dispatcher)))
        part: list[RunState | JobAsk | TenantJobs] = []
        while resending.job_ids and len(part) < RESEND_PER_STEP:
            part += self._open_of(resending.job_ids.pop(), dispatcher, order.buckets)
        if part:
            resending.count(part)
            yield dispatcher, self._states(part)
        if not resending.job_ids:
            del self._resends[dispatcher]
            # At the same seq as the end: what was lost or doubled on the way shows at once.
            yield dispatcher, self._digest(dispatcher)
            if not order.buckets:
                yield (
                    dispatcher,
                    InventoryEnded(
                        partition=state.partition,
                        writer_epoch=state.writer_epoch,
                        seq=state.seq,
                        dispatcher=dispatcher,
                        epoch=order.epoch,
                        runs_count=resending.sent,
                    ),
                )

    def _tenants(self, dispatcher: int) -> Iterator[TenantJobs]:
        for tenant, jobs_count in self._state.tenant_jobs.items():
            if self._dispatcher_of(tenant) == dispatcher:
                yield TenantJobs(tenant=tenant, jobs_count=jobs_count)

    def _of_jobs(self, dispatcher: int) -> Iterator[JobAsk | TenantJobs]:
        """Numbers of jobs, and the jobs that wait for admission."""
        yield from self._tenants(dispatcher)
        for job in self._state.jobs.values():
            if (
                job.status is JobStatus.REQUESTED
                and self._dispatcher_of(tenant_of(job.job_id)) == dispatcher
            ):
                yield job_ask(job)

    def _open_of(
        self, job_id: JobId, dispatcher: int, buckets: tuple[int, ...]
    ) -> Iterator[RunState | JobAsk]:
        """The open runs of a job, those of some buckets only if any are named."""
        job = self._state.jobs.get(job_id)
        if job is None or self._dispatcher_of(tenant_of(job_id)) != dispatcher:
            return
        if job.status is JobStatus.REQUESTED:
            yield job_ask(job)
        for run in job.runs.values():
            if is_open(run) and (not buckets or bucket_of(run.run_id) in buckets):
                yield state_of(job, run.run_id)

    def _digest(self, dispatcher: int) -> DigestSent:
        state = self._state
        digest = Digest()
        for job_id, job in state.jobs.items():
            if job.runs and self._dispatcher_of(tenant_of(job_id)) == dispatcher:
                for run in job.runs.values():
                    if is_open(run):
                        digest.add(state_of(job, run.run_id))
        return DigestSent(
            partition=state.partition,
            writer_epoch=state.writer_epoch,
            seq=state.seq,
            dispatcher=dispatcher,
            buckets=digest.buckets(),
        )


class _Resending:
    """How far a resend has got."""

    def __init__(self, order: Resend, job_ids: list[JobId]) -> None:
        self.order = order
        self.job_ids = job_ids
        self.began = False
        self.sent = 0
        """Run states sent since the begin mark, in the stream or for the inventory."""

    def count(self, messages: list[RunState | JobAsk | TenantJobs]) -> None:
        self.sent += sum(isinstance(each, RunState) for each in messages)
