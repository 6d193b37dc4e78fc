"""Make or mend the environment that `./horolog` and `make` run in.

Called by environment.sh when `.venv` is not current, with any Python >= 3.11 and its pip; imports
the standard library only.

`.venv` is a link to a folder in `.venvs/`. A new environment is built beside the one in use, and
its stamp (copies of the files it was made from) is written last; then the link is moved, which is
atomic. So an interrupted build is never mistaken for an environment, a failed one leaves the old
one at work, and a server that is running keeps the files it imports from. A lock, which the
kernel releases with its holder, keeps two starts from building at once.

Three parts, each with its stamp:
- packages: `runtime.txt` and `build.txt`. A change builds a new environment.
- project: Horolog itself, editable. A change of its metadata installs it again, in place and
  without network.
- dev: `dev.txt`, added in place on request.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
LINK = ROOT / ".venv"
STORE = ROOT / ".venvs"
PACKAGES = (REQUIREMENTS / "runtime.txt", REQUIREMENTS / "build.txt")
DEV = REQUIREMENTS / "dev.txt"
PROJECT = ROOT / "pyproject.toml"
STAMP = "horolog-stamp"
OUTPUT_LINES_SHOWN = 12


class CannotInstall(Exception):
    """The environment could not be made; its text tells the person what to do."""


def say(text: str) -> None:
    """Tell the person at the terminal; standard output belongs to the command that follows."""
    print(f"horolog: {text}", file=sys.stderr, flush=True)


@contextmanager
def locked() -> Generator[None]:
    """Hold the one right to build, waiting for another start that has it."""
    STORE.mkdir(exist_ok=True)
    with (STORE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another start is making the environment; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command: list[str | Path]) -> None:
    """Run an install command quietly; raises CannotInstall with the end of what it printed."""
    environment = dict(os.environ)
    # Settings that would make pip install elsewhere or otherwise than the locked files say.
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_CONSTRAINT", "PYTHONPATH"):
        environment.pop(name, None)
    environment |= {
        "PIP_USER": "0",
        "PIP_REQUIRE_VIRTUALENV": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-OUTPUT_LINES_SHOWN:])
        told = " ".join(str(word) for word in command)
        raise CannotInstall(f"this failed with exit code {done.returncode}: {told}\n{tail}")


def has_module(name: str) -> bool:
    """Whether the Python that runs this file can run `python -m name`."""
    command = [sys.executable, "-I", "-m", name, "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def pip(env: Path) -> list[str | Path]:
    """The command that runs pip on `env`.

    The pip of the Python outside: an environment without a pip of its own is made in a fraction
    of the time, and also where Debian's python3-venv is missing.
    """
    if (env / "bin" / "pip").exists():
        return [env / "bin" / "python", "-I", "-m", "pip", "--quiet"]
    return [sys.executable, "-I", "-m", "pip", "--python", env / "bin" / "python", "--quiet"]


def install_locked(env: Path, files: tuple[Path, ...]) -> None:
    """Install what `files` lock, by hash, wheels only: no build script runs."""
    wanted = [word for file in files for word in ("--requirement", file)]
    run([*pip(env), "install", "--require-hashes", "--only-binary", ":all:", *wanted])


def install_project(env: Path) -> None:
    """Install Horolog itself into `env`, editable, with the build backend that is in there."""
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    run([*pip(env), "install", *offline, "--editable", ROOT])


def stamp(env: Path, *files: Path) -> None:
    """Record that `env` holds what `files` say. Last step of each part."""
    folder = env / STAMP
    folder.mkdir(exist_ok=True)
    # Invariant: a stamp that survives a power cut vouches for files that survived it too.
    os.sync()
    for file in files:
        beside = folder / f"{file.name}.new"
        shutil.copyfile(file, beside)
        beside.replace(folder / file.name)


def is_stamped(env: Path, *files: Path) -> bool:
    """Whether `env` was made from `files` as they are now."""
    return all(
        (env / STAMP / file.name).is_file()
        and (env / STAMP / file.name).read_bytes() == file.read_bytes()
        for file in files
    )


def is_usable(env: Path) -> bool:
    """Whether `env` has a Python that runs and was made for this folder and these packages."""
    place = env / STAMP / "root"
    return (
        (env / "bin" / "python").exists()
        and place.is_file()
        and place.read_text() == f"{ROOT}\n"
        and is_stamped(env, *PACKAGES)
    )


def metadata(pyproject: Path) -> object:
    """The part of pyproject.toml that an editable install depends on."""
    tables = tomllib.loads(pyproject.read_text())
    return [tables["build-system"], tables["project"], tables["tool"]["hatch"]]


def is_project_current(env: Path) -> bool:
    """Whether Horolog's metadata in `env` are those of pyproject.toml, whatever else changed."""
    stamped = env / STAMP / PROJECT.name
    return stamped.is_file() and metadata(stamped) == metadata(PROJECT)


def build(group: str) -> None:
    """Build an environment beside the one in use, stamp it, then move the link to it."""
    files = (*PACKAGES, DEV) if group == "dev" else PACKAGES
    count = sum(line[:1].isalnum() for file in files for line in file.read_text().splitlines())
    version = ".".join(str(part) for part in sys.version_info[:3])
    say(f"making .venv, once: Python {version}, {count} packages; this takes a minute or less")
    sweep()
    env = STORE / f"{version}-{time.time_ns()}"
    # The Python itself, not a link to it in some other environment that may go away.
    python = Path(sys.executable).resolve()
    without_pip = ["--without-pip"] if has_module("pip") else []
    try:
        run([python, "-I", "-m", "venv", *without_pip, "--prompt", "horolog", env])
    except CannotInstall as error:
        if without_pip:
            raise
        text = f"{python} has neither pip nor a working venv"
        hint = "install them (Debian, Ubuntu: apt-get install python3-pip)"
        raise CannotInstall(f"{text}; {hint}\n{error}") from error
    install_locked(env, files)
    install_project(env)
    stamp(env, PROJECT, *files)
    (env / STAMP / "root").write_text(f"{ROOT}\n")
    swap(env)


def sweep() -> None:
    """Remove what interrupted builds left, and environments older than the one in use."""
    current = LINK.resolve()
    for env in STORE.glob("3.*"):
        if env != current:
            shutil.rmtree(env, ignore_errors=True)


def swap(env: Path) -> None:
    """Make `.venv` be `env`; the one before it stays, since a server may be running from it."""
    if LINK.is_dir() and not LINK.is_symlink():
        # Not ours. Its files may be dear to someone, so it is moved and not removed.
        before = STORE / f"replaced-{time.time_ns()}"
        LINK.rename(before)
        say(f"the .venv that was here is now {before.relative_to(ROOT)}")
    beside = STORE / "link"
    beside.unlink(missing_ok=True)
    beside.symlink_to(env.relative_to(ROOT))
    beside.replace(LINK)


def ensure(group: str) -> None:
    """Bring the environment to what the requirement files say, doing only what is missing."""
    if not is_usable(LINK):
        build(group)
    elif not is_project_current(LINK):
        say("installing Horolog's changed metadata")
        install_project(LINK.resolve())
    if not is_stamped(LINK, PROJECT):
        stamp(LINK, PROJECT)
    if group == "dev" and not is_stamped(LINK, DEV):
        say("adding the development tools to .venv; this takes a minute or less")
        install_locked(LINK.resolve(), (DEV,))
        stamp(LINK, DEV)


def main() -> int:
    """Entry point: `environment.py runtime|dev`. Returns the exit code."""
    (group,) = sys.argv[1:]
    assert group in {"runtime", "dev"}, f"group {group!r}: runtime or dev would be right"
    started_s = time.monotonic()
    try:
        with locked():
            ensure(group)
    except KeyboardInterrupt:
        say("interrupted; the next start begins anew")
        return 130
    except (CannotInstall, OSError) as error:
        say(f"cannot make the environment in {LINK}: {error}")
        return 1
    say(f"environment ready after {time.monotonic() - started_s:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
