"""The launcher on a fresh clone: what a person with Python and nothing else meets."""

import importlib.metadata
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
VERSION = importlib.metadata.version("horolog")
# Longer than one test may otherwise take: packages are fetched here.
FIRST_START_S = 600


def environment(**changes: str) -> dict[str, str]:
    """The caller's environment without the one that the tests themselves run in."""
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    here = str(ROOT / ".venv")
    entries = kept["PATH"].split(os.pathsep)
    kept["PATH"] = os.pathsep.join(entry for entry in entries if not entry.startswith(here))
    return kept | changes


def start(clone: Path, **changes: str) -> subprocess.Popen[str]:
    """`./horolog --version` in a process group of its own."""
    return subprocess.Popen(
        [clone / "horolog", "--version"],
        cwd=clone,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def without_network() -> list[str]:
    """A prefix that takes the network from a command, where this machine permits it."""
    prefix = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None:
        return []
    tried = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return prefix if tried.returncode == 0 else []


def run_offline(clone: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`./horolog --version` with no network and no package index."""
    return subprocess.run(
        [*without_network(), clone / "horolog", "--version"],
        cwd=cwd or clone,
        env=environment(PIP_NO_INDEX="1", PIP_NO_CACHE_DIR="1"),
        capture_output=True,
        text=True,
        check=False,
    )


def environments(clone: Path) -> list[Path]:
    return list(clone.glob(".venvs/3.*"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone = tmp_path_factory.mktemp("fresh") / "clone of horolog"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    return clone


@pytest.fixture(scope="module")
def started(fresh: Path) -> Path:
    """A clone whose first start was killed, and whose second was two at once."""
    killed = start(fresh)

    def is_building() -> list[Path] | None:
        assert killed.poll() is None, killed.communicate()
        return environments(fresh) or None

    until(is_building, "the first start builds")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert not (fresh / ".venv").exists()

    racing = [start(fresh), start(fresh)]
    said = [process.communicate(timeout=FIRST_START_S) for process in racing]
    assert [process.returncode for process in racing] == [0, 0], said
    for output, messages in said:
        assert VERSION in output
        assert "environment ready" in messages
    return fresh


@pytest.mark.timeout(2 * FIRST_START_S)
def test_first_start_killed_and_then_raced_builds_one_environment(started: Path) -> None:
    assert environments(started) == [(started / ".venv").resolve()]


def test_second_start_without_network_answers_and_says_nothing_else(started: Path) -> None:
    done = run_offline(started)
    assert (done.returncode, done.stderr) == (0, "")
    assert VERSION in done.stdout


def test_start_from_a_folder_that_shadows_the_standard_library_answers(
    started: Path, tmp_path: Path
) -> None:
    (tmp_path / "types.py").write_text("raise SystemExit('imported from the current folder')\n")
    done = run_offline(started, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_start_through_a_link_to_the_launcher_answers(started: Path, tmp_path: Path) -> None:
    (tmp_path / "horolog").symlink_to(started / "horolog")
    done = run_offline(tmp_path)
    assert done.returncode == 0, done.stderr


def test_changed_metadata_without_network_are_installed(started: Path) -> None:
    project = started / "pyproject.toml"
    before = project.read_text()
    project.write_text(before.replace(f'version = "{VERSION}"', 'version = "99.0"'))
    try:
        done = run_offline(started)
        assert "99.0" in done.stdout, done.stderr
    finally:
        project.write_text(before)
    assert VERSION in run_offline(started).stdout


def test_changed_requirements_that_cannot_be_met_leave_the_old_environment(started: Path) -> None:
    locked = started / "requirements" / "runtime.txt"
    before = locked.read_bytes()
    in_use = (started / ".venv").resolve()
    locked.write_bytes(before + b"# one line more\n")
    try:
        refused = run_offline(started)
        assert refused.returncode == 1
        assert "cannot make the environment" in refused.stderr
    finally:
        locked.write_bytes(before)
    assert (started / ".venv").resolve() == in_use
    assert run_offline(started).returncode == 0


def test_start_without_a_new_enough_python_names_what_it_found(fresh: Path, tmp_path: Path) -> None:
    for tool in ("sh", "cmp", "readlink"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\necho 3.9.2\n")
    old.chmod(0o755)
    # A copy without its environment: with one, no Python is looked for.
    copy = tmp_path / "copy"
    shutil.copytree(fresh, copy, symlinks=True, ignore=shutil.ignore_patterns(".venv*", ".git"))
    process = start(copy, PATH=str(tmp_path))
    _, messages = process.communicate()
    assert process.returncode == 1
    assert "needs Python 3.11" in messages
    assert f"python3: 3.9.2 ({old})" in messages
