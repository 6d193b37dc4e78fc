"""What a partition's owner has yet to read, by kind, where it comes from this process."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

import msgspec

from horolog.schemas.records import ClaimRun, Command
from horolog.streams.limits import COMMANDS_PER_STEP, REPORTS_PER_STEP
from horolog.streams.scheduler.inputs import Answer, Input, Report

_T = TypeVar("_T")


class MarkRead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A mark was read: lease time moves on to its append time."""

    append_us: int


class Inputs(Protocol):
    """Where an owner's inputs come from."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Topic -> offset of the first record that no step has taken; empty without topics."""
        ...

    def __bool__(self) -> bool:
        """Whether a step would take something."""
        ...

    def take(self) -> Iterator[Input | MarkRead]:
        """What a step reads, in the order in which it is decided."""
        ...


class Inbox:
    """Inputs in the order they came, per kind. Any thread may offer, the owner's takes.

    Appending to and popping from a deque are atomic in CPython.
    """

    def __init__(self) -> None:
        """Nothing to read."""
        self.positions: Mapping[str, int] = {}
        self._answers: deque[Answer] = deque()
        self._claims: deque[ClaimRun] = deque()
        self._reports: deque[Report] = deque()
        self._commands: deque[Command] = deque()

    def answer(self, answer: Answer) -> None:
        """Offer an answer of a dispatcher."""
        self._answers.append(answer)

    def report(self, report: Report) -> None:
        """Offer a report of a worker."""
        if isinstance(report, ClaimRun):
            self._claims.append(report)
        else:
            self._reports.append(report)

    def command(self, command: Command) -> None:
        """Offer a command."""
        self._commands.append(command)

    def __bool__(self) -> bool:
        return bool(self._claims or self._reports or self._answers or self._commands)

    def take(self) -> Iterator[Input | MarkRead]:
        """What a step reads: answers, then claims, so that starts go before completions, then the
        other reports, then some commands.
        """
        yield from _take(self._answers, REPORTS_PER_STEP)
        yield from _take(self._claims, REPORTS_PER_STEP)
        yield from _take(self._reports, REPORTS_PER_STEP)
        yield from _take(self._commands, COMMANDS_PER_STEP)


def _take(queue: deque[_T], most: int) -> Iterator[_T]:
    for _ in range(min(len(queue), most)):
        yield queue.popleft()
