"""A shared ledger's committed records -> the batches that count.

On a log that one process writes, batches come whole and in order. On a shared one they need not:

    remains     an older epoch wrote above the `last_good_seq` of the next one: does not count
    torn end    the last batch of the log is not whole: does not count, and whoever appends next
                must begin a new epoch before it
    anything else that is not whole or does not follow is corruption

A delayed end of one transaction can hit the next one (`reliability.md` K4), so a batch is taken by
what stands in its records and never by its transaction.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from horolog.schemas.records import EpochStarted, Event, InputsRead
from horolog.streams.log.check import BrokenSequence, SequenceCheck
from horolog.streams.log.protocol import Batch

_NO_LIMIT: Final = 1 << 62


class Assembled(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of records holds."""

    batches: tuple[Batch, ...]
    """Those that count, in order, without snapshots."""
    epoch: int
    """The highest `writer_epoch` seen, also in what does not count."""
    torn: bool
    """The end is not whole: the next to append must begin a new epoch, above `epoch`."""


def assemble(partition: int, records: Sequence[Event], after_seq: int = 0) -> Assembled:
    """Batches that hold events above `after_seq`, the first one without the events up to there.

    `records`: committed ones in the order of the log, from the first of a batch at or below
    `after_seq` + 1 on. Raises Corrupt (BrokenSequence) where something is neither whole nor shown
    not to count.
    """
    groups = list(_groups(records))
    ends = _ends(groups)
    check: SequenceCheck | None = None
    batches: list[Batch] = []
    torn = False
    for position, group in enumerate(groups):
        first = group[0]
        if first.seq > _limit(ends, first.writer_epoch):
            continue
        if not _is_whole(group):
            if position == len(groups) - 1:
                torn = True
                break
            raise BrokenSequence(
                partition, f"the whole batch {first.batch}", f"{len(group)} records of it"
            )
        if check is None:
            check = SequenceCheck(partition, first.seq - 1)
        check.next(group)
        if group[-1].seq > after_seq:
            counted = tuple(event for event in group if event.seq > after_seq)
            batches.append(Batch(partition=partition, events=counted))
    epoch = max((record.writer_epoch for record in records), default=0)
    return Assembled(batches=tuple(batches), epoch=epoch, torn=torn)


def _groups(records: Sequence[Event]) -> Iterator[tuple[Event, ...]]:
    """Neighbours of one batch and epoch, in order; each begins anew where `seq` does not go on."""
    group: list[Event] = []
    for record in records:
        if group:
            last = group[-1]
            if (
                record.writer_epoch != last.writer_epoch
                or record.batch != last.batch
                or record.seq != last.seq + 1
                or type(last) is InputsRead
            ):
                yield tuple(group)
                group = []
        group.append(record)
    if group:
        yield tuple(group)


def _is_whole(group: tuple[Event, ...]) -> bool:
    last = group[-1]
    return (
        isinstance(last, InputsRead)
        and group[0].seq == group[0].batch
        and last.records == len(group)
    )


def _ends(groups: Sequence[tuple[Event, ...]]) -> dict[int, int]:
    """Epoch -> the last `seq` of older epochs that counts, of each epoch that began."""
    ends: dict[int, int] = {}
    for group in groups:
        if not _is_whole(group):
            continue
        # The very first batch begins with the record that says which log it is.
        for started in group[:2]:
            if isinstance(started, EpochStarted):
                ends[started.writer_epoch] = started.last_good_seq
    return ends


def _limit(ends: dict[int, int], epoch: int) -> int:
    return min((end for newer, end in ends.items() if newer > epoch), default=_NO_LIMIT)
