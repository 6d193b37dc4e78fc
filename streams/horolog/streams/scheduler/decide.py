"""`decide`: an input against the state -> events to append and answers to give. Reads only.

    for step in decide(state, soft, command, now_us):
        if it is an event: stamp it, evolve(state, event), keep it for the batch
        else: keep it, to be sent after the commit

No I/O, no clock, no randomness: the same state, input and now give the same steps.
"""

from collections.abc import Iterator
from typing import assert_never

from horolog.schemas.records import (
    AdmissionAnswer,
    BackfillJob,
    CancelRun,
    ClaimRun,
    CompleteRun,
    CreateJob,
    DeleteJob,
    DiscardRun,
    DispatcherEpochRecorded,
    EpochSuperseded,
    Heartbeat,
    InventoryWanted,
    PauseJob,
    RedriveRun,
    ReleaseRun,
    RepairWanted,
    ResumeJob,
    TriggerJob,
    TzdataChanged,
    UpdateJob,
)
from horolog.streams.scheduler import decide_jobs, decide_leases, decide_runs, decide_slots
from horolog.streams.scheduler.decision import Step
from horolog.streams.scheduler.inputs import Input, LeaseCheck, Wake, ZonesSeen
from horolog.streams.scheduler.messages import Resend
from horolog.streams.scheduler.state import PartitionState, Soft


def decide(state: PartitionState, soft: Soft, item: Input, now_us: int) -> Iterator[Step]:
    """Steps of one input. `now_us`: microseconds UTC, never before the last event's `at_us`.

    The caller evolves each event before it takes the next step (`decision`).
    """
    match item:
        case ClaimRun():
            return decide_leases.claim(state, soft, item, now_us)
        case Heartbeat():
            return decide_leases.heartbeat(state, item)
        case CompleteRun():
            return decide_leases.complete(state, item, now_us)
        case ReleaseRun():
            return decide_leases.release(state, item, now_us)
        case LeaseCheck():
            return decide_leases.check_leases(state, soft, now_us)
        case Wake():
            job = state.jobs.get(item.job_id)
            return iter(()) if job is None else decide_slots.wake(state, job, now_us)
        case TriggerJob():
            return decide_runs.trigger(state, item, now_us)
        case AdmissionAnswer():
            return _admission(state, item, now_us)
        case CreateJob():
            return decide_jobs.create(state, item, now_us)
        case UpdateJob():
            return decide_jobs.update(state, item, now_us)
        case DeleteJob():
            return decide_jobs.delete(state, item, now_us)
        case PauseJob():
            return decide_jobs.pause(state, item, now_us)
        case ResumeJob():
            return decide_jobs.resume(state, item, now_us)
        case BackfillJob():
            return decide_runs.backfill(state, item, now_us)
        case CancelRun():
            return decide_runs.cancel(state, item, now_us)
        case RedriveRun():
            return decide_runs.redrive(state, item, now_us)
        case DiscardRun():
            return decide_runs.discard(state, item)
        case InventoryWanted():
            return _inventory(state, item)
        case RepairWanted():
            return _repair(state, item)
        case ZonesSeen():
            return _zones(state, item)
        case _:
            assert_never(item)


def _admission(state: PartitionState, answer: AdmissionAnswer, now_us: int) -> Iterator[Step]:
    if answer.epoch != state.dispatcher_epochs.get(answer.dispatcher, 0):
        # Answers of an older epoch no longer count; the newer asks again by itself.
        return iter(())
    if answer.run_id is None:
        return decide_jobs.admit(state, answer, now_us)
    return decide_runs.admit(state, answer, now_us)


def _inventory(state: PartitionState, wanted: InventoryWanted) -> Iterator[Step]:
    """Record a dispatcher's epoch and tell it all that is open; tell an older one to stop."""
    known = state.dispatcher_epochs.get(wanted.dispatcher, 0)
    if wanted.epoch < known:
        yield _superseded(state, wanted.dispatcher, known)
        return
    if wanted.epoch > known:
        yield DispatcherEpochRecorded(dispatcher=wanted.dispatcher, epoch=wanted.epoch)
    yield Resend(dispatcher=wanted.dispatcher, epoch=wanted.epoch)


def _repair(state: PartitionState, wanted: RepairWanted) -> Iterator[Step]:
    known = state.dispatcher_epochs.get(wanted.dispatcher, 0)
    if wanted.epoch == known and wanted.buckets:
        yield Resend(
            dispatcher=wanted.dispatcher, epoch=wanted.epoch, buckets=tuple(wanted.buckets)
        )
    elif wanted.epoch < known:
        yield _superseded(state, wanted.dispatcher, known)


def _superseded(state: PartitionState, dispatcher: int, epoch: int) -> EpochSuperseded:
    return EpochSuperseded(
        partition=state.partition,
        writer_epoch=state.writer_epoch,
        seq=state.seq,
        dispatcher=dispatcher,
        epoch=epoch,
    )


def _zones(state: PartitionState, seen: ZonesSeen) -> Iterator[Step]:
    """Record rules that are new to the partition. Planned slots stay: changed rules take effect
    later than the lookahead reaches.
    """
    latest = {rules.zone: rules.rules for rules in state.zone_rules}
    changed = tuple(rules for rules in seen.zones if latest.get(rules.zone) != rules.rules)
    if changed:
        yield TzdataChanged(version=seen.version, zones=changed)
