"""Ready queues: 70/20/10 with idle share lent on, tenants in turn, lanes for whoever wants them."""

from collections import Counter

import pytest

from horolog.schemas.records import Hint, RunId, Tier
from horolog.workers.ready import HintPool, ReadyQueues

NOW_US = 1_000_000


def hint(
    number: int,
    tier: Tier = Tier.NORMAL,
    tenant: str = "acme",
    *,
    pool: str = "default",
    handler: str = "",
    valid_until_us: int = NOW_US,
) -> Hint:
    """A hint of a run."""
    return Hint(
        run_id=RunId(f"{tenant}.job@{number}"),
        partition=0,
        plan=1,
        dispatcher=0,
        epoch=1,
        tier=tier,
        pool=pool,
        handler=handler,
        valid_until_us=valid_until_us,
    )


def test_shares_are_70_20_10_within_two_points_over_10000_starts() -> None:
    queues = ReadyQueues()
    for tier in Tier:
        queues.offer(hint(number, tier) for number in range(10_000))
    taken = Counter(each.tier for each in queues.take(10_000, NOW_US))
    shares = {tier: count / 100 for tier, count in taken.items()}
    assert shares == pytest.approx({Tier.HIGH: 70, Tier.NORMAL: 20, Tier.LOW: 10}, abs=2)


def test_idle_share_is_lent_on_at_once_and_nothing_is_saved_up() -> None:
    queues = ReadyQueues()
    queues.offer(hint(number, Tier.LOW) for number in range(2_000))
    assert len(queues.take(1_000, NOW_US)) == 1_000
    queues.offer(hint(number, Tier.HIGH) for number in range(1_000))
    taken = Counter(each.tier for each in queues.take(800, NOW_US))
    assert taken[Tier.HIGH] == pytest.approx(700, abs=16)


def test_tenants_take_turns_within_a_tier() -> None:
    queues = ReadyQueues()
    queues.offer(hint(number, tenant="flood") for number in range(100))
    queues.offer([hint(0, tenant="small")])
    assert "small.job@0" in [each.run_id for each in queues.take(2, NOW_US)]


def test_hint_that_is_no_longer_valid_is_dropped() -> None:
    queues = ReadyQueues()
    queues.offer([hint(1, valid_until_us=NOW_US - 1), hint(2)])
    assert [each.run_id for each in queues.take(5, NOW_US)] == ["acme.job@2"]


def test_lanes_go_only_to_those_who_can_execute_them() -> None:
    pool = HintPool()
    woken: list[bool] = []
    pool.listen(lambda: woken.append(True))
    pool.offer([hint(1), hint(2, handler="nightly"), hint(3, pool="batch")])
    assert woken == [True]
    took = pool.take(lambda name, handler: name == "default" and not handler, 5, NOW_US)
    assert [each.run_id for each in took] == ["acme.job@1"]
    took = pool.take(lambda _name, handler: handler == "nightly", 5, NOW_US)
    assert [each.run_id for each in took] == ["acme.job@2"]
