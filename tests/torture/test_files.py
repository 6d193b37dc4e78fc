"""F20, F22: data folders that were copied, put back, or changed behind the server's back."""

import shutil
import signal
from pathlib import Path

import pytest

from tests.torture.checker import proven
from tests.torture.mutations import fold_wal, mutate, mutated, worked
from tests.torture.processes import Place, placed
from tests.torture.witness import marks

MUTATIONS = 80
STARTS = 2


def tokens(place: Place) -> list[int]:
    """Fencing tokens in the order they were executed."""
    return [mark.token for mark in marks(place.witness) if mark.kind == "start"]


@pytest.mark.timeout(120)
def test_copied_folder_goes_on_with_tokens_above_those_of_its_original(tmp_path: Path) -> None:
    with placed(tmp_path / "a") as first, placed(tmp_path / "b") as second:
        worked(first, 2)
        shutil.copytree(first.data, second.data)
        worked(first, 3)
        worked(second, 2)
        assert min(tokens(second)) > max(tokens(first))
        assert "goes on as generation 2" in second.log.read_text()
        assert "generation" not in first.log.read_text()
        second.start()
        assert second.server is not None
        assert second.server.end(signal.SIGTERM) == 0
        assert not proven(second.data).wrong


@pytest.mark.timeout(120)
def test_older_copy_put_back_beside_a_newer_history_gives_no_token_twice(tmp_path: Path) -> None:
    with placed(tmp_path) as place:
        worked(place, 2)
        shutil.copytree(place.data, tmp_path / "old")
        worked(place, 3)
        shutil.rmtree(place.data)
        shutil.copytree(tmp_path / "old", place.data)
        worked(place, 2)
        assert len(tokens(place)) == len(set(tokens(place)))
        assert tokens(place) == sorted(tokens(place))


@pytest.mark.timeout(120)
def test_older_log_written_over_the_newer_one_is_refused_and_says_why(tmp_path: Path) -> None:
    with placed(tmp_path) as place:
        worked(place, 2)
        fold_wal(place.data)
        old = (place.data / "ledger.db").read_bytes()
        worked(place, 3)
        with (place.data / "ledger.db").open("r+b") as file:
            file.truncate(0)
            file.write(old)
        for name in ("ledger.db-wal", "ledger.db-shm"):
            (place.data / name).unlink(missing_ok=True)
        place.launch()
        assert not place.await_ready()
        said = place.log.read_text()
        assert "HRL5002" in said
        assert "it went back" in said
        assert "Traceback" not in said


@pytest.mark.timeout(300)
def test_folders_changed_at_random_are_refused_or_go_on_from_a_prefix(tmp_path: Path) -> None:
    with placed(tmp_path / "a") as place:
        worked(place, 3)
        fold_wal(place.data)
        worked(place, 3)
    found = mutated(place.data, tmp_path / "b", MUTATIONS, seed=20)
    assert not found.silent, found.silent
    assert found.refused
    assert found.recovered
    assert found.count == MUTATIONS


@pytest.mark.timeout(300)
def test_server_on_a_changed_folder_starts_or_says_what_is_wrong(tmp_path: Path) -> None:
    with placed(tmp_path / "a") as place:
        worked(place, 3)
        fold_wal(place.data)
        worked(place, 3)
    for number in range(STARTS):
        with placed(tmp_path / f"b{number}") as other:
            what = mutate(place.data, other.data, seed=number)
            server = other.launch()
            if other.await_ready():
                assert server.end(signal.SIGTERM) == 0, (what, other.log.read_text())
                assert not proven(other.data).wrong, what
            else:
                said = other.log.read_text()
                assert "HRL5" in said, (what, said)
                assert "Traceback" not in said, (what, said)
                assert server.popen.returncode == 5, what
