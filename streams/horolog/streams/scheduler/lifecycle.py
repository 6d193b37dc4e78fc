"""Life of a run: its states, and the events that move it, as data.

    pending   asked for by a trigger; the tenant's backlog limit has yet to admit it
    planned   its slot has a run; waits until it is due, may still be skipped or revoked
    queued    waits for a worker: let through by the overlap policy, between attempts, or redriven
    running   a worker holds the lease of an attempt
    dead      used up its attempts; waits for a person
    (end)     no longer in the state

Who moves it: commands (ask, cancel, redrive, discard), the passing of time (plan, queue, skip,
lost leases), workers' claims and reports (start, end of attempts), the dispatcher's answers
(admit, refuse). Ties are settled by the order in which the partition's owner reads its inputs: the
first event in the ledger wins, and what comes later finds no transition to take.

An attempt that ends without success always makes the run wait again; if nothing more is allowed,
the event that ends the run follows in the same batch.
"""

from typing import Final

from horolog.schemas.records import (
    AttemptEnded,
    CancelRequested,
    RunAdmitted,
    RunCancelled,
    RunDeadLettered,
    RunDiscarded,
    RunPlanned,
    RunQueued,
    RunRedriven,
    RunRefused,
    RunRequested,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunStatus,
    RunSucceeded,
)

RunEvent = (
    AttemptEnded
    | CancelRequested
    | RunAdmitted
    | RunCancelled
    | RunDeadLettered
    | RunDiscarded
    | RunPlanned
    | RunQueued
    | RunRedriven
    | RunRefused
    | RunRequested
    | RunRevoked
    | RunSkipped
    | RunStarted
    | RunSucceeded
)

BEGIN: Final = None
END: Final = None

TRANSITIONS: Final[dict[tuple[RunStatus | None, type[RunEvent]], RunStatus | None]] = {
    (BEGIN, RunRequested): RunStatus.PENDING,
    (BEGIN, RunPlanned): RunStatus.PLANNED,
    (RunStatus.PENDING, RunAdmitted): RunStatus.PLANNED,
    (RunStatus.PENDING, RunStarted): RunStatus.RUNNING,
    (RunStatus.PENDING, RunRefused): END,
    (RunStatus.PENDING, RunCancelled): END,
    (RunStatus.PLANNED, RunQueued): RunStatus.QUEUED,
    (RunStatus.PLANNED, RunStarted): RunStatus.RUNNING,
    (RunStatus.PLANNED, RunRevoked): END,
    (RunStatus.PLANNED, RunSkipped): END,
    (RunStatus.PLANNED, RunCancelled): END,
    (RunStatus.QUEUED, RunQueued): RunStatus.QUEUED,
    (RunStatus.QUEUED, RunStarted): RunStatus.RUNNING,
    (RunStatus.QUEUED, RunSkipped): END,
    (RunStatus.QUEUED, RunCancelled): END,
    (RunStatus.QUEUED, RunDeadLettered): RunStatus.DEAD,
    (RunStatus.RUNNING, CancelRequested): RunStatus.RUNNING,
    (RunStatus.RUNNING, AttemptEnded): RunStatus.QUEUED,
    (RunStatus.RUNNING, RunSucceeded): END,
    (RunStatus.DEAD, RunRedriven): RunStatus.QUEUED,
    (RunStatus.DEAD, RunDiscarded): END,
}


def next_status(status: RunStatus | None, event: RunEvent) -> RunStatus | None:
    """Where `event` takes a run; None = its end. An illegal move is our bug and crashes."""
    move = (status, type(event))
    assert move in TRANSITIONS, f"{event.run_id} is {status}: {event}"
    return TRANSITIONS[move]


def diagram() -> str:
    """The table as a Mermaid state diagram; the docs hold it, a test compares."""
    lines = ["stateDiagram-v2"]
    for (before, event), after in TRANSITIONS.items():
        start = before.value if before is not None else "[*]"
        end = after.value if after is not None else "[*]"
        lines.append(f"    {start} --> {end}: {event.__name__}")
    return "\n".join(lines) + "\n"
