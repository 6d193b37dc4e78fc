"""Deliberate bugs of the product: each is caught, by the seed that is known to catch it."""

import multiprocessing
import os
from pathlib import Path

import pytest

from tests.simulation.mutants.bugs import BUGS
from tests.simulation.mutants.hunt import BEGIN, END, Catch, catches, run_with, table

PAGE = Path(__file__).parents[3] / "docs" / "simulation.md"


def test_every_deliberate_bug_has_a_seed_that_catches_it() -> None:
    assert [catch.name for catch in catches()] == [bug.name for bug in BUGS]
    assert len(BUGS) >= 25


def test_page_about_the_simulation_has_the_table_of_catches() -> None:
    text = PAGE.read_text()
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip() == table(catches())


@pytest.mark.timeout(900)
def test_known_seed_of_each_bug_still_catches_it() -> None:
    known = catches()
    context = multiprocessing.get_context("spawn")
    with context.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        found = pool.starmap(run_with, [(catch.name, catch.seed) for catch in known], chunksize=1)
    assert escaped(known, found) == []


def escaped(known: list[Catch], found: list[list[str]]) -> list[str]:
    """Bugs that were not caught."""
    return [catch.name for catch, rules in zip(known, found, strict=True) if not rules]
