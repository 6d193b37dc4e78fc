"""F16: repeats of a trigger, over restarts, are one run."""

from pathlib import Path

import pytest

from tests.torture.repeats import repeat_round


@pytest.mark.timeout(300)
def test_triggers_sent_again_over_restarts_are_one_run_each(tmp_path: Path) -> None:
    checked, more = repeat_round(tmp_path, triggers=800, restarts=1)
    assert not checked.wrong
    assert more["sent"] == 800
