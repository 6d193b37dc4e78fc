"""Replay: the state of a partition from its log alone, and the proof that snapshots agree with it.

`verify` folds every event since the first one, and beside it recovers as a new owner would: from
the snapshots and the tail. The two states must be equal, record for record and byte for byte
(invariant 6). It also holds at any earlier `seq`, which `state_at` gives.
"""

import hashlib
from collections.abc import Iterator

import msgspec

from horolog.schemas.codec import encode
from horolog.streams.host.snapshots import Recovery, fold
from horolog.streams.log import Log
from horolog.streams.scheduler.snapshot import canonical
from horolog.streams.scheduler.state import PartitionState


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification of one partition found."""

    partition: int
    seq: int
    """Last event of the partition."""
    jobs_count: int
    runs_count: int
    digest: str
    """SHA-256 of the folded state in its canonical form."""
    difference: str
    """The first record in which the recovered state differs; empty = identical."""


def verify(log: Log, partition: int) -> Verdict:
    """Fold the ledger, recover from snapshots and tail, and compare. Raises Corrupt."""
    folded = fold(log, partition)
    recovered = Recovery(log, partition).state
    return Verdict(
        partition=partition,
        seq=folded.seq,
        jobs_count=len(folded.jobs),
        runs_count=sum(len(job.runs) for job in folded.jobs.values()),
        digest=digest_of(folded),
        difference=first_difference(folded, recovered),
    )


def state_at(log: Log, partition: int, to_seq: int) -> PartitionState:
    """The state of a partition after its event `to_seq`."""
    return fold(log, partition, to_seq)


def digest_of(state: PartitionState) -> str:
    """SHA-256 over the canonical form of a state."""
    digest = hashlib.sha256()
    for key, data in encoded(state):
        digest.update(key.encode())
        digest.update(data)
    return digest.hexdigest()


def first_difference(folded: PartitionState, recovered: PartitionState) -> str:
    """The key of the first record that is not the same in both, and what differs; empty = none."""
    left, right = dict(encoded(folded)), dict(encoded(recovered))
    for key in [*left, *(key for key in right if key not in left)]:
        if left.get(key) != right.get(key):
            return f"{key}: folded {_told(left.get(key))}, recovered {_told(right.get(key))}"
    return ""


def encoded(state: PartitionState) -> Iterator[tuple[str, bytes]]:
    """The canonical form of a state, encoded."""
    for key, record in canonical(state):
        yield key, encode(record)


def _told(data: bytes | None) -> str:
    return "nothing" if data is None else hashlib.sha256(data).hexdigest()[:16]
