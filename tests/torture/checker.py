"""What must hold after a round: compares the log, the witness file and what clients were told.

Reads the folder of a server that has ended. Knows the records and asks `audit` and `replay` for
their verdicts; the rest it works out by itself.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from horolog.projections.rebuild import verify as verify_history
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.stores.sqlite import SqliteHistory
from horolog.schemas.ids import slot_of
from horolog.schemas.records import (
    AttemptEnded,
    Event,
    JobCreated,
    JobUpdated,
    ReportRejected,
    RunCancelled,
    RunDeadLettered,
    RunPlanned,
    RunQueued,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
)
from horolog.streams.audit import audit
from horolog.streams.host.replay import verify
from horolog.streams.log.sqlite import SqliteLog
from tests.torture.acks import Acks
from tests.torture.witness import Mark, marks

GENERATION = 1 << 40
SHOWN_MAX = 5


class Checked(msgspec.Struct, kw_only=True):
    """Figures of a round, and what is wrong; `wrong` empty: nothing."""

    acked: int = 0
    slots: int = 0
    starts: int = 0
    successes: int = 0
    stale_rejected: int = 0
    lost: int = 0
    """Acknowledged commands without their effect, slots without an outcome."""
    doubled: int = 0
    """Commands with a second effect, slots with a second outcome, tokens executed twice."""
    stale_accepted: int = 0
    """Successes of a token that was not the run's latest, or whose target did not end."""
    wrong: list[str] = msgspec.field(default_factory=list[str])

    def found(self, what: str, names: "list[str]") -> int:
        """Note something wrong; how often."""
        if names:
            self.wrong.append(f"{len(names)} {what}: {', '.join(names[:SHOWN_MAX])}")
        return len(names)

    def add(self, other: "Checked") -> None:
        """Sum up."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def check(
    data: Path,
    witness: Path,
    acks: Acks,
    *,
    marks_are_timed: bool = True,
    frozen: bool = False,
    witnessed: bool = True,
) -> Checked:
    """All checks. `marks_are_timed`: the witness went by the same clock as the server. `frozen`:
    processes stood still, so that their executions could not end before others began. `witnessed`:
    the targets leave marks.
    """
    checked = Checked(acked=acks.count)
    log = SqliteLog(data, readonly=True)
    try:
        _check_proofs(log, data, checked)
        ledger = _Ledger(log)
    finally:
        log.close()
    checked.starts = len(ledger.started)
    checked.successes = sum(ledger.succeeded.values())
    checked.stale_rejected = ledger.rejected_count
    _check_acks(ledger, acks, checked)
    if witnessed:
        seen = list(marks(witness))
        _check_witness(ledger, seen, checked, timed=marks_are_timed, frozen=frozen)
    return checked


def proven(data: Path) -> Checked:
    """Only what the folder proves by itself: its log may have lost what was acknowledged."""
    checked = Checked()
    log = SqliteLog(data, readonly=True)
    try:
        _check_proofs(log, data, checked)
    finally:
        log.close()
    return checked


def _check_proofs(log: SqliteLog, data: Path, checked: Checked) -> None:
    report = audit(log)
    checked.slots = report.slots_count
    checked.lost += report.unexplained_count
    checked.doubled += report.doubled_count
    checked.found("slots without an outcome", [str(one) for one in report.unexplained])
    checked.found("slots with two outcomes", [str(one) for one in report.doubled])
    checked.found("rules broken", [str(one) for one in report.violations])
    for partition in range(log.partitions):
        difference = verify(log, partition).difference
        checked.found("differences in the state", [difference] if difference else [])
    history = SqliteHistory(data / "history.db")
    try:
        with history.snapshot() as live:
            found = verify_history(log, live, MemoryHistory())
    finally:
        history.close()
    checked.found("differences in the history", [] if found is None else [str(found)])


class _Ledger:
    """What the events say, by run."""

    def __init__(self, log: SqliteLog) -> None:
        self.started: dict[tuple[str, int], int] = {}
        """Run and token -> when."""
        self.latest: dict[str, int] = {}
        self.requested = Counter[str]()
        self.succeeded = Counter[str]()
        self.success_tokens: set[tuple[str, int]] = set()
        self.stale_successes: list[str] = []
        self.edits = Counter[tuple[str, bytes]]()
        self.rejected_count = 0
        for event in events_of(log):
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case RunStarted():
                token = event.generation * GENERATION + event.seq
                self.started[event.run_id, token] = event.at_us
                self.latest[event.run_id] = token
            case RunSucceeded():
                self.succeeded[event.run_id] += 1
                self.success_tokens.add((event.run_id, event.token))
                if self.latest.get(event.run_id) != event.token:
                    self.stale_successes.append(f"{event.run_id} {event.token}")
            case RunRequested():
                self.requested[event.run_id] += 1
            case JobCreated() | JobUpdated():
                self.edits[event.job_id, event.definition.payload] += 1
            case ReportRejected():
                self.rejected_count += 1
            case _:
                pass


def _check_acks(ledger: _Ledger, acks: Acks, checked: Checked) -> None:
    runs = set(acks.runs.values())
    checked.lost += checked.found(
        "acknowledged triggers that are not in the log",
        [run for run in runs if not ledger.requested[run]],
    )
    checked.lost += checked.found(
        "acknowledged runs that did not succeed",
        [run for run in runs if not ledger.succeeded[run]],
    )
    checked.doubled += checked.found(
        "keys with more than one run", [run for run, n in ledger.requested.items() if n > 1]
    )
    checked.doubled += checked.found("keys with two answers", acks.disagreements)
    checked.doubled += checked.found(
        "runs that succeeded twice", [run for run, n in ledger.succeeded.items() if n > 1]
    )
    for job_id, number in sorted(acks.edits):
        times = ledger.edits[job_id, msgspec.json.encode({"n": number})]
        if times != 1:
            checked.found("acknowledged edits, times", [f"{job_id} {number}: {times}"])
            checked.lost += times == 0
            checked.doubled += times > 1


def _check_witness(
    ledger: _Ledger, seen: list[Mark], checked: Checked, *, timed: bool, frozen: bool
) -> None:
    begun = Counter((mark.run_id, mark.token) for mark in seen if mark.kind == "start")
    ended = {(mark.run_id, mark.token) for mark in seen if mark.kind == "end"}
    checked.doubled += checked.found(
        "tokens executed twice", [f"{run} {token}" for (run, token), n in begun.items() if n > 1]
    )
    checked.found(
        "executions without a grant",
        [f"{run} {token}" for run, token in begun if (run, token) not in ledger.started],
    )
    if timed:
        early = [
            f"{mark.run_id} {mark.token}"
            for mark in seen
            if mark.kind == "start"
            and mark.at_us < ledger.started.get((mark.run_id, mark.token), 0)
        ]
        checked.found("executions before their grant", early)
    checked.stale_accepted += checked.found("stale successes", ledger.stale_successes)
    checked.stale_accepted += checked.found(
        "successes whose target did not end",
        [f"{run} {token}" for run, token in ledger.success_tokens if (run, token) not in ended],
    )
    if not frozen:
        checked.doubled += checked.found("runs executed by two at once", list(_overlaps(seen)))


def _overlaps(seen: list[Mark]) -> Iterator[str]:
    """Runs of which an execution began while another one of the same process still went on, or
    had already been replaced. Executions of processes that were killed end unseen.
    """
    going: dict[str, dict[int, Mark]] = defaultdict(dict)
    alive: dict[int, int] = {}
    for mark in seen:
        alive[mark.pid] = mark.at_us
    for mark in seen:
        runs = going[mark.run_id]
        if mark.kind == "start":
            for other in runs.values():
                # The other process was heard of later: it was alive all the time.
                if alive[other.pid] > mark.at_us and other.token != mark.token:
                    yield f"{mark.run_id} {other.token} and {mark.token}"
            runs[mark.token] = mark
        else:
            runs.pop(mark.token, None)


def events_of(log: SqliteLog) -> Iterator[Event]:
    """All events."""
    for partition in range(log.partitions):
        for batch in log.read(partition, 0):
            yield from batch.events


def is_worked_off(data: Path) -> bool:
    """Whether what was due 5 s before the log's end has ended."""
    log = SqliteLog(data, readonly=True)
    last_us = 0
    waiting: dict[str, int] = {}
    try:
        for event in events_of(log):
            last_us = max(last_us, event.at_us)
            match event:
                case RunPlanned() | RunQueued() | RunRequested():
                    waiting[event.run_id] = slot_of(event.run_id) or 0
                case (
                    RunSucceeded()
                    | RunSkipped()
                    | RunRevoked()
                    | RunCancelled()
                    | RunDeadLettered()
                ):
                    waiting.pop(event.run_id, None)
                case AttemptEnded():
                    waiting[event.run_id] = event.at_us
                case _:
                    pass
    finally:
        log.close()
    return not any(due_us < last_us - 5_000_000 for due_us in waiting.values())
