"""What each ledger partition has told, and whether it told all of it.

A new dispatcher asks every partition, each second until the begin mark of its epoch comes, and
skips what is told before. Between the marks it counts run states; a wrong count or another owner
before the end mark means that something was lost: it asks again.
"""

from typing import Final

from horolog.schemas.records import InventoryBegan, InventoryEnded, RunStates
from horolog.streams.dispatcher.digest import Digest
from horolog.streams.limits import SECOND_US

ASK_EVERY_US: Final = SECOND_US
SILENT_US: Final = 30 * SECOND_US
INVENTORY_US: Final = 10 * SECOND_US


class Source:
    """One ledger partition as seen by the dispatcher."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.digest = Digest()
        self.complete = False
        """Whether all its open runs are known."""
        self.excused = False
        """An operator lets its runs count as none until it answers."""
        self.mismatched = False
        """The digest before the last one differed."""
        self._began: int | None = None
        """Owner's epoch of the begin mark; None = not begun."""
        self._counted = 0
        self._stamp = (0, 0)
        self._ask_us = 0
        self._asked_us: int | None = None
        """Since when it has been asked without an end."""

    def is_news(self, writer_epoch: int, seq: int) -> bool:
        """Whether a message is not older than what was read before; if so it is taken."""
        if (writer_epoch, seq) < self._stamp:
            return False
        self._stamp = (writer_epoch, seq)
        return True

    def counts(self, states: RunStates) -> bool:
        """Whether states told may be used: only after a begin mark. Another owner before the end
        mark does not know that an inventory was due, so it is asked for again.
        """
        if self._began is None:
            return False
        if not self.complete:
            if states.writer_epoch != self._began:
                self.ask_again()
                return False
            self._counted += len(states.runs)
        return True

    def begin(self, mark: InventoryBegan, now_us: int) -> None:
        """From here on the partition tells all; it gets ten seconds for it."""
        self._began = mark.writer_epoch
        self._counted = 0
        self.complete = False
        self.digest = Digest()
        self.mismatched = False
        self._ask_us = now_us + INVENTORY_US

    def end(self, mark: InventoryEnded) -> None:
        """The partition has told all its open runs; if not all came, ask again."""
        if self._began == mark.writer_epoch and self._counted == mark.runs_count:
            self.complete = True
            self.excused = False
            self._asked_us = None
        else:
            self.ask_again()

    def ask_again(self) -> None:
        """Begin anew."""
        self._began = None
        self.complete = False
        self._ask_us = 0

    def asks(self, now_us: int) -> bool:
        """Whether to ask for the inventory now: once a second until it begins."""
        if self.complete or now_us < self._ask_us:
            return False
        self._began = None
        self._ask_us = now_us + ASK_EVERY_US
        if self._asked_us is None:
            self._asked_us = now_us
        return True

    def ask_us(self) -> int | None:
        """When to ask next; None = complete."""
        return None if self.complete else self._ask_us

    def is_silent(self, now_us: int) -> bool:
        """Whether it has been asked for 30 s without telling all."""
        return self._asked_us is not None and now_us - self._asked_us >= SILENT_US
