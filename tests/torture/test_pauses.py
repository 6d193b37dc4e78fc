"""F2, F9, F10: what stands still longer than its lease, and what is killed, loses its run."""

from pathlib import Path

import pytest

from tests.torture.pauses import kill_workers, pause_round


@pytest.mark.timeout(300)
def test_zombie_that_wakes_up_after_its_lease_changes_nothing(tmp_path: Path) -> None:
    found = pause_round(tmp_path, seed=1, pauses=2)
    assert not found.checked.wrong
    assert found.zombies == 1


@pytest.mark.timeout(200)
def test_run_of_a_killed_worker_is_given_to_another(tmp_path: Path) -> None:
    found = kill_workers(tmp_path, kills=1)
    assert not found.checked.wrong
    assert len(found.started_again_s) == 1
