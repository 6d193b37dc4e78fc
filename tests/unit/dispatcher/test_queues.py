"""Order of release, windows, offers and re-offers, make-up runs."""

from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from horolog.schemas.records import Hint, RunState, TenantId, Tier
from horolog.streams.dispatcher.entries import Entry, Stage
from horolog.streams.dispatcher.later import Later
from horolog.streams.dispatcher.queues import Line
from horolog.streams.dispatcher.tenants import Tenant
from horolog.streams.limits import MILLISECOND_US, SECOND_US
from tests.unit.dispatcher.rig import T0, Rig, a_run, again, closed, ids, settings, started

US = SECOND_US


def claim(rig: Rig, runs: dict[str, RunState], hints: list[Hint]) -> None:
    """The runs of the hints are started and end."""
    rig.tell(*(started(runs[hint.run_id]) for hint in hints))
    rig.tell(*(closed(runs[hint.run_id]) for hint in hints))


def by_id(runs: list[RunState]) -> dict[str, RunState]:
    return {state.run_id: state for state in runs}


def test_runs_of_a_tenant_go_by_due_time_then_by_id() -> None:
    rig = Rig()
    late, b, a = a_run("c", due_us=T0 - 1), a_run("b", due_us=T0 - 9), a_run("a", due_us=T0 - 9)
    rig.tell(late, b, a)
    assert rig.hinted() == ids([a, b, late])


def test_tenants_take_turns_however_much_each_has() -> None:
    rig = Rig()
    rig.tell(*(a_run(f"{n:02}", "big") for n in range(40)))
    rig.tell(*(a_run(n, "mid") for n in range(3)), a_run(0, "small"))
    tenants = [run_id.partition(".")[0] for run_id in rig.hinted()]
    assert tenants[:8] == ["big", "mid", "small", "big", "mid", "big", "mid", "big"]


def test_a_tenant_that_comes_back_takes_its_turn_behind_the_others() -> None:
    rig = Rig()
    flood = [a_run(f"{n:02}", tenant) for n in range(60) for tenant in ("a", "b")]
    rig.tell(*flood)
    claim(rig, by_id(flood), rig.hints())
    rig.tell(a_run("x", "c"), a_run("y", "c"))
    tenants = [run_id.partition(".")[0] for run_id in rig.hinted()]
    assert tenants[:6] == ["a", "b", "c", "a", "b", "c"]


def test_tiers_pools_and_functions_do_not_wait_for_one_another() -> None:
    rig = Rig()
    rig.tell(*(a_run(f"low-{n}", tier=Tier.LOW) for n in range(40)))
    rig.tell(*(a_run(f"other-{n}", pool="batch") for n in range(40)))
    unserved = [msgspec.structs.replace(a_run(f"f-{n}"), handler="f") for n in range(40)]
    rig.tell(*unserved)
    rig.tick(60_000)
    high = a_run("high", tier=Tier.HIGH)
    normal = a_run("normal")
    rig.tell(high, normal)
    assert set(ids([high, normal])) <= set(rig.hinted())


def test_hint_of_a_run_says_what_a_worker_and_a_claim_need() -> None:
    rig = Rig(2)
    run = msgspec.structs.replace(a_run(tier=Tier.LOW, pool="batch", plan=44), handler="f")
    rig.tell(run, partition=1)
    assert rig.hints() == [
        Hint(
            run_id=run.run_id,
            partition=1,
            plan=44,
            dispatcher=0,
            epoch=rig.index.epoch,
            tier=Tier.LOW,
            pool="batch",
            handler="f",
            valid_until_us=T0 + 1_500 * MILLISECOND_US,
        )
    ]


def test_a_run_is_released_at_its_instant_and_the_wake_up_names_it() -> None:
    rig = Rig()
    rig.tell(a_run(at_us=T0 + 30 * US))
    assert rig.index.wake_us(T0) == T0 + 30 * US
    assert rig.hinted(29_999) == []
    assert rig.hinted(1) == [a_run().run_id]


def test_a_run_held_before_its_turn_is_not_released() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    one, two, three = (a_run(n) for n in (1, 2, 3))
    rig.tell(one, two, three)
    assert rig.hinted() == [one.run_id]
    rig.tell(closed(two))
    rig.tell(closed(one))
    assert rig.hinted() == [three.run_id]


def test_a_run_planned_anew_is_released_once_with_the_newer_plan() -> None:
    rig = Rig()
    rig.tell(a_run(plan=10, at_us=T0 + US))
    rig.tell(a_run(plan=11, at_us=T0 + US))
    assert [hint.plan for hint in rig.hints(1_000)] == [11]
    rig.tell(again(a_run(), plan=12))
    assert [hint.plan for hint in rig.hints()] == [12]
    assert rig.holding(a_run().run_id) == 1


def test_a_run_moved_to_another_tier_waits_there_and_not_here() -> None:
    rig = Rig(limits=[settings(concurrency=0)])
    rig.tell(a_run(plan=10, tier=Tier.LOW))
    rig.tick()
    rig.tell(a_run(plan=11, tier=Tier.HIGH))
    rig.receive(settings())
    assert [(hint.plan, hint.tier) for hint in rig.hints()] == [(11, Tier.HIGH)]


def test_a_job_edited_over_and_over_while_it_waits_is_released_once() -> None:
    rig = Rig(limits=[settings(concurrency=0)])
    for plan in range(5_000):
        rig.tell(a_run(plan=plan), a_run("later", plan=plan, at_us=T0 + 3_600 * US))
        rig.tick()
    rig.receive(settings())
    assert [hint.plan for hint in rig.hints()] == [4_999]
    assert [hint.plan for hint in rig.hints(3_600_000) if "later" in hint.run_id] == [4_999]


def test_a_line_that_others_leave_before_their_turn_does_not_fill_up() -> None:
    line = Line(Tenant(TenantId("acme")))
    stays = entry_of(a_run("stays"))
    line.put(stays)
    for number in range(5_000):
        entry = entry_of(a_run(number))
        line.put(entry)
        entry.stage = Stage.GONE
        line.drop()
    assert len(line.fresh) < 100
    assert line.top(line.fresh) is stays


def test_runs_that_leave_before_they_are_due_do_not_fill_up_the_waiting_list() -> None:
    later = Later()
    for number in range(5_000):
        entry = entry_of(a_run(number, at_us=T0 + number % 7))
        later.put(entry)
        entry.stage = Stage.GONE
        later.drop()
    assert later.count < 1_100
    assert later.due(T0 + 7) == []


def entry_of(state: RunState) -> Entry:
    return Entry(state, partition=0, bucket=0, part=0, seen=0, stage=Stage.READY)


# --- window


def test_window_of_an_untried_pool_is_sixteen() -> None:
    rig = Rig()
    rig.tell(*(a_run(f"{n:03}") for n in range(200)))
    assert len(rig.hints()) == 16
    assert rig.hints(100) == []


def test_window_doubles_each_time_that_a_full_one_was_claimed_fast() -> None:
    rig = Rig()
    runs = [a_run(f"{n:04}") for n in range(2_000)]
    rig.tell(*runs)
    sizes: list[int] = []
    for _ in range(6):
        hints = rig.hints(50)
        sizes.append(len(hints))
        claim(rig, by_id(runs), hints)
    assert sizes == [16, 32, 64, 128, 256, 512]


def test_window_falls_to_the_claims_of_a_second_when_hints_are_not_claimed_fast() -> None:
    rig = Rig()
    runs = [a_run(f"{n:04}") for n in range(5_000)]
    rig.tell(*runs)
    for _ in range(6):
        claim(rig, by_id(runs), rig.hints(50))
    out = rig.hints(50)
    assert len(out) == 1_024
    for _ in range(150):
        # 100 claims a second from now on.
        claim(rig, by_id(runs), out[:10])
        del out[:10]
        known = {hint.run_id for hint in out}
        out += [hint for hint in rig.hints(100) if hint.run_id not in known]
    assert rig.index.backlog()["default", Tier.NORMAL].offered == 100


def test_window_of_a_pool_without_claims_falls_to_four() -> None:
    rig = Rig()
    runs = [a_run(f"{n:03}") for n in range(200)]
    rig.tell(*runs)
    first = rig.hints()
    rig.tick(5_000)
    rig.tell(*(closed(by_id(runs)[hint.run_id]) for hint in first))
    assert len(rig.hints()) == 4


# --- offers


def test_a_lone_hint_that_nobody_claims_is_offered_again_each_three_seconds() -> None:
    rig = Rig()
    rig.tell(a_run())
    assert rig.hinted() == [a_run().run_id]
    offered = [at for at in range(100, 15_000, 100) if rig.hints(100)]
    assert offered == [1_500, 4_500, 7_500, 10_500, 13_500]


def test_hints_that_others_pass_are_offered_again_later_each_time_up_to_thirty_seconds() -> None:
    rig = Rig()
    stuck = a_run("stuck")
    rig.tell(stuck)
    rig.tick()
    offered: list[int] = []
    for second in range(1, 1_300):
        other = a_run(f"x{second}")
        rig.tell(other)
        hints = rig.hints(100)
        offered += [second * 100 for hint in hints if hint.run_id == stuck.run_id]
        claim(rig, {other.run_id: other}, [h for h in hints if h.run_id != stuck.run_id])
    gaps = [b - a for a, b in pairwise([0, *offered])]
    assert gaps == [1_500, 3_000, 6_000, 12_000, 24_000, 30_000, 30_000]


def test_a_busy_pool_is_offered_four_hints_and_all_when_one_is_claimed() -> None:
    rig = Rig()
    runs = [a_run(f"{n:03}") for n in range(16)]
    rig.tell(*runs)
    assert len(rig.hints()) == 16
    per_second = [len(rig.hints(1_000)) for _ in range(30)]
    assert max(per_second) == 4
    # In 30 s each was offered again at least once, though none is offered more than four at a time.
    assert sum(per_second) == 40
    rig.tell(started(runs[0]))
    assert len(rig.hints()) >= 11


def test_a_busy_pool_always_has_valid_hints_for_who_becomes_free() -> None:
    rig = Rig()
    rig.tell(*(a_run(f"{n:03}") for n in range(100)))
    valid: dict[str, int] = {}
    for _ in range(600):
        for hint in rig.hints(100):
            valid[hint.run_id] = hint.valid_until_us
        assert sum(until_us > rig.now_us for until_us in valid.values()) >= 4


def test_hints_that_were_all_lost_are_out_again_within_three_seconds_of_the_loss() -> None:
    # I16: the queues are disposable.
    rig = Rig()
    runs = [a_run(f"{n:03}") for n in range(300)]
    rig.tell(*runs)
    rig.hints()
    rig.tick(60_000)
    left = by_id(runs)
    waited_ms = 0
    while left:
        assert waited_ms < 5_000
        hints = [hint for hint in rig.hints(50) if hint.run_id in left]
        waited_ms += 50
        claim(rig, left, hints)
        for hint in hints:
            del left[hint.run_id]


def test_every_wake_up_finds_something_to_do() -> None:
    rig = Rig()
    rig.tell(*(a_run(f"{n:03}", make_up=n % 2 == 0) for n in range(100)))
    rig.tick()
    for _ in range(50):
        wake_us = rig.index.wake_us(rig.now_us)
        assert wake_us is not None
        assert wake_us > rig.now_us
        rig.now_us = wake_us
        assert rig.index.tick(rig.now_us)


def test_a_large_release_is_sent_in_records_of_a_thousand_hints() -> None:
    rig = Rig()
    runs = [a_run(f"{n:05}") for n in range(8_000)]
    rig.tell(*runs)
    for _ in range(8):
        claim(rig, by_id(runs), rig.hints(10))
    sizes = [len(each.hints) for each in rig.tick(10)]  # type: ignore[union-attr]  # all are Hints
    assert sum(sizes) > 3_000
    assert max(sizes) == 1_000


# --- make-up runs


def test_make_up_runs_of_a_tenant_come_after_its_fresh_ones() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    old = a_run("old", due_us=T0 - 60 * US, make_up=True)
    fresh = a_run("fresh")
    rig.tell(old, fresh)
    assert rig.hinted() == [fresh.run_id]
    rig.tell(closed(fresh))
    assert rig.hinted() == [old.run_id]


def test_make_up_runs_alone_go_on_at_twenty_a_second() -> None:
    rig = Rig()
    runs = [a_run(f"{n:04}", make_up=True) for n in range(1_000)]
    rig.tell(*runs)
    released = Counter[int]()
    for turn in range(1_000):
        hints = rig.hints(10)
        released[turn // 100] += len(hints)
        claim(rig, by_id(runs), hints)
    assert released[0] <= 25
    assert {released[second] for second in range(1, 10)} <= {19, 20, 21}


@pytest.mark.parametrize("fresh_per_s", [100, 400])
def test_make_up_runs_beside_fresh_ones_are_at_most_half_of_all_claims(fresh_per_s: int) -> None:
    rig = Rig()
    runs = [a_run(f"{n:05}", "late", make_up=True) for n in range(20_000)]
    rig.tell(*runs)
    known = by_id(runs)
    made_up, fresh = Counter[int](), Counter[int]()
    for turn in range(1_000):
        more = [a_run(f"{turn}-{n}", "fresh") for n in range(fresh_per_s // 100)]
        known.update(by_id(more))
        rig.tell(*more)
        hints = rig.hints(10)
        for hint in hints:
            (made_up if known[hint.run_id].make_up else fresh)[turn // 100] += 1
        claim(rig, known, hints)
    assert all(fresh[second] >= fresh_per_s - 20 for second in range(1, 10))
    assert all(made_up[second] <= fresh_per_s * 1.1 for second in range(1, 10))
    assert made_up[9] >= fresh_per_s / 3


def test_a_slow_pool_has_two_make_up_hints_before_a_fresh_one() -> None:
    rig = Rig()
    rig.tell(*(a_run(f"{n:03}", f"t{n % 4}", make_up=True) for n in range(100)))
    assert len(rig.hints()) == 2
    assert sum(len(set(rig.hinted(100))) for _ in range(14)) == 0
    rig.tell(a_run("fresh", "t1"))
    assert rig.hinted() == [a_run("fresh", "t1").run_id]


def test_a_tenant_with_only_make_up_runs_keeps_its_turn_beside_a_flood() -> None:
    rig = Rig()
    flood = [a_run(f"{n:04}", "flood") for n in range(3_000)]
    late = [a_run(f"{n:04}", "late", make_up=True) for n in range(100)]
    rig.tell(*flood, *late)
    known = by_id([*flood, *late])
    released = Counter[str]()
    for _ in range(100):
        hints = rig.hints(10)
        released.update(known[hint.run_id].tenant for hint in hints)
        claim(rig, known, hints[:5])
    assert released["late"] >= 15
