"""Which seeds catch which deliberate bug.

python -m tests.simulation.mutants.hunt             look for a seed for each bug that has none, or
                                                    whose seed catches it no more
python -m tests.simulation.mutants.hunt --all       look for all of them anew

Writes `caught.json`, from which the test runs and `docs/simulation.md` has its table.
"""

import argparse
import json
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from tests.simulation.mutants.bugs import BUGS
from tests.simulation.mutants.mutate import Mutant, apply
from tests.simulation.scenario import draw
from tests.simulation.simulate import simulate

CAUGHT: Final = Path(__file__).parent / "caught.json"
PAGE: Final = Path(__file__).parents[3] / "docs" / "simulation.md"
BEGIN: Final = "<!-- begin: written by tests.simulation.mutants.hunt -->"
END: Final = "<!-- end: written -->"
SEEDS_MOST: Final = 400


class Catch(msgspec.Struct, frozen=True, kw_only=True):
    """How a bug was caught."""

    name: str
    seed: int
    rule: str
    tried: int
    """Seeds that were looked at, this one included."""


def catches() -> list[Catch]:
    """What is known."""
    if not CAUGHT.exists():
        return []
    return msgspec.json.decode(CAUGHT.read_bytes(), type=list[Catch])


def table(known: list[Catch]) -> str:
    """The catches for people."""
    lines = ["| deliberate bug | caught by | seed | seeds looked at |", "| --- | --- | --- | --- |"]
    lines += [f"| {one.name} | {one.rule} | {one.seed} | {one.tried} |" for one in known]
    return "\n".join(lines)


def write(known: list[Catch]) -> None:
    """Keep what is known, for the test and for people."""
    CAUGHT.write_text(json.dumps(msgspec.to_builtins(known), indent=1) + "\n")
    text = PAGE.read_text()
    head, tail = text[: text.index(BEGIN)], text[text.index(END) :]
    PAGE.write_text(f"{head}{BEGIN}\n{table(known)}\n{tail}")


def rules_of(violations: list[str]) -> list[str]:
    """The rules that violations name, each once, in their order."""
    return list(dict.fromkeys(violation.partition(":")[0] for violation in violations))


def run_with(name: str, seed: int) -> list[str]:
    """The rules that one seed breaks with a bug in the product; for a process of its own."""
    apply(next(bug for bug in BUGS if bug.name == name))
    return rules_of(simulate(draw(seed)).violations)


def hunt(bug: Mutant) -> Catch | None:
    """The first seed that catches it; for a process of its own."""
    apply(bug)
    for seed in range(SEEDS_MOST):
        rules = rules_of(simulate(draw(seed)).violations)
        if rules:
            return Catch(name=bug.name, seed=seed, rule=rules[0], tried=seed + 1)
    return None


def main() -> int:
    """Hunt; 1 if a bug got away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    escaped: list[str] = []
    with context.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        before = [] if given.all else catches()
        found = pool.starmap(run_with, [(one.name, one.seed) for one in before], chunksize=1)
        known = {one.name: one for one, rules in zip(before, found, strict=True) if rules}
        wanted = [bug for bug in BUGS if bug.name not in known]
        for bug, catch in zip(wanted, pool.imap(hunt, wanted, chunksize=1), strict=True):
            if catch is None:
                escaped.append(bug.name)
            else:
                known[bug.name] = catch
                write([known[bug.name] for bug in BUGS if bug.name in known])
            print(f"{bug.name}: {catch and (catch.seed, catch.rule)}", flush=True)
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
