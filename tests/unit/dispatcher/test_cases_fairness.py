"""Cases of other schedulers' operators (`cases.json`): floods, priorities, counts, outages."""

from collections import Counter, defaultdict

import pytest

from horolog.schemas.records import Tier
from horolog.streams.limits import SECOND_US
from tests.unit.dispatcher.floor import Floor
from tests.unit.dispatcher.rig import T0, Rig, a_run, closed, ids, settings, started

US = SECOND_US


def test_q01_a_flood_of_one_tenant_lets_another_start_within_two_rounds() -> None:
    floor = Floor(slots=10)
    flood = [a_run(f"{number:04}", "a") for number in range(1_000)]
    floor.add(*flood, lasts_s=1)
    floor.step()
    assert floor.running["a"] == 10
    enqueued_s = floor.at_s
    other = a_run("b", "b", at_us=floor.rig.now_us)
    floor.add(other, lasts_s=1)
    floor.run_dry(at_most_s=110)
    start = next(start for start in floor.starts if start.run == other)
    assert start.at_s - enqueued_s <= 2
    between = [each for each in floor.starts if enqueued_s <= each.at_s <= start.at_s]
    assert sum(each.run.tenant == "a" for each in between) <= 20
    assert floor.starts[-1].at_s + 1 <= 103
    assert len(floor.starts) == 1_001


@pytest.mark.parametrize("after_s", [0.3, 0.6, 1.5, 5, 30])
def test_q01_a_flood_of_any_age_lets_another_start_within_two_rounds(after_s: float) -> None:
    floor = Floor(slots=10)
    floor.add(*[a_run(f"{number:04}", "a") for number in range(1_000)], lasts_s=1)
    floor.run_until(after_s)
    other = a_run("b", "b", at_us=floor.rig.now_us)
    floor.add(other, lasts_s=1)
    floor.run_until(after_s + 2.05)
    start = next(start for start in floor.starts if start.run == other)
    assert start.late_s <= 2


def test_q01_an_old_herd_leaves_no_wide_window_to_the_next_flood() -> None:
    floor = Floor(slots=500)
    floor.add(*[a_run(f"{number:05}", "a") for number in range(5_000)], lasts_s=0.05)
    floor.run_dry(at_most_s=30)
    floor.slots = 10
    floor.run_until(floor.at_s + 60)
    at_us = floor.rig.now_us
    floor.add(*[a_run(f"x{number:04}", "a", at_us=at_us) for number in range(500)], lasts_s=1)
    floor.step()
    other = a_run("b", "b", at_us=floor.rig.now_us)
    floor.add(other, lasts_s=1)
    floor.run_until(floor.at_s + 2.05)
    assert next(start for start in floor.starts if start.run == other).late_s <= 2


def test_q03_low_runs_in_every_slot_leave_the_next_free_one_to_high() -> None:
    # No reserve is offered (docs/fairness.md): high waits for the next free slot, then comes first.
    floor = Floor(slots=10)
    floor.add(*[a_run(f"low-{n:02}", "a", tier=Tier.LOW) for n in range(30)], lasts_s=3_600)
    floor.run_until(10)
    high = a_run("high", "b", tier=Tier.HIGH, at_us=floor.rig.now_us)
    floor.add(high, lasts_s=1)
    floor.run_until(3_590)
    assert [start.run for start in floor.starts if start.run.tier is Tier.HIGH] == []
    floor.run_until(3_602)
    order = [start.run.tier for start in floor.starts]
    assert order.index(Tier.HIGH) == 10


def test_q03_a_quota_for_the_low_work_keeps_slots_for_high() -> None:
    # What is offered instead of a reserve: the tenant of the long work gets a quota.
    floor = Floor(slots=10, limits=[settings("slow", concurrency=8)])
    floor.add(*[a_run(f"low-{n:02}", "slow", tier=Tier.LOW) for n in range(20)], lasts_s=3_600)
    highs = [a_run(n, "fast", tier=Tier.HIGH, at_us=T0 + (10 + n) * US) for n in range(60)]
    for number, state in enumerate(highs):
        floor.add(state, lasts_s=1, at_s=10 + number)
    floor.run_until(80)
    assert floor.running["slow"] == 8
    lates = [start.late_s for start in floor.starts if start.run.tier is Tier.HIGH]
    assert len(lates) == 60
    assert max(lates) <= 2


def test_q05_an_end_told_three_times_frees_one_place() -> None:
    rig = Rig(limits=[settings(concurrency=2)])
    runs = [a_run(number) for number in range(1, 6)]
    rig.tell(runs[0], runs[1])
    assert rig.hinted() == ids(runs[:2])
    rig.tell(started(runs[0]), started(runs[1]))
    rig.tell(*runs[2:])
    assert rig.hinted() == []
    for _ in range(3):
        rig.tell(closed(runs[0]))
    assert rig.hinted() == [runs[2].run_id]
    rig.tell(started(runs[2]))
    assert rig.hinted() == []
    assert rig.holding(runs[2].run_id) == 2


def test_q07_an_outage_of_three_hours_is_made_up_at_a_bounded_rate_beside_fresh_runs() -> None:
    floor = Floor(slots=50)
    make_ups = [
        a_run(f"{number:03}", f"team-{number % 5}", due_us=T0 - 3_600 * US, make_up=True)
        for number in range(500)
    ]
    floor.add(*make_ups, lasts_s=1)
    for minute in range(1, 6):
        for number in range(minute, 500, 60):
            state = a_run(
                f"{number:03}-{minute}", f"team-{number % 5}", at_us=T0 + minute * 60 * US
            )
            floor.add(state, lasts_s=1, at_s=minute * 60 - 30)
    for second in range(2, 20):
        floor.add(a_run(f"{second}", "busy", at_us=T0 + second * US), lasts_s=1, at_s=second - 1)
    floor.run_dry(at_most_s=310)
    made_up = [start for start in floor.starts if start.run.make_up]
    fresh = [start for start in floor.starts if not start.run.make_up]
    assert len(made_up) == 500
    assert sum(start.at_s < 1 for start in made_up) <= 25
    assert max(start.at_s for start in made_up) + 1 <= 30
    assert max(start.late_s for start in fresh) <= 2
    by_second: dict[int, set[str]] = defaultdict(set)
    for start in made_up:
        by_second[int(start.at_s)].add(start.run.tenant)
    last = max(by_second)
    assert all(len(tenants) == 5 for second, tenants in by_second.items() if second < last)
    assert max(Counter(int(start.at_s) for start in floor.starts).values()) < 50


def test_q07_every_slot_of_an_outage_made_up_starts_once_and_in_order() -> None:
    floor = Floor(slots=50)
    make_ups = [
        a_run(f"{number:03}-{slot}", f"team-{number % 5}", due_us=T0 + slot * US, make_up=True)
        for slot in range(3)
        for number in range(500)
    ]
    floor.add(*make_ups, lasts_s=1)
    floor.run_dry(at_most_s=120)
    assert Counter(start.run.run_id for start in floor.starts) == Counter(ids(make_ups))
    for tenant in {state.tenant for state in make_ups}:
        dues = [start.run.due_us for start in floor.starts if start.run.tenant == tenant]
        assert dues == sorted(dues)


def test_r01_missed_slots_are_made_up_oldest_first_and_let_the_next_slot_pass() -> None:
    floor = Floor(slots=1)
    slots_us = [T0 - (112 - number) * 60 * US for number in range(112)]
    make_ups = [
        a_run(f"m@{number:03}", due_us=slot_us, make_up=True)
        for number, slot_us in enumerate(slots_us)
    ]
    floor.add(*make_ups, lasts_s=0.5)
    fresh = a_run("next", at_us=T0 + 30 * US)
    floor.add(fresh, lasts_s=0.5, at_s=1)
    floor.run_dry(at_most_s=70)
    dues = [start.run.due_us for start in floor.starts if start.run.make_up]
    assert dues == slots_us
    start = next(start for start in floor.starts if start.run == fresh)
    assert start.late_s <= 1.5
    assert sum(each.at_s > start.at_s for each in floor.starts) > 40
