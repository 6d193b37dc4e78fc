"""A run as the dispatcher knows it.

    NEW ──┬─► UNDECIDED ──► REFUSED          asked for: the backlog limit decides
          │       │
          ├───────┴──► LATER ──► READY ──► OUT ◄──► RESTING
          │                                 │
          └────────────► STARTED ◄──────────┘        and GONE from anywhere

OUT, RESTING and STARTED hold a place of the tenant's quota. A run goes back to LATER or READY when
it is told to wait with a newer plan: then the hint that is out is worthless.
"""

import enum
from typing import Final

import msgspec

from horolog.schemas.records import RunState


class Stage(enum.Enum):
    """What the dispatcher has done with a run."""

    NEW = "new"
    UNDECIDED = "undecided"
    """Asked for; not answered yet."""
    REFUSED = "refused"
    """Asked for and refused; the scheduler has not closed it yet."""
    LATER = "later"
    READY = "ready"
    """Due; waits for its turn, the window and the quota."""
    OUT = "out"
    """A hint is out and valid."""
    RESTING = "resting"
    """A hint is out whose validity has ended while nothing of its lane was claimed. It may still be
    claimed: a claim can be on its way."""
    STARTED = "started"
    GONE = "gone"


NEW: Final = Stage.NEW
UNDECIDED: Final = Stage.UNDECIDED
REFUSED: Final = Stage.REFUSED
LATER: Final = Stage.LATER
READY: Final = Stage.READY
OUT: Final = Stage.OUT
RESTING: Final = Stage.RESTING
STARTED: Final = Stage.STARTED
GONE: Final = Stage.GONE


class Entry(msgspec.Struct, eq=False, gc=False):
    """An open run: what its scheduler told, and what the dispatcher did with it.

    Refers to nothing that refers back, so the collector need not see it.
    """

    state: RunState
    partition: int
    """Ledger partition it comes from."""
    bucket: int
    part: int
    """What it adds to its bucket of the digest."""
    seen: int
    """Round of its partition in which it was last told (`Source.round`)."""
    stage: Stage = Stage.NEW
    place: int = 0
    """Changes whenever the run is put into a queue; what has another number there is stale."""
    offered_us: int = 0
    """When the last hint for this plan was sent."""
    offers: int = 0
    """Hints sent for this plan."""
    step: int = 0
    """How often others passed it while it was offered: each doubles the validity of its hint."""


LaneKey = tuple[str, str]
"""Pool, and function (empty for other targets): whose workers may take what waits there."""


def holds(entry: Entry) -> bool:
    """Whether a run holds a place of its tenant's quota."""
    return entry.stage is OUT or entry.stage is RESTING or entry.stage is STARTED


def same_place(one: RunState, other: RunState) -> bool:
    """Whether two states of a run wait in the same queue, in the same way."""
    return (
        one.pool == other.pool
        and one.handler == other.handler
        and one.tier is other.tier
        and one.make_up is other.make_up
    )
