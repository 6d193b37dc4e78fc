"""`fairness`: shares of the tiers, and what a tenant that floods costs the others.

    python -m bench.fairness [STARTS] [RUNS_OF_A_TENANT]

Both through the real embedded host, with more due than the slots can take.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from bench.report import median, percentile, report
from bench.server import SECOND_US, at, register, serving, sleep_until
from horolog.schemas.ids import tenant_of
from horolog.schemas.records import JobId, Tier
from horolog.workers.clock import wall_us
from horolog.workers.context import Context

SLOTS = 16
SHARES = {Tier.HIGH: 70, Tier.NORMAL: 20, Tier.LOW: 10}
ROOM = 1.15
"""So many more runs a tier than its share of the starts, so that all wait to the end."""
TENANTS = 10
FLOOD = 10
ROUNDS = 3
REGISTERED_PER_S = 1_000


def run(jobs: Iterable[tuple[JobId, Tier]]) -> list[tuple[JobId, float]]:
    """Have jobs run that are due at one instant: in order of their calls, and how late."""
    due = list(jobs)
    due_us = (wall_us() // SECOND_US + 5 + len(due) // REGISTERED_PER_S) * SECOND_US
    calls: list[tuple[JobId, float]] = []

    def handler(context: Context) -> None:
        calls.append((context.job_id, (wall_us() - due_us) / SECOND_US))

    definition = at(due_us)
    with serving(handler, slots=SLOTS) as server:
        register(server, ((job_id, replace(definition, priority=tier)) for job_id, tier in due))
        sleep_until(due_us)
        while len(calls) < len(due) and wall_us() < due_us + 120 * SECOND_US:
            sleep_until(wall_us() + SECOND_US // 10)
    assert len(calls) == len(due), f"{len(calls)} of {len(due)} runs were called"
    return calls


def shares(starts: int) -> dict[str, float]:
    """Percent of the first starts that each tier had while all of them waited."""
    jobs = [
        (JobId(f"tenant{n % TENANTS}.{tier.value}{n}"), tier)
        for tier, share in SHARES.items()
        for n in range(int(starts * share / 100 * ROOM) + TENANTS)
    ]
    tiers = dict(jobs)
    counted = Counter(tiers[job_id] for job_id, _ in run(jobs)[:starts])
    return {tier.value: round(100 * counted[tier] / starts, 2) for tier in SHARES}


def others_p99_s(runs_of_a_tenant: int, flood: int) -> float:
    """How late the runs of the tenants beside the one that brings `flood` of them are."""
    brought: defaultdict[str, int] = defaultdict(lambda: runs_of_a_tenant, flooding=flood)
    names = ["flooding", *(f"tenant{number}" for number in range(TENANTS))]
    calls = run(
        (JobId(f"{name}.job{n}"), Tier.NORMAL) for name in names for n in range(brought[name])
    )
    late_s = sorted(late for job_id, late in calls if tenant_of(job_id) != "flooding")
    return percentile(late_s, 0.99)


def main() -> None:
    """Print a line for each."""
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    runs_of_a_tenant = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    report(
        "fairness",
        "shares of the tiers over the first starts of a herd in which all tiers wait; the whole "
        "host, no-op handlers",
        starts=starts,
        slots=SLOTS,
        percent=shares(starts),
    )
    ratios: list[float] = []
    p99s: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        alike = others_p99_s(runs_of_a_tenant, runs_of_a_tenant)
        flooded = others_p99_s(runs_of_a_tenant, runs_of_a_tenant * FLOOD)
        p99s.append((alike, flooded))
        ratios.append(flooded / alike)
    report(
        "fairness",
        "p99 lateness of ten tenants' runs in a herd, beside a tenant that brings as many runs as "
        "each of them, and beside one that brings ten times as many; median of 3 pairs",
        runs_of_a_tenant=runs_of_a_tenant,
        flood=runs_of_a_tenant * FLOOD,
        alike_p99_s=round(median([alike for alike, _ in p99s]), 3),
        flooded_p99_s=round(median([flooded for _, flooded in p99s]), 3),
        slower_percent=round((median(ratios) - 1) * 100, 1),
    )


if __name__ == "__main__":
    main()
