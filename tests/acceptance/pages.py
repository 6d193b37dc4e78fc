"""Pages of the docs as programs: their blocks are read, and run against a real server.

A fenced block is an example, unless its language is `text` or `mermaid`. An example

- whose first line begins with `$ ` is run: each such line is a command of a shell, the lines below
  it are among what it prints (in any order; `...` stands for anything; an instant of the day the
  docs were written on, 2026-12-01, and the key of a manual run stand for any);
- after `<!-- file: NAME -->` is written into that file of the page's folder;
- after `<!-- not run: WHY -->` is left alone.

All others break the rule. `# exits N` at the end of a command says with what it ends, else with 0.
In commands and files the server's address, its data folder and a port for a target of one's own
stand in for those of the text. `systemctl stop horolog` and `start` do so with the page's server.
"""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from tests.acceptance.server import ROOT, Said, Server, serving

ADDRESS: Final = "http://127.0.0.1:8700"
DATA: Final = "/var/lib/horolog"
TARGET: Final = re.compile(r"""(127\.0\.0\.1(?::|", ))9000""")
NO_EXAMPLES: Final = frozenset({"text", "mermaid"})
COMMAND_WITHIN_S: Final = 60
TOOK_TOO_LONG: Final = 124
"""As timeout(1) says it."""
_BLOCK: Final = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ANY: Final = (
    (
        re.compile(r"2026\\-12\\-01T\d\d:\d\d:\d\d(?:\\\.\d+)?Z"),
        r"20\\d\\d-\\d\\d-\\d\\dT[\\d:.]+Z",
    ),
    (re.compile(r"manual\\-[0-9a-f]{16}"), r"manual-\\w+"),
    (re.compile(re.escape(re.escape("..."))), r".*"),
)


class Block(NamedTuple):
    """A fenced block: where it begins, what was said of it, its language and its text."""

    line: int
    mark: str
    kind: str
    text: str

    @property
    def is_session(self) -> bool:
        """Whether it is commands with what they print."""
        return self.text.startswith("$ ") and not self.is_left_alone

    @property
    def is_left_alone(self) -> bool:
        """Whether it says why it is not run."""
        return self.mark.startswith("not run: ") and self.mark != "not run: "

    @property
    def file(self) -> str | None:
        """The file it is to be written into."""
        return self.mark.removeprefix("file: ") if self.mark.startswith("file: ") else None


class Step(NamedTuple):
    """A command, with what it is to end, and lines it is to print."""

    command: str
    status: int
    printed: tuple[str, ...]


def pages() -> list[Path]:
    """Every page that a person wrote."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    return [
        Block(
            text.count("\n", 0, found.start()) + 1,
            found["mark"] or "",
            found["kind"],
            found["text"],
        )
        for found in _BLOCK.finditer(text)
    ]


def unexplained(text: str) -> list[int]:
    """Lines of the blocks that are neither run nor say why not."""
    return [
        block.line
        for block in blocks(text)
        if not block.is_session
        and block.file is None
        and block.kind not in NO_EXAMPLES
        and not block.is_left_alone
    ]


def steps(session: str) -> list[Step]:
    """The commands of a block. A line that ends in a backslash goes on in the next."""
    found: list[Step] = []
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        taken = 1
        while lines[taken - 1].endswith("\\"):
            taken += 1
        command = "\n".join(lines[:taken])
        status = re.search(r"# exits (\d+)$", command)
        found.append(Step(command, int(status[1]) if status else 0, tuple(lines[taken:])))
    return found


def matches(line: str, printed: str) -> bool:
    """Whether a printed line is the one of the page."""
    pattern = re.escape(" ".join(line.split()))
    for found, instead in _ANY:
        pattern = found.sub(instead, pattern)
    return re.fullmatch(pattern.replace(r"\ ", " "), " ".join(printed.split())) is not None


class Page:
    """A page that is being run, in a folder of its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._folder = server.folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self._shells: list[subprocess.Popen[bytes]] = []
        launcher = self._folder / "horolog"
        launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m horolog.cli "$@"\n')
        launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)

    def run(self, text: str) -> None:
        """Do all blocks of a page, in order."""
        for block in blocks(text):
            if block.file is not None:
                (self._folder / block.file).write_text(self._here(block.text))
            elif block.is_session:
                for step in steps(block.text):
                    self._check(step, block.line)

    def stop(self) -> None:
        """End what the page left running."""
        for shell in self._shells:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()

    def _check(self, step: Step, line: int) -> None:
        said = self._do(step.command)
        assert said.status == step.status, (line, step, said)
        printed = [self._there(each) for each in (said.out + "\n" + said.err).splitlines()]
        for wanted in step.printed:
            assert any(matches(wanted, each) for each in printed), (line, step, wanted, said)

    def _do(self, command: str) -> Said:
        match command.partition("#")[0].split():
            case ["systemctl", "stop", "horolog"]:
                return Said(self._server.end(signal.SIGTERM), "", "")
            case ["systemctl", "start", "horolog"]:
                self._server.start()
                return Said(0, "", "")
            case _:
                return self._shell(self._here(command))

    def _shell(self, command: str) -> Said:
        with (self._folder / ".out").open("w+") as out, (self._folder / ".err").open("w+") as err:
            # Files, and not pipes, so that what is left running in the background holds nothing.
            shell = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self._folder,
                env=self._environment(),
                start_new_session=True,
            )
            self._shells.append(shell)
            try:
                status = shell.wait(COMMAND_WITHIN_S)
            except subprocess.TimeoutExpired:
                status = TOOK_TOO_LONG
            out.seek(0)
            err.seek(0)
            return Said(status, out.read(), err.read())

    def _environment(self) -> Mapping[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**self._server.environment, "PATH": path}

    def _here(self, text: str) -> str:
        text = TARGET.sub(rf"\g<1>{self._port}", text.replace(ADDRESS, self._server.url))
        return text.replace(DATA, str(self._server.data))

    def _there(self, text: str) -> str:
        text = text.replace(self._server.url, ADDRESS).replace(f":{self._port}", ":9000")
        return text.replace(str(self._server.data), DATA)


@contextmanager
def page(folder: Path) -> Generator[Page, None, None]:
    """A page beside a server of its own."""
    with serving(folder) as server:
        running = Page(server)
        try:
            yield running
        finally:
            running.stop()
