"""`make simulate SEEDS=1000 FIRST=0`: simulations of fresh seeds, on all cores.

python -m tests.simulation --seeds 1000 --first 0
python -m tests.simulation --seed 17           one seed, with what was found
python -m tests.simulation --seed 17 --shrink  the shortest scenario that still fails, as a test
"""

import argparse
import json
import os
import sys
import time

import msgspec

from bench.report import report
from tests.simulation.batch import Result, one, run
from tests.simulation.scenario import END_US, draw
from tests.simulation.shrink import as_test, shrink

US_PER_HOUR = 3_600_000_000


def tell(result: Result) -> None:
    """Print what a seed shows, and how to see it again."""
    print(f"seed {result.seed} failed: {len(result.violations)} violations", flush=True)
    for violation in result.violations[:5]:
        print(f"  {violation}")
    print(f"  replay it: .venv/bin/python -m tests.simulation --seed {result.seed}")


def main() -> int:
    """Simulate and print one line of figures; 1 if a seed failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.seed is not None:
        if given.shrink:
            print(as_test(shrink(draw(given.seed))))
            return 0
        result = one(given.seed)
        print(json.dumps(msgspec.to_builtins(result), indent=2))
        return 1 if result.violations else 0
    begun = time.perf_counter()
    results = run(range(given.first, given.first + given.seeds), given.processes, tell)
    took_s = time.perf_counter() - begun
    failed = [result for result in results if result.violations]
    hours = len(results) * END_US / US_PER_HOUR
    report(
        "simulate",
        "whole fleets in virtual time with faults, each an hour and a minute, and their checks",
        seeds=len(results),
        first=given.first,
        virtual_hours=round(hours),
        virtual_hours_per_minute=round(hours / took_s * 60),
        events=sum(result.events for result in results),
        executions=sum(result.runs for result in results) // 2,
        took_s=round(took_s, 1),
        cpu_s_per_seed=round(sum(result.cpu_s for result in results) / len(results), 2),
        failed=[result.seed for result in failed],
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
