"""The loop of a ledger partition on a log that several processes share.

    open        fence the older owner (its transaction ends), read the ledger to its end
    take over   the first batch: a new epoch, and from where on what an older one wrote counts not
    serve       read inputs, one step, commit, then tell

Who *should* own a partition is said by a group and fences nothing; who *owns* it is said by the
log: by the producer that was opened last, and by the epochs in the data. So every way out of doubt
is the same: open anew, read the end of the ledger, and see whose it is.

What a step answers leaves only after its batch is known to be committed. Messages may be lost or
doubled; each can be derived again.
"""

from collections.abc import Iterable
from typing import Final

from horolog.schemas.errors import FENCED, Fenced
from horolog.schemas.ids import job_of
from horolog.schemas.records import (
    ClaimRefused,
    Grant,
    InboxBatch,
    Mark,
    Reply,
    ReportAnswered,
    RunId,
    RunState,
    StopRun,
)
from horolog.streams.host.brokertime import TimeCheck
from horolog.streams.host.clock import BrokerTime, SteadyClock
from horolog.streams.host.outbox import Outbox
from horolog.streams.host.owner import Owner, ZoneSource
from horolog.streams.host.ports import IDLE_MOST_US, LedgerPort, Outcome, Reads
from horolog.streams.host.reading import Reading
from horolog.streams.host.topics import INBOX, REPLIES, REPORTS, RUN_STATES
from horolog.streams.limits import MINUTE_US, SECOND_US
from horolog.streams.log import Batch
from horolog.streams.log.assemble import assemble
from horolog.streams.scheduler.messages import Message, WorkerMessage
from horolog.streams.scheduler.react import state_of

ABORTS_MOST: Final = 5
"""The same batch is given so often; then the producer is opened anew."""


class PartitionLoop:
    """Owns one ledger partition for as long as it can."""

    def __init__(
        self,
        port: LedgerPort,
        clock: SteadyClock,
        brokers: BrokerTime,
        *,
        partition: int,
        dispatchers: int,
        name: str,
        zones: ZoneSource,
        tzdata: str,
    ) -> None:
        """`dispatchers`: number of dispatcher partitions. `name`: of this process, for people."""
        self._port = port
        self._clock = clock
        self._time = TimeCheck(port, clock, brokers)
        self._partition = partition
        self._dispatchers = dispatchers
        self._name = name
        self._zones = zones
        self._tzdata = tzdata
        self._doubted = False
        self._mark_next_us = 0
        self._digest_next_us = 0
        self._reading = Reading(partition, 1, {})
        self._told: dict[RunId, int] = {}
        """Runs told to dispatchers within the last minute, oldest first."""

    async def run(self) -> None:
        """Take the partition over and serve it. Ends by Fenced when it is another's, by Unavailable
        when this host's clock is wrong, by Corrupt when the ledger does not go on as it must.
        """
        while True:
            owner = await self._take_over()
            if owner is not None:
                await self._serve(owner)

    # --- taking over

    async def _take_over(self) -> Owner | None:
        """None: the first batch could not be written; try again from the start."""
        port, clock = self._port, self._clock
        await self._time.check()
        await port.open()
        self._doubted = False
        owner = Owner(
            port.log, self._partition, name=self._name, zones=self._zones, tzdata=self._tzdata
        )
        tail = await port.tail(owner.state.seq)
        epoch_seen = max((record.writer_epoch for record in tail.records), default=0)
        reading = Reading(self._partition, port.log.partitions, owner.state.positions)
        owner.read_from(reading)
        await port.seek(reading.positions)
        now_us = clock.now_us()
        if not await self._commit(owner.take_over(now_us, None, epoch_seen=epoch_seen)):
            return None
        self._reading = reading
        self._outbox = Outbox(owner.state, self._dispatchers)
        self._told.clear()
        self._digest_next_us = now_us + MINUTE_US
        self._tell(owner, [*owner.committed(), *owner.recent(now_us)], now_us)
        return owner

    # --- serving

    async def _serve(self, owner: Owner) -> None:
        """Until the batch that was to be written is torn: then what is in memory is worthless."""
        while True:
            reads = await self._port.read(self._wait_us(owner))
            await self._time.check()
            self._take(owner, reads)
            now_us = self._clock.now_us()
            batch = owner.step(now_us, None)
            if batch is not None and not await self._commit(batch):
                return
            self._tell(owner, owner.committed(), now_us)
            self._mark(owner)

    def _take(self, owner: Owner, reads: Reads) -> None:
        for item in reads.items:
            why = self._reading.offer(item)
            if why is not None:
                self._port.set_aside(item, why)
        if any(topic == RUN_STATES for topic, _ in reads.undelivered):
            self._tell_again(owner)

    def _mark(self, owner: Owner) -> None:
        """Write the mark by whose append time lease time is counted; none while no lease is live:
        a lease counts from the first mark after its grant.
        """
        boot_us = self._clock.boot_us()
        if owner.soft.beats and boot_us >= self._mark_next_us:
            self._mark_next_us = boot_us + SECOND_US
            self._port.send(REPORTS, self._partition, Mark(writer_epoch=owner.state.writer_epoch))

    def _wait_us(self, owner: Owner) -> int:
        """How long nothing will happen by itself."""
        if self._reading or self._outbox.is_sending:
            return 0
        now_us = self._clock.now_us()
        waits = [IDLE_MOST_US, self._digest_next_us - now_us]
        next_us = owner.next_us()
        if next_us is not None:
            waits.append(next_us - now_us)
        if owner.soft.beats:
            waits.append(self._mark_next_us - self._clock.boot_us())
        return max(min(waits), 0)

    # --- committing

    async def _commit(self, batch: Batch) -> bool:
        """Write a batch once, however often it takes. False: it is there in part, so only a new
        epoch can go on. Raises Fenced when the partition is another's.
        """
        if self._doubted:
            await self._open_again(batch)
        aborts = 0
        while True:
            outcome = await self._port.append(batch)
            match outcome:
                case Outcome.WRITTEN | Outcome.DOUBTED:
                    self._doubted = outcome is Outcome.DOUBTED
                    return True
                case Outcome.ABORTED:
                    aborts += 1
                    if aborts < ABORTS_MOST:
                        continue
                    aborts = 0
                case Outcome.UNKNOWN:
                    pass
            written = await self._open_again(batch)
            if written is not None:
                return written

    async def _open_again(self, batch: Batch) -> bool | None:
        """Open anew and see what the ledger ends with: True: the batch; False: a part of it; None:
        neither. Raises Fenced if another owner was there meanwhile.
        """
        await self._port.open()
        self._doubted = False
        tail = assemble(self._partition, (await self._port.tail(batch.first_seq - 1)).records)
        first = batch.events[0]
        epoch = batch.events[-1].writer_epoch
        if tail.epoch > epoch:
            raise Fenced(FENCED, f"ledger partition {self._partition} has a newer owner")
        if tail.torn:
            return False
        last = tail.batches[-1] if tail.batches else None
        if last is None or last.last_seq < first.seq:
            return None
        return last.events[-1] == batch.events[-1]

    # --- telling

    def _tell(self, owner: Owner, messages: Iterable[Message], now_us: int) -> None:
        inboxes: dict[str, list[WorkerMessage]] = {}
        for message in messages:
            if isinstance(message, Grant | ReportAnswered | ClaimRefused | StopRun):
                inboxes.setdefault(message.inbox, []).append(message)
            elif isinstance(message, Reply):
                self._port.send(REPLIES, message.reply_to, message)
            else:
                if isinstance(message, RunState):
                    self._told.pop(message.run_id, None)
                    self._told[message.run_id] = now_us
                self._outbox.add(message)
        for inbox, mail in inboxes.items():
            self._port.send(INBOX, inbox, self._mail(owner, mail))
        if now_us >= self._digest_next_us:
            self._digest_next_us = now_us + MINUTE_US
            self._outbox.digests()
        for dispatcher, told in self._outbox.flush():
            self._port.send(RUN_STATES, dispatcher, told)
        self._forget(now_us)

    def _mail(self, owner: Owner, mail: list[WorkerMessage]) -> InboxBatch:
        state = owner.state
        return InboxBatch(
            partition=self._partition,
            writer_epoch=state.writer_epoch,
            seq=state.seq,
            grants=tuple(each for each in mail if isinstance(each, Grant)),
            refusals=tuple(each for each in mail if isinstance(each, ClaimRefused)),
            answers=tuple(each for each in mail if isinstance(each, ReportAnswered)),
            stops=tuple(each for each in mail if isinstance(each, StopRun)),
        )

    def _tell_again(self, owner: Owner) -> None:
        """Something for a dispatcher is not known to have arrived: send again what the last minute
        changed, as it is now. What is older the minute's digest finds.
        """
        jobs = owner.state.jobs
        for run_id in self._told:
            self._outbox.add(state_of(jobs.get(job_of(run_id)), run_id))

    def _forget(self, now_us: int) -> None:
        while self._told:
            run_id, told_us = next(iter(self._told.items()))
            if told_us >= now_us - MINUTE_US:
                return
            del self._told[run_id]
