"""Whole fleets in virtual time, with faults: nothing is lost, doubled or silent."""

import os
from pathlib import Path

import msgspec
import pytest

from tests.simulation.batch import Result, run
from tests.simulation.scenario import Scenario, draw
from tests.simulation.simulate import simulate

SEEDS = 200
FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))


@pytest.mark.timeout(900)
def test_fleet_under_drawn_faults_accounts_for_every_slot() -> None:
    failed: list[Result] = []
    results = run(range(SEEDS), os.cpu_count() or 1, failed.append)
    assert [result.seed for result in results] == list(range(SEEDS))
    assert failed == []
    assert sum(result.runs for result in results) > 10 * SEEDS


def test_seed_run_twice_leaves_the_same_trace() -> None:
    first, again = simulate(draw(1)), simulate(draw(1))
    assert first.digest == again.digest
    assert first.steps == again.steps


def test_fault_taken_away_leaves_the_other_draws_as_they_were() -> None:
    whole = draw(3)
    assert whole.faults
    without = msgspec.structs.replace(whole, faults=())
    assert draw(3) == whole
    assert not simulate(without).violations


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_scenario_that_showed_a_bug_shows_none_now(path: Path) -> None:
    scenario = msgspec.json.decode(path.read_bytes(), type=Scenario)
    assert simulate(scenario).violations == []
