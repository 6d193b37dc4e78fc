"""Many seeds, on all cores: what became of each."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType

import msgspec

from tests.simulation.scenario import draw
from tests.simulation.simulate import simulate

LONGEST_S = 120
TWICE_EVERY = 100
"""One seed of so many is run twice: the traces must be the same."""


class Result(msgspec.Struct, frozen=True):
    """What became of a seed."""

    seed: int
    digest: str
    events: int
    runs: int
    cpu_s: float
    violations: list[str]


def one(seed: int) -> Result:
    """Live a seed and check it; some twice."""
    begun = time.process_time()
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LONGEST_S)
    ended = simulate(draw(seed))
    violations = list(ended.violations)
    if seed % TWICE_EVERY == 0 and simulate(draw(seed)).digest != ended.digest:
        violations.append("another trace when it was run again")
    signal.alarm(0)
    return Result(
        seed,
        ended.digest,
        sum(len(ledger) for ledger in ended.ledgers),
        len(ended.seen),
        time.process_time() - begun,
        violations,
    )


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"not at its end after {LONGEST_S} s: a loop that never ends?")


def run(seeds: Sequence[int], processes: int, failed: Callable[[Result], None]) -> list[Result]:
    """All of them, in the order of the seeds; `failed` is told of those that failed at once."""
    results: list[Result] = []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for result in pool.imap_unordered(one, seeds, chunksize=4):
            results.append(result)
            if result.violations:
                failed(result)
    return sorted(results, key=lambda result: result.seed)
