"""The processes of a torture: a server on a data folder, workers, and signals to them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from pathlib import Path

from tests.torture.api import Api
from tests.torture.failpoints import VARIABLE
from tests.waiting import until

ROOT = Path(__file__).parents[2]
DIED_S = 60.0
UP_S = 60.0


class Proc:
    """A Python module as a process, its output in a file."""

    def __init__(
        self, module: str, *arguments: str, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self.popen = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *arguments],
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def is_running(self) -> bool:
        return self.popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal, to a stopped process too, and wait for the end; its status."""
        if self.is_running:
            self.popen.send_signal(number)
            if number is not signal.SIGKILL:
                self.popen.send_signal(signal.SIGCONT)
        return self.popen.wait(DIED_S)


class Place:
    """A data folder with its server and workers; the port stays the same over all restarts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder / "data"
        self.witness = folder / "witness"
        self.log = folder / "server.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.api = Api(self.port)
        self.server: Proc | None = None
        self.workers: list[Proc] = []

    def register(self, name: str, spec: object) -> None:
        """Create a job; sent again to a busy server that did not decide in time."""
        until(partial(self._registered, name, spec), f"{name} is registered")

    def _registered(self, name: str, spec: object) -> bool | None:
        answer = self.api.call("PUT", f"/v1/jobs/default.{name}", spec)
        assert answer.status in {200, 201, 202, 503}, answer
        return answer.status in {200, 201} or None

    def launch(self, failpoint: str = "", env: Mapping[str, str] | None = None) -> Proc:
        """Start the server; it may end by its failpoint at any time."""
        self.server = Proc(
            "tests.torture.victim",
            str(self.data),
            str(self.port),
            str(self.witness),
            log=self.log,
            env={**(env or {}), VARIABLE: failpoint},
        )
        return self.server

    def await_ready(self) -> bool:
        """Wait until the server answers; False if it has ended before."""
        server = self.server
        assert server is not None

        def look() -> bool | None:
            if not server.is_running:
                return False
            return True if self.is_ready() else None

        return until(look, f"the server is up ({self.log})", UP_S)

    def is_ready(self) -> bool:
        """Whether the server says that it can decide."""
        try:
            return self.api.call("GET", "/readyz").status == 200
        except (OSError, HTTPException):
            return False

    def start(self, env: Mapping[str, str] | None = None) -> Proc:
        """Start the server and wait until it answers."""
        server = self.launch(env=env)
        assert self.await_ready(), self.log.read_text()
        return server

    def work(self, seconds: float = 0.05) -> Proc:
        """Start a worker."""
        log = self.folder / f"worker{len(self.workers)}.log"
        worker = Proc("tests.torture.worker", self.url, str(self.witness), str(seconds), log=log)
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        """End whatever runs."""
        self.api.close()
        for proc in [*self.workers, *([self.server] if self.server else [])]:
            proc.end()


@contextmanager
def placed(folder: Path) -> Generator[Place]:
    """A place that is empty of processes afterwards; the folder of one that failed stays."""
    place = Place(folder)
    try:
        yield place
    finally:
        place.close()


def removed(folder: Path) -> None:
    """Remove the folder of a place."""
    shutil.rmtree(folder)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
