"""The quota: exact at every instant, whatever its limit becomes."""

from collections import Counter

import msgspec

from horolog.schemas.records import Tier
from tests.unit.dispatcher.rig import Rig, a_run, again, closed, ids, settings, started


def test_released_and_started_runs_together_fill_the_quota() -> None:
    rig = Rig(limits=[settings(concurrency=3)])
    runs = [a_run(n) for n in range(6)]
    rig.tell(*runs)
    assert rig.hinted() == ids(runs[:3])
    rig.tell(started(runs[0]))
    assert rig.hinted() == []
    rig.tell(closed(runs[0]))
    assert rig.hinted() == [runs[3].run_id]


def test_a_hint_that_nobody_claims_holds_its_place_for_good() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    rig.tell(a_run(1), a_run(2))
    released = {run_id for _ in range(600) for run_id in rig.hinted(1_000)}
    assert released == {a_run(1).run_id}


def test_a_lowered_quota_releases_nothing_until_the_count_has_fallen() -> None:
    rig = Rig(limits=[settings(concurrency=4)])
    runs = [a_run(n) for n in range(8)]
    rig.tell(*runs)
    rig.tick()
    rig.tell(*(started(state) for state in runs[:4]))
    rig.receive(settings(concurrency=2))
    for number in range(2):
        assert rig.hinted() == []
        rig.tell(closed(runs[number]))
    assert rig.hinted() == []
    rig.tell(closed(runs[2]))
    assert rig.hinted() == [runs[4].run_id]


def test_a_raised_or_lifted_quota_releases_at_once() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    runs = [a_run(n) for n in range(8)]
    rig.tell(*runs)
    assert rig.hinted() == ids(runs[:1])
    rig.receive(settings(concurrency=3))
    assert rig.index.wake_us(rig.now_us) == rig.now_us
    assert rig.hinted() == ids(runs[1:3])
    rig.receive(settings())
    assert rig.hinted() == ids(runs[3:])


def test_a_quota_set_on_running_work_counts_what_runs() -> None:
    rig = Rig()
    runs = [a_run(n) for n in range(4)]
    rig.tell(*runs[:3])
    rig.tick()
    rig.receive(settings(concurrency=3))
    rig.tell(runs[3])
    assert rig.hinted() == []
    rig.tell(closed(runs[0]))
    assert rig.hinted() == [runs[3].run_id]


def test_a_quota_of_several_shards_is_divided_among_them() -> None:
    rig = Rig()
    rig.receive(msgspec.structs.replace(settings(concurrency=9), shards=4))
    rig.tell(*(a_run(n) for n in range(9)))
    assert len(rig.hints()) == 2


def test_a_quota_of_one_tenant_holds_up_nobody_else() -> None:
    rig = Rig(limits=[settings("a", concurrency=1)])
    rig.tell(*(a_run(n, "a") for n in range(5)), *(a_run(n, "b") for n in range(5)))
    tenants = Counter(run_id.partition(".")[0] for run_id in rig.hinted())
    assert tenants == {"a": 1, "b": 5}


def test_a_freed_place_goes_to_each_of_the_tenants_queues_in_turn() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    runs = [
        a_run(f"{tier.value}-{pool}-{n}", tier=tier, pool=pool)
        for n in range(9)
        for pool in ("one", "two")
        for tier in (Tier.LOW, Tier.HIGH)
    ]
    known = {state.run_id: state for state in runs}
    rig.tell(*runs)
    turns: list[str] = []
    for _ in range(24):
        (run_id,) = rig.hinted()
        turns.append(run_id.rpartition("-")[0].rpartition("-")[0])
        rig.tell(started(known[run_id]))
        rig.tick()
        rig.tell(closed(known[run_id]))
    assert set(Counter(turns).values()) <= {5, 6, 7}
    assert all(len(set(turns[first : first + 4])) == 4 for first in range(1, 20))


def test_a_freed_place_that_a_full_queue_cannot_use_goes_to_another() -> None:
    rig = Rig(limits=[settings(concurrency=2)])
    # Somebody else fills the window of the pool `dead`, which has no workers.
    rig.tell(*(a_run(f"{n:02}", "other", pool="dead") for n in range(40)))
    rig.tick()
    held = [a_run(f"held-{n}") for n in range(2)]
    rig.tell(*held)
    rig.tick()
    rig.tell(a_run("a", pool="dead"), a_run("b", pool="dead"), a_run("c"))
    rig.tick()
    rig.tell(*(closed(state) for state in held))
    assert rig.hinted() == [a_run("c").run_id]


def test_a_retry_gives_its_place_back_until_it_is_released_again() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    one, two = a_run(1), a_run(2)
    rig.tell(one, two)
    rig.tick()
    rig.tell(started(one))
    rig.tell(again(one, plan=30, at_us=rig.now_us + 1_000_000))
    assert rig.hinted() == [two.run_id]
    assert rig.hinted(1_000) == []
    rig.tell(closed(two))
    assert rig.hinted() == [one.run_id]


def test_a_run_started_by_a_hint_told_late_holds_one_place() -> None:
    rig = Rig(limits=[settings(concurrency=2)])
    run = a_run(1)
    rig.tell(run)
    rig.tick()
    message = rig.tell(started(run))
    rig.receive(message)
    rig.tell(started(run))
    assert rig.holding(run.run_id) == 1


def test_run_that_holds_a_place_keeps_it_while_its_partition_is_asked_again() -> None:
    rig = Rig(2, limits=[settings(concurrency=1)], ready=False)
    waits, runs = a_run(1), started(a_run(2))
    rig.tick()
    rig.inventory(0, waits)
    rig.began(1)
    rig.tell(runs, partition=1)
    # The count is wrong: something was lost on the way, and all of it is asked for anew.
    rig.ended(7, 1)
    rig.index.excuse(1)
    released = {run_id for _ in range(5) for run_id in rig.hinted(1_000)}
    assert released == set()
    assert rig.holding(runs.run_id)
