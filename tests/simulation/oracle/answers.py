"""Rules of answers: what clients were told against what the ledger holds.

committed    an answer leaves after the event it speaks of was committed
same         a repeated command that changed something gets the same answer
kept         an accepted command's effect is in the ledger
answered     a command sent when all is well is answered
"""

from collections.abc import Iterator
from typing import Final

from horolog.schemas.records import (
    CreateJob,
    JobCreated,
    JobId,
    RunId,
    RunRequested,
    TriggerJob,
)
from horolog.streams.limits import COMMANDS_REMEMBERED
from tests.simulation.oracle.observation import Ack, Observation, Violation

SOON_US: Final = 30_000_000


def check(seen: Observation) -> Iterator[Violation]:
    """See the module."""
    committed_us: dict[tuple[int, int], int] = {}
    requested: dict[tuple[JobId, str], RunId] = {}
    created: set[JobId] = set()
    for told in seen.events:
        event = told.event
        committed_us[told.partition, event.seq] = told.us
        if isinstance(event, RunRequested):
            requested[event.job_id, event.key] = event.run_id
        elif isinstance(event, JobCreated):
            created.add(event.job_id)
    first: dict[str, Ack] = {}
    # In the order in which they were decided: an answer may overtake another on its way.
    for ack in sorted(seen.acks, key=lambda each: each.reply.seq):
        us = committed_us.get((ack.reply.partition, ack.reply.seq))
        if us is None or us > ack.at_us:
            yield _wrong("committed", ack, f"speaks of seq {ack.reply.seq}, not committed by then")
        before = first.setdefault(ack.command.command_id, ack)
        if not before.reply.changed:
            # What changed nothing has no effect to be remembered by, and may be decided otherwise.
            first[ack.command.command_id] = ack
        elif _says(before) != _says(ack) and not _is_long_ago(before, ack, seen):
            yield _wrong("same", ack, f"was answered {_says(before)} before, now {_says(ack)}")
        if not ack.reply.code:
            yield from _check_kept(ack, requested, created)
    for sent_us, command in seen.sent:
        is_well = sent_us > seen.healed_us - SOON_US and sent_us < seen.end_us - SOON_US
        if is_well and command.command_id not in first:
            yield Violation("answered", f"{command.command_id} of {command.job_id} never was")


def _says(ack: Ack) -> tuple[str, RunId | None]:
    return ack.reply.code, ack.reply.run_id


def _is_long_ago(before: Ack, ack: Ack, seen: Observation) -> bool:
    """Whether the job may have forgotten the command: it remembers the last twenty."""
    between = {
        other.command.command_id
        for other in seen.acks
        if other.command.job_id == ack.command.job_id
        and before.reply.seq < other.reply.seq <= ack.reply.seq
    }
    return len(between) >= COMMANDS_REMEMBERED // 2


def _check_kept(
    ack: Ack, requested: dict[tuple[JobId, str], RunId], created: set[JobId]
) -> Iterator[Violation]:
    command = ack.command
    if isinstance(command, TriggerJob):
        run_id = requested.get((command.job_id, command.key))
        if run_id is None or run_id != ack.reply.run_id:
            yield _wrong("kept", ack, f"says {ack.reply.run_id}, the ledger has {run_id}")
    elif isinstance(command, CreateJob) and command.job_id not in created:
        yield _wrong("kept", ack, "was accepted, and no such job was created")


def _wrong(rule: str, ack: Ack, what: str) -> Violation:
    return Violation(rule, f"{ack.command.command_id} of {ack.command.job_id}: {what}")
