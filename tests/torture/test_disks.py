"""F18: a full disk refuses writes cleanly, reads go on, and room brings everything back."""

import signal
from pathlib import Path

import pytest

from tests.torture.acks import Acks
from tests.torture.disks import (
    disk_round,
    fill,
    register,
    small_disk,
    trigger,
    until_refused,
)
from tests.torture.processes import Place, placed
from tests.torture.rounds import definition, drained
from tests.torture.witness import command, marks
from tests.waiting import until


@pytest.mark.timeout(200)
def test_disk_that_fills_up_under_a_server_loses_nothing_and_needs_no_restart(
    tmp_path: Path,
) -> None:
    checked, _ = disk_round(tmp_path, cycles=1)
    assert not checked.wrong
    assert checked.acked >= 1


def began(place: Place, job: str) -> bool:
    """Whether a run of a job has begun."""
    return any(mark.run_id.startswith(f"default.{job}@") for mark in marks(place.witness))


@pytest.mark.timeout(200)
def test_server_on_a_full_disk_says_so_when_it_starts_and_when_it_ends(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, placed(tmp_path / "place") as place:
        place.data = disk / "data"
        server = place.start()
        register(place)
        # It ends while there is no room for its report.
        spec = definition({"command": command(place.witness, 3)})
        place.register("long", spec)
        assert trigger(place.api, "long", "once").status == 202
        until(lambda: began(place, "long") or None, "the long one runs")
        ballast = fill(disk)
        acks = Acks()
        until_refused(place, acks, 0)
        assert server.end(signal.SIGTERM) == 0, place.log.read_text()
        refused = place.launch()
        assert not place.await_ready()
        assert refused.popen.returncode == 5
        assert "HRL4004" in place.log.read_text()
        ballast.unlink()
        place.start()
        assert not drained(place, acks).wrong
