"""What the oracle judges by: the committed ledger, what targets wrote down, what clients were told.

Nothing of the product's memory is in it. Times are true ones, which no node knows.
"""

from collections.abc import Mapping, Sequence

import msgspec

from horolog.schemas.records import Command, Event, Reply, RunId, TenantId


class Told(msgspec.Struct, frozen=True, gc=False):
    """An event that counts, and when it was committed."""

    us: int
    partition: int
    event: Event


class Seen(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a target wrote down."""

    kind: str
    """`start`, `end`, or `killed`: its worker died."""
    at_us: int
    run_id: RunId
    attempt: int
    token: int
    worker: str
    ok: bool = False


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that a client got; one for each, repeats too."""

    at_us: int
    command: Command
    reply: Reply


class Pause(msgspec.Struct, frozen=True, gc=False):
    """A worker process did nothing for a while."""

    worker: str
    from_us: int
    to_us: int


class Observation(msgspec.Struct, kw_only=True):
    """A whole simulation, seen from outside."""

    events: Sequence[Told]
    """In the order in which they were committed."""
    seen: Sequence[Seen]
    acks: Sequence[Ack]
    sent: Sequence[tuple[int, Command]]
    """When each command was first sent."""
    pauses: Sequence[Pause]
    quotas: Mapping[TenantId, int]
    capacity: int
    """Runs that all workers together can execute."""
    start_us: int
    healed_us: int
    """No fault from here on."""
    end_us: int


class Violation(msgspec.Struct, frozen=True):
    """Something that must not be."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"
