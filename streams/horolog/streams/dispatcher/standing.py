"""Where a run stands, for whoever asks why it has not started; and how much waits where."""

import enum

import msgspec

from horolog.streams.dispatcher.entries import Entry, Stage
from horolog.streams.dispatcher.queues import Lane, ReadyQueue
from horolog.streams.dispatcher.tenants import Tenant
from horolog.streams.limits import SECOND_US


class StandingStatus(enum.Enum):
    """What a run waits for."""

    UNKNOWN = "unknown"
    """The dispatcher was not told of it: not open, held, not planned yet, or the overlap policy
    has not let it through."""
    UNDECIDED = "undecided"
    """Asked for; the backlog limit is about to decide."""
    REFUSED = "refused"
    NOT_DUE = "not_due"
    UNKNOWN_QUOTA = "unknown_quota"
    """A new dispatcher does not know all open runs yet, and the tenant has a quota."""
    AT_QUOTA = "at_quota"
    IN_LINE = "in_line"
    """For its turn, or room in the window."""
    OFFERED = "offered"
    """A hint is out, for a worker to claim."""
    STARTED = "started"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands at an instant."""

    status: StandingStatus
    reason: str
    """The same in words."""
    due_us: int = 0
    """When it may be released."""
    holding: int = 0
    """Runs of the tenant that are released or started."""
    quota: int | None = None
    ahead: int = 0
    """Runs of the tenant in the same queue that come before it."""
    in_line: int = 0
    """Runs of the tenant in the same queue, this one included."""
    tenants: int = 0
    """Tenants that take turns in the queue."""
    offers: int = 0
    """Hints sent for its plan."""
    offered_us: int | None = None
    """When the hint that is out was sent."""
    claims_per_s: int = 0
    """Claims of the last second from its queue."""
    claimed_us: int | None = None
    """When a run for the same workers was last claimed; None = not since this dispatcher began."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What waits in a pool and tier, due."""

    waiting: int = 0
    """No hint is out: for a turn, the window, or the tenant's quota."""
    offered: int = 0
    """A hint is out."""
    oldest_due_us: int | None = None
    """Due time of the run that waits longest, with a hint out or not."""

    def with_queue(self, queue: ReadyQueue) -> "Backlog":
        """This and what waits in one more queue."""
        oldest_us = queue.oldest_us()
        dues = [each for each in (self.oldest_due_us, oldest_us) if each is not None]
        return Backlog(
            waiting=self.waiting + queue.waiting(),
            offered=self.offered + queue.out,
            oldest_due_us=min(dues, default=None),
        )


UNKNOWN = Standing(
    status=StandingStatus.UNKNOWN,
    reason="the dispatcher knows of no such run: it has ended, is held, or is not planned yet",
)


def standing_of(
    entry: Entry, tenant: Tenant, lane: Lane, missing: tuple[int, ...], now_us: int
) -> Standing:
    """Where a run stands. `missing`: partitions that have not told all their runs."""
    state = entry.state
    queue = lane.queue(state.tier)
    line = queue.lines.get(state.tenant)
    ready = entry.stage is Stage.READY and line is not None
    status = _status(entry, tenant, missing)
    offered_us = entry.offered_us if status is StandingStatus.OFFERED else None
    standing = Standing(
        status=status,
        reason="",
        due_us=state.not_before_us,
        holding=len(tenant.holding),
        quota=tenant.quota,
        ahead=line.ahead_of(entry) if ready and line is not None else 0,
        in_line=line.live if ready and line is not None else 0,
        tenants=len(queue.lines),
        offers=entry.offers,
        offered_us=offered_us,
        claims_per_s=queue.rate.per_s(now_us),
        claimed_us=lane.claimed_us if lane.claimed_us >= 0 else None,
    )
    return msgspec.structs.replace(standing, reason=_reason(standing, queue, missing, now_us))


def _status(entry: Entry, tenant: Tenant, missing: tuple[int, ...]) -> StandingStatus:
    match entry.stage:
        case Stage.NEW | Stage.UNDECIDED:
            return StandingStatus.UNDECIDED
        case Stage.REFUSED:
            return StandingStatus.REFUSED
        case Stage.LATER:
            return StandingStatus.NOT_DUE
        case Stage.READY:
            if tenant.quota is not None and missing:
                return StandingStatus.UNKNOWN_QUOTA
            return StandingStatus.IN_LINE if tenant.has_room(True) else StandingStatus.AT_QUOTA
        case Stage.OUT | Stage.RESTING:
            return StandingStatus.OFFERED
        case Stage.STARTED:
            return StandingStatus.STARTED
        case Stage.GONE:
            return StandingStatus.UNKNOWN


def _reason(standing: Standing, queue: ReadyQueue, missing: tuple[int, ...], now_us: int) -> str:
    pool, handler = queue.lane.key
    workers = f"pool {pool!r}" + (f" with function {handler!r}" if handler else "")
    if standing.claimed_us is None:
        claims = f"{workers} has shown no claim yet"
    else:
        claims = f"the last claim of {workers} was {_seconds(now_us - standing.claimed_us)} ago"
    place = (
        f"{_ordinal(standing.ahead + 1)} of {standing.in_line} of its tenant in tier "
        f"{queue.tier.value}, {standing.tenants} tenants take turns"
    )
    match standing.status:
        case StandingStatus.UNKNOWN:
            return UNKNOWN.reason
        case StandingStatus.UNDECIDED:
            return "asked for; the tenant's backlog limit is about to decide"
        case StandingStatus.REFUSED:
            return "asked for and refused: the tenant's backlog is full"
        case StandingStatus.NOT_DUE:
            return f"waits until it is due, in {_seconds(standing.due_us - now_us)}"
        case StandingStatus.UNKNOWN_QUOTA:
            partitions = ", ".join(str(partition) for partition in missing)
            return f"waits until all open runs are known; ledger partitions missing: {partitions}"
        case StandingStatus.AT_QUOTA:
            return f"the tenant is at its quota, {standing.holding} of {standing.quota}; {place}"
        case StandingStatus.IN_LINE:
            return f"{place}; {queue.out} hints are out, {queue.window} at most; {claims}"
        case StandingStatus.OFFERED:
            since_us = now_us - (standing.offered_us or now_us)
            return f"a hint is out since {_seconds(since_us)}, unclaimed; {claims}"
        case StandingStatus.STARTED:
            return "a worker holds it"


def _seconds(us: int) -> str:
    return f"{max(us, 0) / SECOND_US:.1f} s"


def _ordinal(number: int) -> str:
    teens = 10 <= number % 100 <= 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
