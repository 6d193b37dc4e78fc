"""The owner of one ledger partition: read, decide and evolve, commit, react.

    take_over            recover, open a new epoch
    step                 inputs -> one batch, already evolved, waiting for its commit
    committed            the batch is in the log: what to tell the outside

A step is pure but for the log: it reads no clock and sends nothing. A batch that was definitely not
written stays as it is and is written again; an owner that cannot know whether it was must take over
anew. What a step answers leaves only after its commit, so no owner that was fenced answers.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import force_setattr

from horolog.schemas.records import (
    AttemptEnded,
    Command,
    CreateJob,
    EpochStarted,
    Event,
    Heartbeat,
    InputsRead,
    JobId,
    LogCreated,
    ReportAnswered,
    ReportKind,
    RunStarted,
    RunSucceeded,
    UpdateJob,
    Verdict,
    ZoneRules,
)
from horolog.streams.calendar import next_midnight_after
from horolog.streams.host.inbox import Inbox, Inputs, MarkRead
from horolog.streams.host.preview import Preview, preview
from horolog.streams.host.snapshots import OLDEST_US, Entry, Recovery
from horolog.streams.host.timers import Timers
from horolog.streams.limits import MARK_STEP_MAX_US, MINUTE_US, SECOND_US, WAKES_PER_STEP
from horolog.streams.log import Batch, Log
from horolog.streams.scheduler import PartitionState, Soft, decide, evolve, react, wake_us
from horolog.streams.scheduler.evolve import HANDLERS
from horolog.streams.scheduler.inputs import Input, LeaseCheck, Wake, ZonesSeen
from horolog.streams.scheduler.messages import Message

MARK_EVERY_US: Final = SECOND_US

ZoneSource = Callable[[str], ZoneRules | None]
"""Rules of a zone as this host has them, effective from 0; None: it knows no such zone."""


class Owner:
    """State, inputs and timers of a ledger partition that this process owns."""

    def __init__(
        self, log: Log, partition: int, *, name: str, zones: ZoneSource, tzdata: str
    ) -> None:
        """Recover the partition from its log; nothing is written before `take_over`."""
        self.partition = partition
        self.inbox = Inbox()
        """Inputs of this process; see `read_from`."""
        self._inputs: Inputs = self.inbox
        self.timers = Timers()
        self._log = log
        self._name = name
        self._zones = zones
        self._tzdata = tzdata
        recovery = Recovery(log, partition)
        self.state: PartitionState = recovery.state
        self.soft = Soft()
        self.soft.take_over(self.state)
        self._snapshotter = recovery.snapshotter
        self._recent = recovery.recent
        self._events: list[Event] = []
        self._answers: list[Message] = []
        self._snapshots: tuple[Entry, ...] = ()
        self._touched: set[JobId] = set()
        self._woken: set[JobId] = set()
        self._first_seq = self.state.seq + 1
        self._mark_next_us = 0
        self._positions_next_us = 0

    def read_from(self, inputs: Inputs) -> None:
        """Take inputs from topics and no more from the `inbox`."""
        self._inputs = inputs

    # --- a step

    def take_over(self, now_us: int, lease_us: int | None, *, epoch_seen: int = 0) -> Batch:
        """Open a new epoch, above `epoch_seen` too: what stands in the log may hold epochs that
        do not count. Its batch is to be committed before anything is decided.
        """
        self._begin(now_us)
        state = self.state
        last_good_seq = state.seq
        if last_good_seq == 0:
            self._append(
                LogCreated(
                    log_id=self._log.log_id,
                    generation=self._log.generation,
                    partition=self.partition,
                    partitions=self._log.partitions,
                    tzdata=self._tzdata,
                ),
                now_us,
                epoch=1,
            )
        self._append(
            EpochStarted(last_good_seq=last_good_seq, owner=self._name),
            now_us,
            epoch=max(state.writer_epoch, epoch_seen) + 1,
        )
        new_rules = tuple(self._new_rules(now_us))
        if new_rules:
            self._drive(ZonesSeen(version=self._tzdata, zones=new_rules), now_us)
        if lease_us is not None:
            self.soft.mark_us = lease_us
            self._mark_next_us = lease_us + MARK_EVERY_US
        self._positions_next_us = now_us + MINUTE_US
        for job in state.jobs.values():
            self.timers.set(job.job_id, wake_us(state, job, 0))
        return self._seal(now_us)

    def step(self, now_us: int, lease_us: int | None) -> Batch | None:
        """Read what there is and decide over all of it. None: nothing to commit.

        `now_us`: microseconds UTC to decide by. `lease_us`: clock by which lease time is counted
        (embedded: boot time); None: it is counted by the marks that are read. The batch must be
        committed, or the same one written again, before the next step.
        """
        self._begin(now_us)
        for item in self._inputs.take():
            if isinstance(item, MarkRead):
                self._mark(item.append_us, now_us)
                continue
            if isinstance(item, CreateJob | UpdateJob):
                self._know_zone(item.definition.schedule.timezone, now_us)
            self._drive(item, now_us)
        if lease_us is not None and lease_us >= self._mark_next_us:
            self._mark_next_us = lease_us + MARK_EVERY_US
            self._mark(lease_us, now_us)
        for job_id in self.timers.due(now_us, WAKES_PER_STEP):
            self._woken.add(job_id)
            self._drive(Wake(job_id=job_id), now_us)
        self._set_timers(now_us)
        if not self._events and not self._snapshots and not self._must_commit(now_us):
            return None
        return self._seal(now_us)

    def committed(self) -> list[Message]:
        """The step's batch, if it had one, is in the log: what to send now."""
        events, answers = self._events, self._answers
        self._events, self._answers, self._snapshots = [], [], ()
        messages = [*answers, *react(self.state, events)] if events else answers
        self._first_seq = self.state.seq + 1
        return messages

    def recent(self, now_us: int) -> Iterable[Message]:
        """What the last minute of the ledger changed, to be sent again after a takeover."""
        events = [event for event in self._recent if event.at_us >= now_us - MINUTE_US]
        self._recent = []
        return react(self.state, events)

    def preview(self, command: Command, now_us: int) -> Preview:
        """What a command would do now; changes nothing. Between steps only."""
        rules: ZoneRules | None = None
        if isinstance(command, CreateJob | UpdateJob):
            zone = command.definition.schedule.timezone
            rules = None if zone in self.state.zones else self._zones(zone)
        return preview(self.state, command, now_us, () if rules is None else (rules,))

    def next_us(self) -> int | None:
        """The next instant (microseconds UTC) at which a step has something to do by itself, but
        for its marks.
        """
        instants = (self.timers.next_us(), self._snapshotter.due_us())
        return min((instant for instant in instants if instant is not None), default=None)

    def live_claims(self) -> Iterator[str]:
        """Claims of the leases that are live. Cost: looks at every open run."""
        for job in self.state.jobs.values():
            for run in job.runs.values():
                if run.lease is not None:
                    yield run.lease.claim_id

    def snapshot_age_us(self, now_us: int) -> int:
        """Age of the oldest change that no snapshot covers; 0 = all are. Any thread may ask."""
        due_us = self._snapshotter.due_us()
        return 0 if due_us is None else max(now_us - due_us + OLDEST_US, 0)

    @property
    def mark_next_us(self) -> int:
        """When the next mark is due, by the clock that counts lease time."""
        return self._mark_next_us

    # --- parts of a step

    def _begin(self, now_us: int) -> None:
        assert not self._events, "the batch before has to be committed first"
        self._first_seq = self.state.seq + 1
        self._snapshots = self._snapshotter.take(self.state, now_us)
        self._touched.clear()
        self._woken.clear()

    def _drive(self, item: Input, now_us: int) -> None:
        # The core's time never runs back, whatever the host's clock shows.
        now_us = max(now_us, self.state.at_us)
        for step in decide(self.state, self.soft, item, now_us):
            if type(step) in HANDLERS:
                self._append(step, now_us)  # type: ignore[arg-type]  # its type is an event's
            else:
                self._answers.append(step)  # type: ignore[arg-type]  # a message, not an event
                if isinstance(item, Heartbeat):
                    self._note_beat(item, step)

    def _note_beat(self, beat: Heartbeat, answer: object) -> None:
        if isinstance(answer, ReportAnswered) and answer.verdict is not Verdict.STALE:
            self.soft.begin(beat.run_id, beat.inbox)

    def _append(self, event: Event, now_us: int, epoch: int | None = None) -> None:
        """Stamp an event, evolve the state by it, and keep it for the batch.

        The one place that writes to a record: it is not shared with anybody before its stamps.
        """
        state = self.state
        seq = state.seq + 1
        force_setattr(event, "seq", seq)
        force_setattr(event, "writer_epoch", state.writer_epoch if epoch is None else epoch)
        force_setattr(event, "at_us", max(now_us, state.at_us + 1))
        force_setattr(event, "batch", self._first_seq)
        evolve(state, event)
        self._events.append(event)
        kind = type(event)
        job_id: JobId | None = getattr(event, "job_id", None)
        if job_id is not None:
            self._snapshotter.changed(job_id, seq, now_us)
            # Cost: a start or success lets no job wake earlier, so its timer may stand: it finds
            # nothing to do, once, where each look at all runs would cost as much as the event.
            if kind is not RunStarted and kind is not RunSucceeded:
                self._touched.add(job_id)
        if kind is RunStarted:
            self.soft.begin(event.run_id, event.inbox)  # type: ignore[union-attr]  # by its type
        elif kind is RunSucceeded or kind is AttemptEnded:
            self.soft.end(event.run_id)  # type: ignore[union-attr]  # by its type

    def _mark(self, mark_us: int, now_us: int) -> None:
        self.soft.mark(mark_us, MARK_STEP_MAX_US)
        self._drive(LeaseCheck(), now_us)

    def _must_commit(self, now_us: int) -> bool:
        """Whether an answer may only leave after a commit. A heartbeat that was accepted changes
        nothing anybody could take over, so its answer alone commits nothing. Positions that moved
        are committed once a minute: so much is read again at a takeover.
        """
        if now_us >= self._positions_next_us:
            self._positions_next_us = now_us + MINUTE_US
            if self._inputs.positions != self.state.positions:
                return True
        return any(
            not isinstance(answer, ReportAnswered)
            or answer.kind is not ReportKind.HEARTBEAT
            or answer.verdict is not Verdict.ACCEPTED
            for answer in self._answers
        )

    def _seal(self, now_us: int) -> Batch:
        self._append(
            InputsRead(
                positions=dict(self._inputs.positions),
                lease_time_us=self.soft.lease_time_us,
                records=self.state.seq + 2 - self._first_seq,
            ),
            now_us,
        )
        return Batch(
            partition=self.partition, events=tuple(self._events), snapshots=self._snapshots
        )

    def _set_timers(self, now_us: int) -> None:
        for job_id in self._touched | self._woken:
            job = self.state.jobs.get(job_id)
            if job is None:
                self.timers.set(job_id, None)
            else:
                after_us = now_us if job_id in self._woken else 0
                self.timers.set(job_id, wake_us(self.state, job, after_us))

    def _new_rules(self, now_us: int) -> Iterator[ZoneRules]:
        """Rules of the partition's zones that this host has otherwise than the ledger. They take
        effect at the zone's next midnight: nothing planned by then lies beyond it. A host with
        older data goes by the ledger's.
        """
        state = self.state
        if _is_older(self._tzdata, state.tzdata):
            return
        latest = {rules.zone: rules.rules for rules in state.zone_rules}
        for zone, known in latest.items():
            rules = self._zones(zone)
            if rules is not None and rules.rules != known:
                midnight_us = next_midnight_after(state.zones, zone, max(now_us, state.at_us))
                yield msgspec.structs.replace(rules, effective_us=midnight_us)

    def _know_zone(self, zone: str, now_us: int) -> None:
        """Record the rules of a zone before the first job uses it."""
        if zone in self.state.zones:
            return
        rules = self._zones(zone)
        if rules is not None:
            self._drive(ZonesSeen(version=self._tzdata, zones=(rules,)), now_us)


def _is_older(mine: str, other: str) -> bool:
    """Whether a version of the tz database, such as `2026f`, comes before another one. A folder
    given for tests has a name of another form and counts as new.
    """
    return mine[:1].isdigit() and other[:1].isdigit() and mine < other
