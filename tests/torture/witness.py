"""The witness file: what targets did, written by themselves, outside of the system.

A line is one write to a file opened for appending, so lines of processes that are killed never mix:
`start|end|stopped RUN TOKEN PID AT_US`.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from horolog.workers.context import Context


class Mark(NamedTuple):
    """A line of the file."""

    kind: str
    run_id: str
    token: int
    pid: int
    at_us: int


class Stopped(Exception):
    """The run was asked to stop and did."""


class Witness:
    """Writes marks."""

    def __init__(self, path: Path) -> None:
        self._out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def mark(self, kind: str, context: Context) -> None:
        line = f"{kind} {context.run_id} {context.fencing_token} {os.getpid()} {now_us()}\n"
        os.write(self._out, line.encode())

    def handler(self, seconds: float) -> Callable[[Context], None]:
        """A function that works for so long, unless it is stopped."""

        def work(context: Context) -> None:
            self.mark("start", context)
            if context.cancelled.wait(seconds):
                self.mark("stopped", context)
                raise Stopped
            self.mark("end", context)

        return work


def command(path: Path, seconds: float) -> list[str]:
    """A program that does the same. It writes a line of output too."""
    mark = f'"$HOROLOG_RUN_ID" "$HOROLOG_FENCING_TOKEN" "$$" "$(date +%s%6N)" >> {path}'
    return ["sh", "-c", f"echo start {mark}; echo working; sleep {seconds}; echo end {mark}"]


def marks(path: Path) -> Iterator[Mark]:
    """What the file holds; the last line of a file that is written may be left out."""
    if path.exists():
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                kind, run_id, token, pid, at_us = line.split()
                yield Mark(kind, run_id, int(token), int(pid), int(at_us))


def now_us() -> int:
    """Wall clock, as the targets see it."""
    return time.time_ns() // 1_000
