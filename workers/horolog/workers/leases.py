"""What an agent does about its claims and leases: pure, with time as an argument.

    hint ── claim ──► claiming ── grant ──► running ── ended ──► reporting ── answer ──► (gone)
                         │ refused             │ stop asked, lease lost, fence
                         ▼                     ▼
                       (gone)               stopping ── ended ──► reporting, or gone if lost

A claim is repeated each second until it is answered. A grant counts once and only for a claim that
is still out; one whose claim is older than a third of the term is given back. The lease is counted
on the boot-time clock from when the *first* copy of the claim, then of the last acknowledged
heartbeat, was sent: never longer than the scheduler counts it. The agent stops the run itself a
kill grace and three seconds before it ends, so that no other can have begun.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Final

import msgspec

from horolog.schemas.records import (
    ClaimRefused,
    ClaimRun,
    CompleteRun,
    Grant,
    Heartbeat,
    Hint,
    RefusalReason,
    ReleaseRun,
    ReportAnswered,
    ReportKind,
    RunId,
    RunResult,
    StopReason,
    StopRun,
    Verdict,
)

SECOND_US: Final = 1_000_000
REPEAT_US: Final = SECOND_US
HEARTBEAT_US: Final = 10 * SECOND_US
FENCE_MARGIN_US: Final = 3 * SECOND_US
REPORT_FOR_US: Final = 600 * SECOND_US
"""A completion is repeated so long; by then the scheduler no longer knows it."""
CLAIM_FOR_US: Final = 30 * SECOND_US
"""An unanswered claim is given up; its run is offered again."""
FASTEST_BEAT_US: Final = SECOND_US // 2
NOT_YET_MOST_US: Final = 5 * SECOND_US

Report = ClaimRun | Heartbeat | CompleteRun | ReleaseRun
Delivered = Grant | ClaimRefused | ReportAnswered | StopRun


class Why(Enum):
    """Why a run is stopped."""

    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LEASE_LOST = "lease_lost"
    """Nobody waits for its result any more."""
    DRAINED = "drained"
    """This process stops; the run is given back."""


class Send(msgspec.Struct, frozen=True):
    """Order: send a report to the owner of a ledger partition."""

    partition: int
    report: Report


class Start(msgspec.Struct, frozen=True):
    """Order: execute an attempt."""

    grant: Grant


class Stop(msgspec.Struct, frozen=True):
    """Order: stop the attempt that was granted for a claim."""

    claim_id: str
    why: Why


Order = Send | Start | Stop


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How an execution ended."""

    result: RunResult
    error: str = ""
    exit_code: int | None = None
    output: bytes = b""
    """Result of the run, not what it printed; at most 4 KiB of it are kept."""
    warning: str = ""
    retryable: bool = True


class _Claim(msgspec.Struct):
    hint: Hint
    report: ClaimRun
    first_us: int
    next_us: int


class _Run(msgspec.Struct):
    grant: Grant
    held_from_us: int
    """When what the lease is counted from was first sent."""
    beat_first_us: int | None
    """First copy of the heartbeat that is not acknowledged yet."""
    beat_next_us: int
    stopping: Why | None = None
    completion: CompleteRun | ReleaseRun | None = None
    report_until_us: int = 0

    @property
    def fence_us(self) -> int:
        grant = self.grant
        return self.held_from_us + grant.term_us - grant.kill_grace_us - FENCE_MARGIN_US


class Leases:
    """Claims and runs of one agent. Every method returns what is to be done now."""

    def __init__(
        self, *, worker_id: str, inbox: str, slots: int, new_claim_id: Callable[[], str]
    ) -> None:
        """`slots`: runs at the same time. `new_claim_id`: gives 128 random bits as text."""
        self._worker_id = worker_id
        self._inbox = inbox
        self._slots = slots
        self._new_claim_id = new_claim_id
        self._claims: dict[str, _Claim] = {}
        # By claim: a token names an attempt within one ledger partition only.
        self._runs: dict[str, _Run] = {}
        self._executing: set[str] = set()
        self._draining = False
        self._next_us: int | None = None
        """No later than the first instant at which `tick` has something to do."""

    @property
    def free(self) -> int:
        """Slots that nothing claims or uses."""
        if self._draining:
            return 0
        return max(self._slots - len(self._claims) - len(self._executing), 0)

    @property
    def executing(self) -> int:
        """Runs being executed."""
        return len(self._executing)

    @property
    def slots(self) -> int:
        """Runs at the same time, at most."""
        return self._slots

    @property
    def runs(self) -> tuple[RunId, ...]:
        """Runs that are held. May be read by any thread."""
        return tuple(run.grant.run_id for run in list(self._runs.values()))

    @property
    def is_draining(self) -> bool:
        """Whether nothing more is claimed."""
        return self._draining

    @property
    def is_idle(self) -> bool:
        """Whether nothing is claimed, executed or to be reported."""
        return not (self._claims or self._runs or self._executing)

    def claim(self, hints: Iterable[Hint], boot_us: int) -> Iterator[Order]:
        """Ask for the runs of some hints, at most as many as there are free slots."""
        for hint in hints:
            report = ClaimRun(
                run_id=hint.run_id,
                plan=hint.plan,
                dispatcher=hint.dispatcher,
                epoch=hint.epoch,
                worker_id=self._worker_id,
                inbox=self._inbox,
                claim_id=self._new_claim_id(),
            )
            self._claims[report.claim_id] = _Claim(hint, report, boot_us, boot_us + REPEAT_US)
            self._look_at(boot_us + REPEAT_US)
            yield Send(hint.partition, report)

    def deliver(self, message: Delivered, boot_us: int, now_us: int) -> Iterator[Order]:
        """A message came to the inbox. `now_us`: wall clock, only to turn instants into waits."""
        if isinstance(message, Grant):
            return self._granted(message, boot_us)
        if isinstance(message, ReportAnswered):
            return self._answered(message)
        if isinstance(message, ClaimRefused):
            self._refused(message, boot_us, now_us)
            return iter(())
        return self._told_to_stop(message)

    def ended(self, claim_id: str, outcome: Outcome, boot_us: int) -> Iterator[Order]:
        """An execution has ended: its slot is free, its result is reported if anybody waits."""
        self._executing.discard(claim_id)
        run = self._runs.get(claim_id)
        if run is None:
            return
        if run.stopping is Why.LEASE_LOST:
            del self._runs[claim_id]
            return
        grant = run.grant
        if run.stopping is Why.DRAINED and outcome.result is not RunResult.SUCCEEDED:
            run.completion = ReleaseRun(
                run_id=grant.run_id,
                token=grant.token,
                claim_id=claim_id,
                inbox=self._inbox,
            )
        else:
            run.completion = _completion(grant, self._inbox, outcome)
        run.report_until_us = boot_us + REPORT_FOR_US
        run.beat_next_us = boot_us + REPEAT_US
        self._look_at(run.beat_next_us)
        yield Send(grant.partition, run.completion)

    def tick(self, boot_us: int) -> Iterator[Order]:
        """What time asks for: repeats, heartbeats, fences. Cost: nothing before `next_us`, then
        one look at each claim and run.
        """
        if self._next_us is None or boot_us < self._next_us:
            return
        for claim_id, claim in list(self._claims.items()):
            if boot_us - claim.first_us >= CLAIM_FOR_US:
                del self._claims[claim_id]
            elif boot_us >= claim.next_us:
                claim.next_us = boot_us + REPEAT_US
                yield Send(claim.hint.partition, claim.report)
        for claim_id, run in list(self._runs.items()):
            if run.completion is not None:
                yield from self._repeat(claim_id, run, boot_us)
            elif run.stopping is not Why.LEASE_LOST:
                yield from self._keep(claim_id, run, boot_us)
        self._next_us = self._first_us()

    def next_us(self) -> int | None:
        """Boot time, or a little before, at which `tick` has something to do; None = never."""
        return self._next_us

    def _look_at(self, instant_us: int) -> None:
        if self._next_us is None or instant_us < self._next_us:
            self._next_us = instant_us

    def _first_us(self) -> int | None:
        instants = [claim.next_us for claim in self._claims.values()]
        for run in self._runs.values():
            if run.completion is not None:
                instants.append(run.beat_next_us)
            elif run.stopping is not Why.LEASE_LOST:
                instants += (run.beat_next_us, run.fence_us)
        return min(instants, default=None)

    def drain(self) -> None:
        """Claim nothing more; grants that still come are given back."""
        self._draining = True

    def stop_all(self) -> Iterator[Order]:
        """Stop what still runs, to be given back."""
        for claim_id in sorted(self._executing):
            run = self._runs.get(claim_id)
            if run is not None and run.stopping is None:
                run.stopping = Why.DRAINED
                yield Stop(claim_id, Why.DRAINED)

    # --- parts

    def _granted(self, grant: Grant, boot_us: int) -> Iterator[Order]:
        claim = self._claims.pop(grant.claim_id, None)
        if claim is None:
            # A copy of a grant that was taken, or of a claim that was given up.
            return
        run = _Run(grant, claim.first_us, None, claim.first_us + beat_every_us(grant))
        self._runs[grant.claim_id] = run
        self._look_at(min(run.beat_next_us, run.fence_us))
        if self._draining or boot_us - claim.first_us > grant.term_us // 3:
            run.completion = ReleaseRun(
                run_id=grant.run_id,
                token=grant.token,
                claim_id=grant.claim_id,
                inbox=self._inbox,
            )
            run.report_until_us = boot_us + grant.term_us
            run.beat_next_us = boot_us + REPEAT_US
            self._look_at(run.beat_next_us)
            yield Send(grant.partition, run.completion)
            return
        self._executing.add(grant.claim_id)
        yield Start(grant)

    def _refused(self, message: ClaimRefused, boot_us: int, now_us: int) -> None:
        claim = self._claims.get(message.claim_id)
        if claim is None:
            return
        if message.reason is RefusalReason.NOT_YET and message.retry_at_us is not None:
            wait_us = message.retry_at_us - now_us
            if wait_us <= NOT_YET_MOST_US:
                # Nothing is held meanwhile, so the lease is counted from when it is asked again.
                claim.first_us = claim.next_us = boot_us + max(wait_us, 0)
                self._look_at(claim.next_us)
                return
        del self._claims[message.claim_id]

    def _answered(self, message: ReportAnswered) -> Iterator[Order]:
        run = self._runs.get(message.claim_id)
        if run is None or run.grant.token != message.token:
            return
        if message.kind is not ReportKind.HEARTBEAT:
            if run.completion is not None:
                del self._runs[message.claim_id]
            return
        if message.verdict is Verdict.STALE:
            yield from self._lost(message.claim_id, run)
            return
        if run.beat_first_us is not None:
            run.held_from_us = run.beat_first_us
            run.beat_next_us = run.beat_first_us + beat_every_us(run.grant)
            run.beat_first_us = None
            self._look_at(min(run.beat_next_us, run.fence_us))
        if message.verdict is Verdict.CANCEL and run.stopping is None:
            run.stopping = Why.CANCELLED
            yield Stop(message.claim_id, Why.CANCELLED)

    def _told_to_stop(self, message: StopRun) -> Iterator[Order]:
        run = self._runs.get(message.claim_id)
        if run is None:
            return
        if message.reason is StopReason.LEASE_LOST:
            yield from self._lost(message.claim_id, run)
        elif run.stopping is None and run.completion is None:
            run.stopping = Why.CANCELLED
            yield Stop(message.claim_id, Why.CANCELLED)

    def _lost(self, claim_id: str, run: _Run) -> Iterator[Order]:
        if run.completion is not None:
            del self._runs[claim_id]
        elif run.stopping is not Why.LEASE_LOST:
            run.stopping = Why.LEASE_LOST
            yield Stop(claim_id, Why.LEASE_LOST)

    def _keep(self, claim_id: str, run: _Run, boot_us: int) -> Iterator[Order]:
        """Send a heartbeat if it is time, and fence the run if the lease may end."""
        if boot_us >= run.fence_us:
            yield from self._lost(claim_id, run)
            return
        if boot_us < run.beat_next_us:
            return
        if run.beat_first_us is None:
            run.beat_first_us = boot_us
        run.beat_next_us = boot_us + REPEAT_US
        grant = run.grant
        yield Send(
            grant.partition,
            Heartbeat(run_id=grant.run_id, token=grant.token, claim_id=claim_id, inbox=self._inbox),
        )

    def _repeat(self, claim_id: str, run: _Run, boot_us: int) -> Iterator[Order]:
        assert run.completion is not None
        if boot_us >= run.report_until_us:
            del self._runs[claim_id]
        elif boot_us >= run.beat_next_us:
            run.beat_next_us = boot_us + REPEAT_US
            yield Send(run.grant.partition, run.completion)


def beat_every_us(grant: Grant) -> int:
    """Time between heartbeats: one at least, with time for its answer, before the run is fenced."""
    fenced_after_us = grant.term_us - grant.kill_grace_us - FENCE_MARGIN_US
    return min(HEARTBEAT_US, grant.term_us // 3, max(fenced_after_us * 2 // 3, FASTEST_BEAT_US))


def _completion(grant: Grant, inbox: str, outcome: Outcome) -> CompleteRun:
    return CompleteRun(
        run_id=grant.run_id,
        token=grant.token,
        claim_id=grant.claim_id,
        inbox=inbox,
        result=outcome.result,
        error=outcome.error,
        retryable=outcome.retryable,
        exit_code=outcome.exit_code,
        output=outcome.output,
        warning=outcome.warning,
    )
