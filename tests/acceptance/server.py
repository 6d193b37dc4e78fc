"""A real `horolog up` for a test."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Said(NamedTuple):
    """How a command ended and what it said."""

    status: int
    out: str
    err: str


class Server:
    """`horolog up` on a data directory of its own, and the CLI that talks to it."""

    def __init__(self, folder: Path, arguments: tuple[str, ...] = ()) -> None:
        self.data = folder / "data"
        self.folder = folder
        self.url = ""
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """Settings of the CLI in this test."""
        return {
            **os.environ,
            "HOROLOG_DATA": str(self.data),
            "HOROLOG_SERVER": self.url,
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }

    def start(self) -> None:
        """Start it and wait until it says where it listens."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "horolog.cli", "up", "--port", "0", *self._arguments],
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, "HOROLOG_DATA": str(self.data)},
        )
        assert self._process.stderr is not None
        seen: list[str] = []
        for line in self._process.stderr:
            seen.append(line)
            found = re.search(r"API on (http://\S+),", line)
            if found is not None:
                self.url = found[1]
                return
        raise AssertionError("".join(seen))

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to end and wait; its exit status."""
        assert self._process is not None
        self._process.send_signal(number)
        _, err = self._process.communicate(timeout=60)
        status = self._process.returncode
        assert "Traceback" not in err, err
        self._process = None
        return status

    @property
    def is_running(self) -> bool:
        """Whether it was started and not ended."""
        return self._process is not None

    def cli(self, *arguments: str, stdin: str | None = None) -> Said:
        """Run a command of the CLI."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "horolog.cli", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            timeout=60,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str) -> str:
        """Run a command that must succeed; its output."""
        said = self.cli(*arguments)
        assert said.status == 0, said
        return said.out


@contextmanager
def serving(folder: Path, *arguments: str) -> Generator[Server, None, None]:
    """A server for the time of a test."""
    server = Server(folder, arguments)
    server.start()
    try:
        yield server
    finally:
        if server.is_running:
            server.end(signal.SIGKILL)
