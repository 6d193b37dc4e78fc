"""F12: a wall clock that is set does not stop runs, and ends no lease."""

from pathlib import Path

import pytest

from tests.torture.clocks import HELD, clock_round


@pytest.mark.timeout(200)
def test_clock_that_is_set_and_taken_back_stops_no_run_and_ends_no_lease(tmp_path: Path) -> None:
    checked = clock_round(tmp_path, HELD)
    assert not checked.wrong
