"""The check of every reader, where several owners wrote to one partition (K5)."""

import pytest

from horolog.schemas.records import EpochStarted
from horolog.streams.log import Batch
from horolog.streams.log.check import BrokenSequence, SequenceCheck, Superseded
from tests.builders.events import Ledger


def torn() -> list[Batch]:
    """Epoch 1 goes on after epoch 2 has read up to seq 4: once before and once after it begins."""
    ledger = Ledger()
    batches = [ledger.take_over(), ledger.batch(), ledger.batch()]
    ledger.seq, ledger.epoch = 4, 2
    batches.append(ledger.batch(EpochStarted(last_good_seq=4)))
    late = Ledger(at_us=ledger.at_us)
    late.seq, late.epoch = 5, 1
    batches.extend([late.batch(), ledger.batch()])
    return batches


def kept(batches: list[Batch]) -> list[tuple[int, int]]:
    """What a reader of a shared log takes: (epoch, seq) of all that counts."""
    check = SequenceCheck(0)
    while True:
        found: list[tuple[int, int]] = []
        try:
            for batch in batches:
                if check.next(batch.events):
                    found += [(event.writer_epoch, event.seq) for event in batch.events]
        except Superseded:
            check = SequenceCheck(0, ends=check.ends)
        else:
            return found


def test_what_an_older_epoch_wrote_above_the_last_good_seq_is_dropped() -> None:
    assert kept(torn()) == [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6), (2, 7)]


def test_batch_of_an_ended_epoch_does_not_count_and_moves_nothing() -> None:
    ledger = Ledger()
    check = SequenceCheck(0)
    assert check.next(ledger.take_over().events)
    assert check.next(ledger.take_over().events)
    late = Ledger()
    late.seq, late.epoch = 3, 1
    assert not check.next(late.batch().events)
    assert check.seq == 5
    assert check.next(ledger.batch().events)


def test_gap_below_the_last_good_seq_is_a_fault_with_its_evidence() -> None:
    ledger = Ledger(number=7)
    check = SequenceCheck(7)
    check.next(ledger.take_over().events)
    ledger.batch()
    with pytest.raises(BrokenSequence) as fault:
        check.next(ledger.batch().events)
    assert (fault.value.partition, fault.value.expected, fault.value.found) == (
        7,
        "seq 4",
        "seq 5",
    )


def test_end_of_an_epoch_that_is_known_before_is_kept_through_the_next_ones() -> None:
    ledger = Ledger()
    batches = [ledger.take_over() for _ in range(3)]
    check = SequenceCheck(0, ends={4: 3})
    assert [check.next(batch.events) for batch in batches] == [True, False, False]


def test_reader_that_begins_in_the_middle_knows_no_time_or_epoch_before() -> None:
    ledger = Ledger()
    ledger.take_over()
    check = SequenceCheck(0, 3)
    assert check.next(ledger.take_over().events)
