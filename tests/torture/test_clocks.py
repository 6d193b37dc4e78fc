"""F12: a wall clock that is set does not stop runs, and ends no lease."""

from pathlib import Path

import pytest

from tests.torture.clocks import HOUR_S, Step, clock_round

STEPS = (Step(HOUR_S, 15), Step(0, 5), Step(-HOUR_S, 15), Step(0, 5))


@pytest.mark.timeout(200)
def test_clock_that_is_set_and_taken_back_stops_no_run_and_ends_no_lease(tmp_path: Path) -> None:
    checked = clock_round(tmp_path, STEPS)
    assert not checked.wrong
