"""What a command would do: decided for real, on a copy of its one job, and then thrown away.

The core is pure, so a dry run is no second set of rules that could drift from the first. What the
dispatcher decides (the limits of a tenant) is not asked.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import force_setattr

from horolog.schemas.records import Command, Event, Reply, RunRequested, ZoneRules
from horolog.streams.scheduler import PartitionState, Soft, decide, evolve, react
from horolog.streams.scheduler.evolve import HANDLERS
from horolog.streams.scheduler.inputs import ZonesSeen
from horolog.streams.scheduler.snapshot import (
    job_from,
    job_record,
    partition_from,
    partition_record,
    parts_of,
)


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What would be."""

    events: tuple[Event, ...]
    """As they would stand in the ledger, were nothing else decided before."""
    reply: Reply
    """The answer; its `seq` is 0, since nothing stands anywhere."""
    seq: int
    """State of the partition that it was decided on."""


def preview(
    state: PartitionState, command: Command, now_us: int, rules: Iterable[ZoneRules] = ()
) -> Preview:
    """Decide a command on a copy. `rules`: of a zone that the partition has not met yet."""
    scratch = _copy(state, command)
    now_us = max(now_us, state.at_us)
    replies: list[Reply] = []
    events: list[Event] = []
    met = tuple(rules)
    if met:
        replies += _drive(scratch, ZonesSeen(version=state.tzdata, zones=met), now_us, events)
        events.clear()
    replies += _drive(scratch, command, now_us, events)
    replies += [told for told in react(scratch, events) if isinstance(told, Reply)]
    mine = [reply for reply in replies if reply.command_id == command.command_id]
    reply = _untold(mine[0]) if mine else _asked(state, command, events)
    return Preview(events=tuple(events), reply=reply, seq=state.seq)


def _copy(state: PartitionState, command: Command) -> PartitionState:
    """The partition with the one job that the command means, which nothing shares."""
    scratch = partition_from(partition_record(state, state.seq))
    scratch.zones = state.zones
    job = state.jobs.get(command.job_id)
    if job is not None:
        parts = dict(parts_of(job, state.seq))
        scratch.jobs[command.job_id] = job_from(job_record(job, state.seq, tuple(parts)), parts)
    scratch.tenant_jobs = dict(state.tenant_jobs)
    return scratch


def _drive(
    scratch: PartitionState, item: Command | ZonesSeen, now_us: int, events: list[Event]
) -> list[Reply]:
    replies: list[Reply] = []
    for step in decide(scratch, Soft(), item, now_us):
        if isinstance(step, Reply):
            replies.append(step)
        elif type(step) in HANDLERS:
            event: Event = step  # type: ignore[assignment]  # its type is an event's
            force_setattr(event, "seq", scratch.seq + 1)
            force_setattr(event, "writer_epoch", scratch.writer_epoch)
            force_setattr(event, "at_us", max(now_us, scratch.at_us + 1))
            evolve(scratch, event)
            events.append(event)
    return replies


def _untold(reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, seq=0)


def _asked(state: PartitionState, command: Command, events: Iterable[Event]) -> Reply:
    """For what the dispatcher would be asked next."""
    run_id = next((event.run_id for event in events if isinstance(event, RunRequested)), None)
    return Reply(
        command_id=command.command_id,
        reply_to=command.reply_to,
        job_id=command.job_id,
        run_id=run_id,
        partition=state.partition,
        writer_epoch=state.writer_epoch,
        seq=0,
    )
