"""What partitions tell: stamps, inventories, epochs; and who waits for them."""

import msgspec
import pytest

from horolog.schemas.records import InventoryBegan, RunStates
from tests.unit.dispatcher.rig import (
    EPOCH,
    WRITER,
    Rig,
    a_run,
    again,
    closed,
    ids,
    settings,
    started,
)


def test_a_message_of_an_older_state_changes_nothing() -> None:
    rig = Rig()
    run = a_run()
    rig.tell(run, seq=200)
    rig.tell(closed(run), seq=199)
    assert rig.hinted() == [run.run_id]


def test_a_message_of_an_older_owner_changes_nothing() -> None:
    rig = Rig()
    run = a_run()
    rig.writers[0] = WRITER + 1
    rig.tell(run, seq=10)
    rig.writers[0] = WRITER
    rig.tell(closed(run), seq=300)
    assert rig.hinted() == [run.run_id]


def test_two_messages_of_one_state_both_count() -> None:
    rig = Rig()
    one, two = a_run(1), a_run(2)
    rig.tell(one, seq=200)
    rig.tell(two, seq=200)
    assert rig.hinted() == ids([one, two])


def test_a_partition_that_does_not_exist_is_ignored() -> None:
    rig = Rig()
    rig.receive(RunStates(partition=9, writer_epoch=1, seq=1, runs=(a_run(),)))
    assert rig.hinted() == []


def test_a_new_dispatcher_skips_what_comes_before_the_begin_mark() -> None:
    rig = Rig(ready=False)
    assert rig.wanted() == [0]
    rig.tell(a_run("early"))
    assert rig.hinted() == []
    rig.began()
    rig.tell(a_run("told"))
    assert rig.hinted() == [a_run("told").run_id]


def test_a_new_dispatcher_asks_each_second_and_stops_asking_when_it_is_told() -> None:
    rig = Rig(2, ready=False)
    assert rig.wanted() == [0, 1]
    assert rig.wanted(999) == []
    rig.inventory(0)
    assert rig.wanted(1) == [1]
    rig.inventory(1)
    assert rig.wanted(5_000) == []
    assert rig.missing() == ()


def test_a_begin_mark_of_an_older_epoch_begins_nothing() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began(epoch=EPOCH - 1)
    rig.tell(a_run())
    assert rig.hinted() == []
    assert rig.wanted(1_000) == [0]


def test_an_inventory_with_a_wrong_count_is_asked_for_again() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began()
    rig.tell(a_run(1))
    rig.ended(2)
    assert rig.wanted() == [0]
    assert rig.missing() == (0,)
    rig.inventory(0, a_run(1), a_run(2))
    assert rig.wanted(2_000) == []


def test_states_of_the_stream_count_between_the_marks() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began()
    rig.tell(a_run(1))
    rig.tell(closed(a_run(5)))
    rig.tell(a_run(2))
    rig.ended(3)
    assert rig.missing() == ()


def test_another_owner_within_an_inventory_is_asked_for_it() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began()
    rig.writers[0] = WRITER + 1
    rig.tell(a_run(1))
    assert rig.wanted() == [0]
    rig.ended(1)
    assert rig.missing() == (0,)


def test_a_late_end_mark_of_the_first_inventory_does_not_end_the_second() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began()
    rig.tell(a_run(1))
    rig.seqs[0] += 1
    rig.began()
    rig.ended(1)
    assert rig.missing() == (0,)


def test_an_inventory_that_stalls_for_ten_seconds_is_asked_for_again() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began()
    for _ in range(3):
        assert rig.wanted(9_000) == []
        rig.tell(a_run())
    assert rig.wanted(10_000) == [0]


def test_an_inventory_whose_end_mark_was_lost_is_asked_for_again_after_the_next_digest() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began()
    rig.tell(a_run(1))
    for _ in range(60):
        rig.tell(a_run(1))
        assert rig.wanted(1_000) == []
    rig.digest(a_run(1))
    rig.tell(a_run(2))
    assert rig.wanted() == [0]


def test_an_inventory_of_which_one_message_was_lost_and_one_doubled_is_not_complete() -> None:
    # The count is right; the digest just before the end mark is not.
    rig = Rig(limits=[settings(concurrency=1)], ready=False)
    rig.tick()
    rig.began()
    rig.tell(started(a_run(1)), seq=200)
    rig.tell(started(a_run(1)), seq=200)
    rig.seqs[0] = 200
    rig.digest(started(a_run(1)), started(a_run(2)))
    rig.ended(2)
    assert rig.missing() == (0,)
    rig.began()
    rig.tell(started(a_run(1)), started(a_run(2)))
    rig.digest(started(a_run(1)), started(a_run(2)))
    rig.ended(2)
    assert rig.missing() == ()


def test_a_second_answer_to_the_inventory_question_stops_nobody() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    rig.began()
    rig.tell(a_run())
    assert rig.hinted() == [a_run().run_id]
    rig.ended(1)
    assert rig.missing() == ()


def test_what_a_second_inventory_does_not_tell_is_forgotten() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began()
    rig.tell(a_run(1), a_run(2))
    rig.ended(5)
    rig.inventory(0, a_run(2))
    assert rig.hinted() == [a_run(2).run_id]
    assert rig.repairs() == []
    rig.digest(a_run(2))
    assert rig.repairs() == []


def test_a_hint_that_is_out_holds_its_place_through_a_second_inventory() -> None:
    rig = Rig(ready=False)
    rig.tick()
    rig.began()
    run, other = a_run("z"), a_run("a")
    rig.tell(run)
    assert rig.hinted() == [run.run_id]
    rig.ended(5)
    rig.receive(settings(concurrency=1))
    rig.began()
    rig.tell(run, other)
    rig.ended(2)
    # `a` comes first by order, but the hint of `z` may still be claimed.
    assert rig.hinted() == []
    rig.tell(closed(run))
    assert rig.hinted() == [other.run_id]


def test_a_tenant_with_a_quota_waits_for_every_partition_and_others_do_not() -> None:
    rig = Rig(3, limits=[settings("limited", concurrency=2)], ready=False)
    rig.tick()
    rig.inventory(0, a_run(1, "limited"), a_run(1, "free"))
    rig.inventory(1)
    assert rig.hinted() == [a_run(1, "free").run_id]
    rig.inventory(2, started(a_run(2, "limited")))
    assert rig.hinted() == [a_run(1, "limited").run_id]
    rig.tell(a_run(3, "limited"))
    assert rig.hinted() == []


def test_a_run_between_attempts_holds_nothing() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    one, two = a_run(1), a_run(2)
    rig.tell(one, two)
    assert rig.hinted() == [one.run_id]
    rig.tell(started(one))
    rig.tell(again(one, plan=20, at_us=rig.now_us + 60_000_000))
    assert rig.hinted() == [two.run_id]


def test_a_silent_partition_is_reported_after_thirty_seconds() -> None:
    rig = Rig(2, ready=False)
    rig.tick()
    rig.inventory(0)
    rig.tick(29_999)
    assert rig.index.silent(rig.now_us) == []
    rig.tick(1)
    assert rig.index.silent(rig.now_us) == [1]
    rig.began(1)
    assert rig.index.silent(rig.now_us) == []


def test_an_excused_partition_counts_as_none_until_it_answers() -> None:
    rig = Rig(2, limits=[settings(concurrency=1)], ready=False)
    rig.tick()
    rig.inventory(0, a_run(1), a_run(2))
    assert rig.hinted() == []
    rig.index.excuse(1)
    assert rig.hinted() == [a_run(1).run_id]
    rig.tell(closed(a_run(1)))
    rig.began(1)
    assert rig.hinted() == []
    rig.tell(started(a_run(3)), partition=1)
    rig.ended(1, 1)
    assert rig.hinted() == []
    rig.tell(closed(a_run(3)), partition=1)
    assert rig.hinted() == [a_run(2).run_id]


def test_a_newer_epoch_stops_the_dispatcher() -> None:
    rig = Rig()
    rig.tell(a_run())
    rig.supersede(EPOCH + 4)
    assert rig.index.superseded_by == EPOCH + 4
    assert rig.tick(5_000) == []
    assert rig.index.wake_us(rig.now_us) is None


def test_a_begin_mark_of_a_newer_epoch_stops_the_dispatcher() -> None:
    rig = Rig()
    rig.began(epoch=EPOCH + 1)
    assert rig.index.superseded_by == EPOCH + 1


@pytest.mark.parametrize("epoch", [EPOCH, EPOCH - 1])
def test_an_epoch_that_is_not_newer_stops_nothing(epoch: int) -> None:
    rig = Rig()
    rig.supersede(epoch)
    assert rig.index.superseded_by is None


def test_a_mark_for_another_dispatcher_is_ignored() -> None:
    rig = Rig(ready=False)
    rig.tick()
    mark = InventoryBegan(partition=0, writer_epoch=WRITER, seq=100, dispatcher=4, epoch=EPOCH)
    rig.receive(mark)
    rig.receive(msgspec.structs.replace(mark, epoch=EPOCH + 9))
    rig.tell(a_run())
    assert rig.hinted() == []
    assert rig.index.superseded_by is None


def test_a_new_owner_after_the_inventory_goes_on_without_another_one() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    rig.tell(a_run(1))
    assert rig.hinted() == [a_run(1).run_id]
    rig.writers[0] = WRITER + 1
    rig.tell(closed(a_run(1)), a_run(2), seq=50)
    assert rig.wanted() == []
    assert rig.missing() == ()
    rig.seqs[0] = 50
    rig.digest(a_run(2))
    assert rig.repairs() == []
