"""State as records and back: the snapshots of jobs, and the canonical form for digests.

One job is several records: the job itself, with its open runs while they are few and small, else
each open run, and its keys by hour; the job's record names the parts that count, so a part left
over from an older snapshot does no harm.
"""

from collections.abc import Iterator, Mapping

from horolog.schemas.records import (
    DefinitionVersion,
    EndedToken,
    JobId,
    JobSnapshot,
    JobStatus,
    KeysSnapshot,
    PartitionSnapshot,
    RunSnapshot,
)
from horolog.streams.limits import HOUR_US
from horolog.streams.scheduler.evolve import with_rules
from horolog.streams.scheduler.state import Job, Lease, PartitionState, Run

PARTITION_KEY = "partition"
RUNS_WITHIN_MAX = 16

SnapshotRecord = JobSnapshot | RunSnapshot | KeysSnapshot | PartitionSnapshot


def job_key(job_id: JobId) -> str:
    """Key of a job's own record."""
    return f"job/{job_id}"


def holds_runs(job: Job) -> bool:
    """Whether a job's own record has room for all its open runs.

    Cost: with a record each, a job that recurs each second is a dozen rows in as many places of
    the file instead of one.
    """
    return len(job.runs) <= RUNS_WITHIN_MAX and all(
        run.payload is None for run in job.runs.values()
    )


def runs_of(job: Job, seq: int) -> tuple[RunSnapshot, ...]:
    """The open runs of a job, in their order."""
    return tuple(_run_record(job.job_id, run, seq) for run in job.runs.values())


def parts_of(
    job: Job, seq: int, *, with_runs: bool = True
) -> Iterator[tuple[str, RunSnapshot | KeysSnapshot]]:
    """The open runs and the remembered keys of a job, by the key of their record."""
    if with_runs:
        for record in runs_of(job, seq):
            yield f"run/{record.run_id}", record
    hours: dict[int, list[str]] = {}
    for key, remembered in job.keys.items():
        hours.setdefault(remembered.at_us // HOUR_US, []).append(key)
    for hour, keys in hours.items():
        yield (
            f"keys/{job.job_id}/{hour}",
            KeysSnapshot(
                job_id=job.job_id,
                seq=seq,
                hour=hour,
                keys=tuple(job.keys[key] for key in keys),
            ),
        )


def job_record(
    job: Job, seq: int, parts: tuple[str, ...], runs: tuple[RunSnapshot, ...] = ()
) -> JobSnapshot:
    """A job as of `seq`, without its parts; `runs`: all its open runs, if no part holds one."""
    return JobSnapshot(
        job_id=job.job_id,
        seq=seq,
        status=job.status,
        version=job.version,
        definition=job.definition,
        kept=tuple(
            DefinitionVersion(version=version, definition=definition)
            for version, definition in job.kept.items()
        ),
        created_us=job.created_us,
        accounted_to_us=job.accounted_to_us,
        planned_to_us=job.planned_to_us,
        paused_until_us=job.paused_until_us,
        deleted_us=job.deleted_us,
        trigger_tokens_milli=job.trigger_tokens_milli,
        trigger_at_us=job.trigger_at_us,
        cursors=tuple(job.cursors.values()),
        cursor_next=job.cursor_next,
        skipped=tuple(job.skipped),
        commands=tuple(job.commands.values()),
        ended=tuple(EndedToken(token=token, at_us=at_us) for token, at_us in job.ended.items()),
        rejected=tuple(job.rejected),
        requested_by=job.requested_by,
        reply_to=job.reply_to,
        principal=job.principal,
        parts=parts,
        runs=runs,
    )


def tombstone(job_id: JobId, seq: int) -> JobSnapshot:
    """A job that is forgotten: its events up to `seq` are not to be applied."""
    return JobSnapshot(
        job_id=job_id, seq=seq, status=JobStatus.UNSPECIFIED, version=0, definition=None
    )


def job_from(record: JobSnapshot, parts: Mapping[str, RunSnapshot | KeysSnapshot]) -> Job:
    """The job that `job_record` and `parts_of` were made of."""
    job = Job(
        job_id=record.job_id,
        status=record.status,
        definition=record.definition,
        version=record.version,
        kept={kept.version: kept.definition for kept in record.kept},
        created_us=record.created_us,
        accounted_to_us=record.accounted_to_us,
        planned_to_us=record.planned_to_us,
        paused_until_us=record.paused_until_us,
        deleted_us=record.deleted_us,
        trigger_tokens_milli=record.trigger_tokens_milli,
        trigger_at_us=record.trigger_at_us,
        cursors={cursor.cursor_id: cursor for cursor in record.cursors},
        cursor_next=record.cursor_next,
        skipped=list(record.skipped),
        commands={memory.command_id: memory for memory in record.commands},
        ended={ended.token: ended.at_us for ended in record.ended},
        rejected=list(record.rejected),
        requested_by=record.requested_by,
        reply_to=record.reply_to,
        principal=record.principal,
    )
    job.runs.update((within.run_id, _run_from(within)) for within in record.runs)
    for name in record.parts:
        part = parts[name]
        if isinstance(part, RunSnapshot):
            job.runs[part.run_id] = _run_from(part)
        else:
            job.keys.update((key.key, key) for key in part.keys)
    return job


def partition_record(state: PartitionState, covered_seq: int) -> PartitionSnapshot:
    """What belongs to no job, and the `seq` up to which every job's snapshot reaches."""
    return PartitionSnapshot(
        partition=state.partition,
        seq=state.seq,
        covered_seq=covered_seq,
        log_id=state.log_id,
        generation=state.generation,
        partitions=state.partitions,
        writer_epoch=state.writer_epoch,
        at_us=state.at_us,
        lease_time_us=state.lease_time_us,
        positions=dict(state.positions),
        dispatcher_epochs={
            str(dispatcher): epoch for dispatcher, epoch in state.dispatcher_epochs.items()
        },
        tzdata=state.tzdata,
        zones=tuple(state.zone_rules),
    )


def partition_from(record: PartitionSnapshot) -> PartitionState:
    """A partition's state without its jobs, as of the record's own `seq`."""
    state = PartitionState(record.partition)
    state.partitions = record.partitions
    state.log_id = record.log_id
    state.generation = record.generation
    state.seq = record.seq
    state.at_us = record.at_us
    state.writer_epoch = record.writer_epoch
    state.lease_time_us = record.lease_time_us
    state.positions = dict(record.positions)
    state.dispatcher_epochs = {
        int(dispatcher): epoch for dispatcher, epoch in record.dispatcher_epochs.items()
    }
    state.tzdata = record.tzdata
    state.zone_rules = list(record.zones)
    state.zones = with_rules(
        state.zones, state.zone_rules, {rules.zone for rules in state.zone_rules}
    )
    return state


def canonical(state: PartitionState) -> Iterator[tuple[str, SnapshotRecord]]:
    """The whole folded state as records in a fixed order: equal states give equal records, byte
    for byte once encoded (invariant 6).
    """
    yield PARTITION_KEY, partition_record(state, state.seq)
    for job_id in sorted(state.jobs):
        job = state.jobs[job_id]
        parts = dict(parts_of(job, 0))
        yield job_key(job_id), job_record(job, 0, tuple(parts))
        yield from parts.items()


def _run_record(job_id: JobId, run: Run, seq: int) -> RunSnapshot:
    lease = run.lease or _NO_LEASE
    return RunSnapshot(
        job_id=job_id,
        seq=seq,
        run_id=run.run_id,
        status=run.status,
        origin=run.origin,
        slot_us=run.slot_us,
        due_us=run.due_us,
        plan=run.plan,
        not_before_us=run.not_before_us,
        tier=run.tier,
        pool=run.pool,
        held=run.held,
        gated=run.gated,
        attempt=run.attempt,
        round=run.round,
        failures=run.failures,
        losses=run.losses,
        version=run.version,
        key=run.key,
        payload=run.payload,
        token=lease.token,
        worker_id=lease.worker_id,
        inbox=lease.inbox,
        claim_id=lease.claim_id,
        term_us=lease.term_us,
        lease_time_us=lease.granted_us,
        cancel_asked=run.cancel_asked,
        cancel_reason=run.cancel_reason,
        dead_us=run.dead_us,
        requested_by=run.requested_by,
        reply_to=run.reply_to,
    )


_NO_LEASE = Lease(token=0, worker_id="", inbox="", claim_id="", term_us=0, granted_us=0)


def _run_from(part: RunSnapshot) -> Run:
    lease = None
    if part.token:
        lease = Lease(
            token=part.token,
            worker_id=part.worker_id,
            inbox=part.inbox,
            claim_id=part.claim_id,
            term_us=part.term_us,
            granted_us=part.lease_time_us,
        )
    return Run(
        run_id=part.run_id,
        origin=part.origin,
        status=part.status,
        due_us=part.due_us,
        plan=part.plan,
        tier=part.tier,
        pool=part.pool,
        not_before_us=part.not_before_us,
        slot_us=part.slot_us,
        held=part.held,
        gated=part.gated,
        attempt=part.attempt,
        round=part.round,
        failures=part.failures,
        losses=part.losses,
        version=part.version,
        lease=lease,
        cancel_asked=part.cancel_asked,
        cancel_reason=part.cancel_reason,
        dead_us=part.dead_us,
        key=part.key,
        payload=part.payload,
        requested_by=part.requested_by,
        reply_to=part.reply_to,
    )
