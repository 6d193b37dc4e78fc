"""The faults that the memory log has on demand."""

import pytest

from horolog.schemas.errors import Fenced, Unavailable
from horolog.streams.log.memory import Fault, MemoryLog
from tests.builders.events import Ledger


def a_log() -> tuple[MemoryLog, Ledger]:
    log = MemoryLog()
    ledger = Ledger(log_id=log.log_id)
    log.append([ledger.take_over()])
    return log, ledger


def test_append_that_is_aborted_writes_nothing_and_takes_the_same_again() -> None:
    log, ledger = a_log()
    log.fail_next(Fault.ABORTED, times=2)
    made = ledger.batch()
    for _ in range(2):
        with pytest.raises(Unavailable):
            log.append([made])
    assert log.last_seq(0) == 3
    log.append([made])
    assert log.last_seq(0) == 4


@pytest.mark.parametrize("fault, last_seq", [(Fault.UNKNOWN_LOST, 3), (Fault.UNKNOWN_WRITTEN, 4)])
def test_append_of_unknown_outcome_fences_and_the_tail_tells(fault: Fault, last_seq: int) -> None:
    log, ledger = a_log()
    log.fail_next(fault)
    with pytest.raises(Fenced):
        log.append([ledger.batch()])
    assert log.last_seq(0) == last_seq
    assert [batch.last_seq for batch in log.read(0, 0)][-1] == last_seq


def test_crash_that_forgets_loses_whole_batches_and_goes_on_from_there() -> None:
    log, ledger = a_log()
    log.append([ledger.batch(), ledger.batch()])
    log.forget(1)
    assert log.last_seq(0) == 4
    ledger.seq = 4
    log.append([ledger.take_over()])
    assert [batch.first_seq for batch in log.read(0, 0)] == [1, 4, 5]
