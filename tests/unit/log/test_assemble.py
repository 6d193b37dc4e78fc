"""Which committed records of a shared ledger count."""

import pytest

from horolog.schemas.records import DispatcherEpochRecorded, EpochStarted, Event
from horolog.streams.log import Batch
from horolog.streams.log.assemble import assemble
from horolog.streams.log.check import BrokenSequence
from tests.builders.events import Ledger

RECORDED = DispatcherEpochRecorded(dispatcher=0, epoch=1)


def records(batches: list[Batch]) -> list[Event]:
    """As a reader of committed data gets them."""
    return [event for batch in batches for event in batch.events]


def seqs(batches: tuple[Batch, ...]) -> list[int]:
    """What counts."""
    return [event.seq for batch in batches for event in batch.events]


def test_batches_of_one_owner_all_count() -> None:
    ledger = Ledger()
    found = assemble(0, records([ledger.take_over(), ledger.batch(), ledger.batch()]))
    assert seqs(found.batches) == [1, 2, 3, 4, 5]
    assert (found.epoch, found.torn) == (1, False)


def test_part_of_a_batch_at_the_end_is_torn_and_does_not_count() -> None:
    ledger = Ledger()
    whole = [ledger.take_over(), ledger.batch()]
    last = ledger.batch(RECORDED)
    assert len(last.events) > 1
    for cut in range(1, len(last.events)):
        head = assemble(0, [*records(whole), *last.events[:cut]])
        assert (seqs(head.batches), head.torn) == ([1, 2, 3, 4], True)
        tail = assemble(0, [*records(whole), *last.events[cut:]])
        assert (seqs(tail.batches), tail.torn) == ([1, 2, 3, 4], True)


def test_torn_batch_below_others_of_its_epoch_is_corruption() -> None:
    ledger = Ledger()
    whole = records([ledger.take_over(), ledger.batch()])
    torn = ledger.batch(RECORDED).events[:1]
    with pytest.raises(BrokenSequence):
        assemble(0, [*whole, *torn, *ledger.batch().events])


def test_what_an_older_epoch_left_above_the_last_good_seq_does_not_count() -> None:
    ledger = Ledger()
    whole = [ledger.take_over(), ledger.batch()]
    zombie = Ledger(at_us=ledger.at_us)
    zombie.seq, zombie.epoch = ledger.seq, 1
    ledger.epoch = 2
    last_good_seq = ledger.seq
    late = zombie.batch(RECORDED).events
    newer = [ledger.batch(EpochStarted(last_good_seq=last_good_seq)), ledger.batch()]
    for left in (late, late[:1], late[1:]):
        for found in (
            assemble(0, [*records(whole), *left, *records(newer)]),
            assemble(0, [*records(whole), *records(newer), *left]),
        ):
            assert [batch.events[0].writer_epoch for batch in found.batches] == [1, 1, 2, 2]
            assert seqs(found.batches) == list(range(1, ledger.seq + 1))
            assert found.epoch == 2


def test_reading_from_the_middle_begins_after_the_event_asked_for() -> None:
    ledger = Ledger()
    batches = [ledger.take_over(), ledger.batch(), ledger.batch()]
    found = assemble(0, records(batches[1:]), after_seq=4)
    assert seqs(found.batches) == [5]
