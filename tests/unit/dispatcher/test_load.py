"""Figures of `docs/fairness.md`: herds and floods, in virtual time (F23, F24, I19)."""

from collections import Counter
from collections.abc import Sequence

import pytest

from horolog.schemas.records import RunState, TenantSettings, Tier
from horolog.streams.limits import SECOND_US
from tests.unit.dispatcher.floor import Floor, Start
from tests.unit.dispatcher.rig import T0, a_run, settings

SECONDS = 20
OTHERS = 20


def p99(starts: Sequence[Start]) -> float:
    """Seconds within which 99 of 100 were started after they were due."""
    lates = sorted(start.late_s for start in starts)
    return lates[int(len(lates) * 0.99)]


def others() -> list[RunState]:
    """20 tenants with two runs a second each, of half a second: 20 slots' worth."""
    return [
        a_run(f"{tenant}-{n:03}", f"other-{tenant}", at_us=T0 + n * SECOND_US // 2 + tenant * 7_919)
        for tenant in range(OTHERS)
        for n in range(2 * SECONDS)
    ]


def flood(per_s: int, seconds: int = SECONDS) -> list[RunState]:
    """A tenant with so many runs a second, of half a second each."""
    return [
        a_run(f"{n:06}", "flood", at_us=T0 + n * SECOND_US // per_s) for n in range(per_s * seconds)
    ]


def run_beside(more: Sequence[RunState], limits: Sequence[TenantSettings] = ()) -> Floor:
    """100 slots that serve the others and somebody else."""
    floor = Floor(slots=100, limits=limits)
    floor.add(*others(), *more, lasts_s=0.5)
    floor.run_until(SECONDS + 5)
    return floor


def of_others(floor: Floor) -> list[Start]:
    """Starts of the 20 tenants; none is missing."""
    starts = [start for start in floor.starts if start.run.tenant != "flood"]
    assert len(starts) == OTHERS * 2 * SECONDS
    return starts


def test_flood_of_fifty_times_another_that_fits_the_pool_delays_nobody() -> None:
    alone = p99(of_others(run_beside([])))
    beside = p99(of_others(run_beside(flood(per_s=100))))
    assert alone <= 0.01
    assert beside <= 0.012


def test_flood_beyond_the_pool_delays_others_by_the_window_and_not_by_the_flood() -> None:
    # 600 runs a second at once for 20 s, into 100 slots that serve 200 a second.
    floor = run_beside(flood(per_s=600))
    assert p99(of_others(floor)) <= 0.6
    own = [start for start in floor.starts if start.run.tenant == "flood"]
    assert max(start.late_s for start in own) >= 10
    by_second = Counter(int(start.at_s) for start in floor.starts)
    assert min(by_second[second] for second in range(1, SECONDS)) >= 195


def test_flood_beyond_the_pool_with_a_quota_delays_nobody() -> None:
    floor = run_beside(flood(per_s=600), limits=[settings("flood", concurrency=75)])
    assert p99(of_others(floor)) <= 0.012


@pytest.mark.parametrize("lasts_s", [0.3, 1, 5])
@pytest.mark.parametrize("spread", [0, 0.5])
def test_herd_with_slow_workers_starts_by_tier_in_seventy_twenty_ten(
    lasts_s: float, spread: float
) -> None:
    # Without spread all slots become free in the same instant, again and again.
    floor = Floor(slots=100)
    for number in range(3_000):
        tier = list(Tier)[number % 3]
        state = a_run(
            f"{tier.value}-{number:04}", f"team-{number % 7}", at_us=T0 + 5 * SECOND_US, tier=tier
        )
        floor.add(state, lasts_s=lasts_s * (1 + spread * (number * 7_919 % 100) / 100), at_s=0)
    floor.run_until(5 + 20 * lasts_s)
    # The first slots were free before all tiers had hints out.
    order = [start.run.tier for start in floor.starts][200:]
    assert len(order) >= 1_000
    for first in range(0, len(order) - 1_000, 50):
        share = Counter(order[first : first + 1_000])
        if share[Tier.HIGH] + sum(tier is Tier.HIGH for tier in order[:first]) >= 850:
            break
        assert abs(share[Tier.HIGH] / 1_000 - 0.7) <= 0.05
        assert abs(share[Tier.NORMAL] / 1_000 - 0.2) <= 0.05
        assert abs(share[Tier.LOW] / 1_000 - 0.1) <= 0.05


def test_herd_of_ten_times_the_pool_keeps_all_slots_busy() -> None:
    floor = Floor(slots=100)
    runs = [a_run(f"{n:04}", f"team-{n % 50}", at_us=T0 + SECOND_US) for n in range(1_000)]
    floor.add(*runs, lasts_s=1, at_s=0)
    floor.run_dry(at_most_s=13)
    assert len(floor.starts) == 1_000
    assert max(start.late_s for start in floor.starts) <= 9.2
