"""A run as the dispatcher knows it."""

import msgspec

from horolog.schemas.records import RunState


class Entry(msgspec.Struct, kw_only=True):
    """An open run: what its scheduler told, and what the dispatcher did with it."""

    state: RunState
    partition: int
    """Ledger partition it comes from."""
    released: bool = False
    """A hint is out, or was when it was claimed: it counts against the quota."""
    offered_us: int = 0
    offers: int = 0
    """Hints sent for this plan."""
    gone: bool = False
    """No longer the index's; what still points to it is stale."""


Turn = tuple[bool, int, str, int]
"""Order within a tenant: made up after fresh, then by due time, then by ID; last the plan."""


def turn_of(entry: Entry) -> Turn:
    """Place of a waiting run within its tenant."""
    state = entry.state
    return state.make_up, state.due_us, state.run_id, state.plan


QueueKey = tuple[str, str, str]
"""Pool, function (empty for other targets) and tier: whose workers may take what waits there."""


def key_of(state: RunState) -> QueueKey:
    """The ready queue a run waits in."""
    return state.pool, state.handler, state.tier.value
