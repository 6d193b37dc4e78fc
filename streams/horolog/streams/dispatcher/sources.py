"""What each ledger partition has told, and whether it told all of it.

    ASKING ──begin mark──► TELLING ──end mark, right count──► COMPLETE
       ▲                      │
       └── wrong count or digest, another owner, no end mark, 10 s of silence

While it is asked, once a second, everything it says is skipped until the begin mark of this epoch.
Between the marks run states are counted. Of what was known before the question (of an inventory
that failed) the runs that hold a place of a quota stay until the right end mark, and then go if
they were not told again: a place is only free when its run is known not to hold it.

**Digests.** When a bucket differs, its runs are asked for, and `round` goes up; each run told
carries the round. If at the next digest the runs told since give the scheduler's sum by themselves,
all others in the bucket are unknown to it and go. Nothing marks the end of a resend, so it may be
lost, doubled or cut short: then the sums differ and the bucket is asked for again.
"""

import enum
from typing import Final

from horolog.schemas.records import (
    DigestSent,
    InventoryBegan,
    InventoryEnded,
    RunId,
    TenantId,
)
from horolog.streams.dispatcher.digest import BUCKETS, Digest, wrapped
from horolog.streams.dispatcher.entries import Entry
from horolog.streams.limits import SECOND_US

ASK_EVERY_US: Final = SECOND_US
SILENT_US: Final = 30 * SECOND_US
STALLED_US: Final = 10 * SECOND_US
"""An inventory of which nothing has come for so long is asked for anew."""


class Phase(enum.Enum):
    """How much of a partition is known."""

    ASKING = "asking"
    TELLING = "telling"
    COMPLETE = "complete"


ASKING: Final = Phase.ASKING
TELLING: Final = Phase.TELLING
COMPLETE: Final = Phase.COMPLETE


class Source:
    """One ledger partition as seen by the dispatcher."""

    def __init__(self, partition: int) -> None:
        """Nothing is known; it is asked at the next tick."""
        self.partition = partition
        self.entries: dict[RunId, Entry] = {}
        self.digest = Digest()
        self.phase = ASKING
        self.round = 0
        """Goes up with each inventory and each repair."""
        self.counted = 0
        """Run states told since the begin mark."""
        self.jobs: dict[TenantId, int] = {}
        self.jobs_told: set[TenantId] = set()
        """Tenants whose number of jobs was told since the begin mark."""
        self.pending: dict[RunId, int] = {}
        """Runs told as pending, with the digests read since: whoever asked may have missed the
        answer."""
        self.asking: set[TenantId] = set()
        """Tenants with jobs promised."""
        self.excused = False
        """An operator lets what it has not told count as none until it answers."""
        self._writer_epoch = 0
        self._seq = 0
        self._teller = 0
        """Owner's epoch in the begin mark."""
        self._closing: DigestSent | None = None
        """The digest before the end mark."""
        self._repairing: frozenset[int] = frozenset()
        self._ask_us = 0
        self._heard_us: int | None = None
        """When it was first asked, or last told something while it was not complete."""

    @property
    def is_known(self) -> bool:
        """Whether all its open runs are known, or count as none."""
        return self.phase is COMPLETE or self.excused

    def is_news(self, writer_epoch: int, seq: int) -> bool:
        """Whether a message is not older than what was read before, used or not."""
        if writer_epoch < self._writer_epoch:
            return False
        if writer_epoch == self._writer_epoch and seq < self._seq:
            return False
        self._writer_epoch = writer_epoch
        self._seq = seq
        return True

    def takes(self, writer_epoch: int, now_us: int, *, ends: bool = False) -> bool:
        """Whether what is told may be used: not before the begin mark. `ends`: it is an end mark.

        Another owner within an inventory does not know that one is due, and is asked. No digest is
        sent within an inventory but directly before the end mark, so what else comes after one
        shows that the mark was lost.
        """
        if self.phase is COMPLETE:
            return True
        if self.phase is ASKING:
            return False
        if writer_epoch != self._teller or (self._closing is not None and not ends):
            self.ask_again()
            return False
        self._heard_us = now_us
        return True

    # --- inventory

    def begin(self, mark: InventoryBegan, now_us: int) -> None:
        """From here on the partition tells all. Once complete, it is the answer to a question that
        was asked twice, and what follows is a state like others.
        """
        if self.phase is COMPLETE:
            return
        self.phase = TELLING
        self.round += 1
        self.counted = 0
        self.jobs_told.clear()
        self.excused = False
        self._teller = mark.writer_epoch
        self._closing = None
        self._repairing = frozenset()
        self._heard_us = now_us

    def end(self, mark: InventoryEnded) -> list[Entry] | None:
        """The partition says that it has told all. If it has: the runs that it did not tell, which
        are to be forgotten. None: something was lost, and it is asked again; or the mark is not for
        this inventory.
        """
        if self.phase is not TELLING:
            return None
        if self.counted != mark.runs_count or not self._closes(mark):
            self.ask_again()
            return None
        self.phase = COMPLETE
        self._heard_us = None
        return [entry for entry in self.entries.values() if entry.seen != self.round]

    def _closes(self, mark: InventoryEnded) -> bool:
        """Whether the digest sent just before the end mark, if one was, is that of what was told. A
        count alone would not notice one message lost and another of the same size doubled.
        """
        digest = self._closing
        if digest is None or digest.seq != mark.seq or len(digest.buckets) != BUCKETS:
            return True
        return self._told_sums(frozenset(range(BUCKETS))) == dict(enumerate(digest.buckets))

    def ask_again(self) -> None:
        """Begin anew."""
        self.phase = ASKING
        self._ask_us = 0

    def asks(self, now_us: int) -> bool:
        """Whether to ask for the inventory now."""
        if self.phase is COMPLETE:
            return False
        if self._heard_us is None:
            self._heard_us = now_us
        if self.phase is TELLING and now_us >= self._heard_us + STALLED_US:
            self.ask_again()
        if self.phase is TELLING or now_us < self._ask_us:
            return False
        self._ask_us = now_us + ASK_EVERY_US
        return True

    def wake_us(self) -> int | None:
        """When to ask next; None = complete."""
        if self.phase is COMPLETE:
            return None
        if self.phase is TELLING and self._heard_us is not None:
            return self._heard_us + STALLED_US
        return self._ask_us

    def is_silent(self, now_us: int) -> bool:
        """Whether it has said nothing that can be used for 30 s, and is not known."""
        heard_us = self._heard_us
        return (
            self.phase is not COMPLETE and heard_us is not None and (now_us - heard_us >= SILENT_US)
        )

    # --- digests

    def compare(self, message: DigestSent) -> tuple[tuple[int, ...], list[Entry]]:
        """Buckets to ask for, and runs that the scheduler does not know."""
        if self.phase is not COMPLETE:
            self._closing = message
            return (), []
        if len(message.buckets) != BUCKETS:
            return (), []
        mine = self.digest.buckets()
        differing = frozenset(
            bucket for bucket in range(BUCKETS) if mine[bucket] != message.buckets[bucket]
        )
        told = self._told_sums(differing & self._repairing)
        explained = {bucket for bucket, total in told.items() if total == message.buckets[bucket]}
        unknown = [
            entry
            for entry in (self.entries.values() if explained else ())
            if entry.bucket in explained and entry.seen != self.round
        ]
        self._repairing = differing - explained
        if self._repairing:
            self.round += 1
        return tuple(sorted(self._repairing)), unknown

    def _told_sums(self, buckets: frozenset[int]) -> dict[int, int]:
        """Sums over the runs told in this round. Cost: one pass, after something was lost."""
        totals = dict.fromkeys(buckets, 0)
        if buckets:
            for entry in self.entries.values():
                if entry.seen == self.round and entry.bucket in totals:
                    totals[entry.bucket] += entry.part
        return {bucket: wrapped(total) for bucket, total in totals.items()}
