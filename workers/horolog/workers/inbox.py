"""What came to an inbox of a shared topic: one stamp per source partition, and what is below it is
dropped.

Each record carries (partition, writer_epoch, seq) of the state it was read from, and an owner's
stamps never go down: what is older than what was read before was sent by an owner that is gone, or
came late.
"""

from collections.abc import Iterator

from horolog.schemas.records import ClaimRefused, Grant, InboxBatch, ReportAnswered, StopRun


class Stamps:
    """The newest stamp read of each ledger partition."""

    def __init__(self) -> None:
        """Nothing was read."""
        self._newest: dict[int, tuple[int, int]] = {}

    def open(
        self, mail: InboxBatch, inbox: str
    ) -> Iterator[Grant | ClaimRefused | ReportAnswered | StopRun]:
        """What a record holds for an inbox; nothing if it is older than what was read."""
        stamp = (mail.writer_epoch, mail.seq)
        if stamp < self._newest.get(mail.partition, (0, 0)):
            return
        self._newest[mail.partition] = stamp
        yield from (each for each in mail.grants if each.inbox == inbox)
        yield from (each for each in mail.refusals if each.inbox == inbox)
        yield from (each for each in mail.answers if each.inbox == inbox)
        yield from (each for each in mail.stops if each.inbox == inbox)
