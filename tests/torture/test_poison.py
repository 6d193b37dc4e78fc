"""F17, F28: poison harms no neighbour; dead letters come back once."""

from pathlib import Path

import pytest

from tests.torture.poison import dead_letter_round, poison_round


@pytest.mark.timeout(120)
def test_poison_is_refused_and_its_neighbours_go_on(tmp_path: Path) -> None:
    checked, _ = poison_round(tmp_path, seed=2, count=150)
    assert not checked.wrong
    assert checked.acked


@pytest.mark.timeout(120)
def test_dead_letters_redriven_after_a_mend_run_once_more_each(tmp_path: Path) -> None:
    assert not dead_letter_round(tmp_path, runs=30).wrong
