"""F1, F9, F19, F21: a server and workers killed with -9 lose and double nothing."""

import os
import signal
from pathlib import Path

import pytest

from tests.torture.acks import Acks
from tests.torture.processes import placed
from tests.torture.rounds import definition, drained, kill_round
from tests.torture.witness import command, marks
from tests.waiting import until


@pytest.mark.timeout(300)
def test_kills_at_random_and_at_failpoints_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    done = kill_round(tmp_path, seed=4, kills=8)
    assert not done.checked.wrong
    assert done.checked.acked > 20
    assert done.checked.slots > 200
    assert len({kill.how for kill in done.kills}) > 3


@pytest.mark.timeout(120)
def test_program_of_a_killed_server_has_ended_before_its_run_starts_again(tmp_path: Path) -> None:
    with placed(tmp_path) as place:
        place.start()
        spec = definition({"command": command(place.witness, 14)})
        place.register("long", spec)
        assert place.api.call("POST", "/v1/jobs/default.long:trigger").status == 202
        first = until(lambda: next(marks(place.witness), None), "the program runs")
        assert place.server is not None
        assert place.server.end() == -signal.SIGKILL
        place.start()
        until(lambda: len(list(marks(place.witness))) > 1 or None, "the run starts again")
        # Its lease has ended; the program of the token before it must not go on beside it.
        with pytest.raises(ProcessLookupError):
            os.kill(first.pid, 0)
        assert [mark.kind for mark in marks(place.witness)] == ["start", "start"]
        assert not drained(place, Acks()).wrong


@pytest.mark.timeout(120)
def test_server_and_history_that_end_together_in_the_middle_of_a_write_lose_nothing(
    tmp_path: Path,
) -> None:
    with placed(tmp_path) as place:
        place.start()
        for number in range(5):
            place.register(f"inline{number}", definition({"handler": "inline"}, "1s"))
        assert place.server is not None
        assert place.server.end() == -signal.SIGKILL
        for passes in (3, 7):
            ended = place.launch(f"writing-history:{passes}")
            assert ended.popen.wait(60) == -signal.SIGKILL
        place.start()
        checked = drained(place, Acks())
    assert not checked.wrong
