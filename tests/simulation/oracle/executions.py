"""Rules of executions: what targets wrote down against what the ledger granted.

granted      an execution begins only after its RunStarted was committed
due          and not before the run is due (but for the 2 s that clocks may differ)
once         a token is executed once at most
success      a run that succeeded was executed to a good end with that token, before
exclusive    two executions of a run never overlap, unless the worker of the earlier one was paused
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from horolog.schemas.ids import slot_text
from horolog.schemas.records import RunId, RunPlanned, RunStarted, RunSucceeded
from horolog.streams.limits import FENCING_GENERATION
from tests.simulation.oracle.observation import Observation, Pause, Seen, Violation

CLOCKS_US: Final = 2_500_000


class Execution(msgspec.Struct):
    """From a start to its end, or to its worker's."""

    start: Seen
    end: Seen | None = None


def executions_of(seen: Sequence[Seen]) -> dict[tuple[RunId, int], list[Execution]]:
    """Executions by run and token."""
    found: dict[tuple[RunId, int], list[Execution]] = {}
    for each in seen:
        key = each.run_id, each.token
        if each.kind == "start":
            found.setdefault(key, []).append(Execution(each))
        else:
            for execution in found[key]:
                if execution.end is None and execution.start.worker == each.worker:
                    execution.end = each
                    break
    return found


def check(seen: Observation) -> Iterator[Violation]:
    """See the module."""
    executions = executions_of(seen.seen)
    granted: dict[tuple[RunId, int], tuple[int, int]] = {}
    due: dict[RunId, int] = {}
    for told in seen.events:
        event = told.event
        if isinstance(event, RunStarted):
            token = event.generation * FENCING_GENERATION + event.seq
            granted[event.run_id, token] = told.us, event.attempt
        elif isinstance(event, RunPlanned):
            due[event.run_id] = event.due_us
        elif isinstance(event, RunSucceeded):
            yield from _check_success(event, told.us, executions)
    for (run_id, token), found in executions.items():
        yield from _check_start(run_id, found, granted.get((run_id, token)), due.get(run_id))
    yield from _check_exclusive(executions, seen.pauses)


def _check_start(
    run_id: RunId, found: list[Execution], grant: tuple[int, int] | None, due_us: int | None
) -> Iterator[Violation]:
    start = found[0].start
    if len(found) > 1:
        yield Violation("once", f"{run_id} was executed {len(found)} times with one token")
    if grant is None or start.at_us < grant[0]:
        yield Violation("granted", f"{run_id} began before its RunStarted was committed")
    elif grant[1] != start.attempt:
        yield Violation("granted", f"{run_id} began attempt {start.attempt}, granted {grant[1]}")
    if due_us is not None and start.at_us < due_us - CLOCKS_US:
        yield Violation("due", f"{run_id} began {due_us - start.at_us} us before it was due")


def _check_success(
    event: RunSucceeded, us: int, executions: dict[tuple[RunId, int], list[Execution]]
) -> Iterator[Violation]:
    found = executions.get((event.run_id, event.token), [])
    if not any(each.end and each.end.ok and each.end.at_us <= us for each in found):
        yield Violation("success", f"{event.run_id} succeeded, and no target says so")


def _check_exclusive(
    executions: dict[tuple[RunId, int], list[Execution]], pauses: Sequence[Pause]
) -> Iterator[Violation]:
    by_run: dict[RunId, list[Execution]] = {}
    for (run_id, _), found in executions.items():
        by_run.setdefault(run_id, []).extend(found)
    for run_id, found in by_run.items():
        found.sort(key=lambda each: each.start.at_us)
        for earlier, later in pairwise(found):
            ended_us = None if earlier.end is None else earlier.end.at_us
            if ended_us is not None and ended_us <= later.start.at_us:
                continue
            if not _was_paused(earlier, later.start.at_us, pauses):
                yield Violation(
                    "exclusive",
                    f"{run_id} was executed by {earlier.start.worker} and {later.start.worker} "
                    f"at once, at {slot_text(later.start.at_us)}",
                )


def _was_paused(execution: Execution, until_us: int, pauses: Sequence[Pause]) -> bool:
    start = execution.start
    return any(
        pause.worker == start.worker and pause.from_us < until_us and pause.to_us > start.at_us
        for pause in pauses
    )
