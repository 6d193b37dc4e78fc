"""The shortest scenario that still fails in the same way: fewer faults, fewer wishes, fewer jobs.

Delta debugging (Zeller, Hildebrandt 2002) on each list in turn. Named substreams make it work:
what stays behaves as before.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from tests.simulation.scenario import Fault, Scenario, Wish
from tests.simulation.simulate import simulate

TRIES: Final = 200
_T = TypeVar("_T")


def shrink(scenario: Scenario) -> Scenario:
    """Give the scenario back as it is if it does not fail."""
    kinds = _kinds(simulate(scenario).violations)
    if not kinds:
        return scenario
    left = [TRIES]

    def fails(candidate: Scenario) -> bool:
        if left[0] <= 0:
            return False
        left[0] -= 1
        return bool(_kinds(simulate(candidate).violations) & kinds)

    def with_faults(faults: Sequence[Fault]) -> Scenario:
        return msgspec.structs.replace(scenario, faults=tuple(faults))

    scenario = with_faults(_fewer(scenario.faults, lambda kept: fails(with_faults(kept))))

    def with_wishes(wishes: Sequence[Wish]) -> Scenario:
        return msgspec.structs.replace(scenario, wishes=tuple(wishes))

    return with_wishes(_fewer(scenario.wishes, lambda kept: fails(with_wishes(kept))))


def _kinds(violations: Sequence[str]) -> set[str]:
    """What kinds of violations there are: the first word of each."""
    return {violation.split(maxsplit=1)[0] for violation in violations}


def _fewer(items: Sequence[_T], fails: Callable[[Sequence[_T]], bool]) -> Sequence[_T]:
    """A short part of a list that still fails; neighbours are taken out together first."""
    size = max(len(items) // 2, 1)
    while items:
        shorter: Sequence[_T] | None = None
        for first in range(0, len(items), size):
            candidate = [*items[:first], *items[first + size :]]
            if fails(candidate):
                shorter = candidate
                break
        if shorter is not None:
            items = shorter
            size = min(size, max(len(items), 1))
        elif size == 1:
            break
        else:
            size = max(size // 2, 1)
    return items


def as_test(scenario: Scenario) -> str:
    """A scenario as a file of `tests/simulation/found/`: run by `test_simulation.py`."""
    return msgspec.json.format(msgspec.json.encode(scenario), indent=1).decode()
