"""All rules of the oracle, over one observation."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.simulation.oracle import answers, executions, progress, slots
from tests.simulation.oracle.observation import Observation, Violation

CHECKS: Final[Mapping[str, Callable[[Observation], Iterator[Violation]]]] = {
    "slots": slots.check,
    "executions": executions.check,
    "answers": answers.check,
    "progress": progress.check,
}


def judge(seen: Observation) -> list[Violation]:
    """Everything that must not be; empty: all is well."""
    return [violation for check in CHECKS.values() for violation in check(seen)]
