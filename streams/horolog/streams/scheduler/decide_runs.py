"""Commands on runs: trigger, backfill, cancel, redrive, discard; the answer to a run asked for."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from horolog.schemas import errors
from horolog.schemas.ids import run_id_of_key
from horolog.schemas.records import (
    AdmissionAnswer,
    BackfillJob,
    CancelRequested,
    CancelRun,
    CursorStarted,
    DiscardRun,
    RedriveRun,
    RunAdmitted,
    RunCancelled,
    RunDiscarded,
    RunOrigin,
    RunRedriven,
    RunRefused,
    RunRequested,
    RunStatus,
    TriggerJob,
)
from horolog.streams.limits import (
    CURSORS_MAX,
    KEYS_KEPT_US,
    KEYS_MAX,
    OPEN_RUNS_MAX,
    PAYLOAD_BYTES_MAX,
    SECOND_US,
    TRIGGERS_BURST,
    TRIGGERS_PER_S,
)
from horolog.streams.scheduler import decide_slots, replies
from horolog.streams.scheduler.decision import Step
from horolog.streams.scheduler.state import Job, PartitionState, Run

KEY_CHARS_MAX = 256
MILLI = 1_000


def trigger(state: PartitionState, command: TriggerJob, now_us: int) -> Iterator[Step]:
    """Ask for a manual run. The same key names the same run; with another payload it is refused."""
    job = state.jobs.get(command.job_id)
    again = replies.remembered(state, job, command)
    if again is not None:
        yield again
        return
    if job is None or not job.exists:
        yield replies.refused(
            state, command, errors.UNKNOWN_JOB, f"there is no job {command.job_id}"
        )
        return
    if not 0 < len(command.key) <= KEY_CHARS_MAX:
        yield replies.refused(
            state,
            command,
            errors.INVALID_FIELD,
            f"key has {len(command.key)} characters, from 1 to {KEY_CHARS_MAX} are right",
            field="/key",
        )
        return
    digest = payload_digest(command.payload)
    remembered = job.keys.get(command.key)
    if remembered is not None and remembered.at_us + KEYS_KEPT_US > now_us:
        yield from _attach(state, job, command, digest)
        return
    refusal = _refusal(state, job, command, now_us)
    if refusal is not None:
        yield refusal
        return
    definition = job.in_force
    yield RunRequested(
        job_id=job.job_id,
        run_id=run_id_of_key(job.job_id, command.key),
        key=command.key,
        payload=command.payload,
        payload_digest=digest,
        slot_us=command.slot_us,
        tier=definition.priority,
        pool=definition.pool,
        command_id=command.command_id,
        reply_to=command.reply_to,
        principal=command.principal,
    )


def payload_digest(payload: bytes | None) -> bytes:
    """What tells two payloads of one key apart: 128 bits of SHA-256; empty for the job's own."""
    return b"" if payload is None else hashlib.sha256(payload).digest()[:16]


def _attach(state: PartitionState, job: Job, command: TriggerJob, digest: bytes) -> Iterator[Step]:
    remembered = job.keys[command.key]
    if remembered.payload_digest != digest:
        yield replies.refused(
            state,
            command,
            errors.KEY_REUSED,
            f"key {command.key!r} named {remembered.run_id} with another payload; "
            "take a new key for another run",
            field="/key",
        )
        return
    run = job.runs.get(remembered.run_id)
    if run is not None and run.status is RunStatus.PENDING:
        # Not decided yet: the sender repeats the command until it is answered.
        return
    yield replies.done(state, command, run_id=remembered.run_id, version=job.version)


def _refusal(state: PartitionState, job: Job, command: TriggerJob, now_us: int) -> Step | None:
    if command.payload is not None and len(command.payload) > PAYLOAD_BYTES_MAX:
        return replies.refused(
            state,
            command,
            errors.TOO_LARGE,
            f"payload has {len(command.payload)} bytes, at most {PAYLOAD_BYTES_MAX} are right",
            field="/payload",
        )
    run_id = run_id_of_key(job.job_id, command.key)
    if run_id in job.runs:
        # Its key is older than the idempotency window, yet the run is still open.
        return replies.refused(
            state,
            command,
            errors.KEY_REUSED,
            f"{run_id} is still open; take a new key",
            field="/key",
        )
    if len(job.runs) >= OPEN_RUNS_MAX:
        return replies.refused(
            state, command, errors.LIMIT, f"{job.job_id} has {OPEN_RUNS_MAX} open runs, the most"
        )
    if len(job.keys) >= KEYS_MAX:
        return replies.refused(
            state, command, errors.LIMIT, f"{job.job_id} has {KEYS_MAX} remembered keys, the most"
        )
    if trigger_tokens_milli(job, now_us) < MILLI:
        return replies.refused(
            state,
            command,
            errors.RATE_LIMITED,
            f"{job.job_id} takes {TRIGGERS_PER_S} triggers a second and {TRIGGERS_BURST} at once",
        )
    return None


def trigger_tokens_milli(job: Job, now_us: int) -> int:
    """Thousandths of triggers in the job's bucket at `now_us`."""
    elapsed_us = max(now_us - job.trigger_at_us, 0)
    gained = elapsed_us * TRIGGERS_PER_S * MILLI // SECOND_US
    return min(job.trigger_tokens_milli + gained, TRIGGERS_BURST * MILLI)


def admit(state: PartitionState, answer: AdmissionAnswer, now_us: int) -> Iterator[Step]:
    """The tenant's backlog limit has decided over a run that was asked for."""
    assert answer.run_id is not None
    job = state.jobs.get(answer.job_id)
    run = None if job is None else job.runs.get(answer.run_id)
    if job is None or run is None or run.status is not RunStatus.PENDING:
        return
    if answer.admitted:
        yield RunAdmitted(job_id=job.job_id, run_id=run.run_id)
        if run.gated:
            yield from decide_slots.judge(job, now_us)
    else:
        yield RunRefused(
            job_id=job.job_id,
            run_id=run.run_id,
            code=answer.code,
            detail=answer.detail,
            command_id=run.requested_by,
            reply_to=run.reply_to,
        )


def backfill(state: PartitionState, command: BackfillJob, now_us: int) -> Iterator[Step]:
    """Turn the skipped and the never planned slots of a past range into runs. Slots that had a run
    stay as they are.
    """
    job = state.jobs.get(command.job_id)
    again = replies.remembered(state, job, command)
    if again is not None:
        yield again
        return
    if job is None or not job.exists:
        yield replies.refused(
            state, command, errors.UNKNOWN_JOB, f"there is no job {command.job_id}"
        )
        return
    if not 0 <= command.from_us < command.to_us <= now_us:
        yield replies.refused(
            state,
            command,
            errors.INVALID_FIELD,
            "from is inclusive, to exclusive, from before to, and to not in the future",
            field="/to",
        )
        return
    yield from decide_slots.settle(state, job, now_us)
    ranges = [
        (max(past.after_us, command.from_us - 1), min(past.to_us, command.to_us - 1))
        for past in job.skipped
    ]
    ranges = [(after_us, to_us) for after_us, to_us in ranges if after_us < to_us]
    if not ranges:
        yield replies.done(state, command, version=job.version)
        return
    if len(job.cursors) + len(ranges) > CURSORS_MAX:
        yield replies.refused(
            state,
            command,
            errors.LIMIT,
            f"the range holds {len(ranges)} skipped ranges and {len(job.cursors)} are being made "
            f"up; at most {CURSORS_MAX} at the same time",
        )
        return
    for after_us, to_us in ranges:
        last = (after_us, to_us) == ranges[-1]
        yield CursorStarted(
            job_id=job.job_id,
            cursor_id=job.cursor_next,
            origin=RunOrigin.BACKFILL,
            after_us=after_us,
            to_us=to_us,
            tier=command.tier,
            command_id=command.command_id if last else "",
            reply_to=command.reply_to if last else "",
            principal=command.principal,
        )
    yield from decide_slots.proceed(state, job, now_us)


def cancel(state: PartitionState, command: CancelRun, now_us: int) -> Iterator[Step]:
    """Ask that a run ends: at once if no attempt is open, else the worker is told."""
    found = _open_run(state, command)
    if not isinstance(found, _OpenRun):
        yield found
        return
    job, run = found
    if run.status is RunStatus.DEAD:
        yield replies.refused(
            state, command, errors.RUN_ENDED, f"{run.run_id} is dead; redrive or discard it"
        )
    elif run.lease is None:
        yield RunCancelled(
            job_id=job.job_id,
            run_id=run.run_id,
            reason=command.reason,
            command_id=command.command_id,
            reply_to=command.reply_to,
            principal=command.principal,
        )
        yield from decide_slots.proceed(state, job, now_us)
    elif run.cancel_asked:
        yield replies.done(state, command, run_id=run.run_id)
    else:
        yield CancelRequested(
            job_id=job.job_id,
            run_id=run.run_id,
            token=run.lease.token,
            reason=command.reason,
            command_id=command.command_id,
            reply_to=command.reply_to,
            principal=command.principal,
        )


def redrive(state: PartitionState, command: RedriveRun, now_us: int) -> Iterator[Step]:
    """Start a dead run again in a new round, by the definition in force now. One that was redriven
    already and is open again is left as it is: two clicks are one round.
    """
    found = _open_run(state, command)
    if not isinstance(found, _OpenRun):
        yield found
        return
    job, run = found
    if run.status is not RunStatus.DEAD:
        yield replies.done(state, command, run_id=run.run_id)
        return
    if not job.exists:
        yield replies.refused(state, command, errors.UNKNOWN_JOB, f"{job.job_id} was deleted")
        return
    yield RunRedriven(
        job_id=job.job_id,
        run_id=run.run_id,
        round=run.round + 1,
        command_id=command.command_id,
        reply_to=command.reply_to,
        principal=command.principal,
    )
    yield from decide_slots.proceed(state, job, now_us)


def discard(state: PartitionState, command: DiscardRun) -> Iterator[Step]:
    """Give a dead run up."""
    found = _open_run(state, command)
    if not isinstance(found, _OpenRun):
        yield found
        return
    job, run = found
    if run.status is not RunStatus.DEAD:
        yield replies.refused(
            state, command, errors.RUN_NOT_DEAD, f"{run.run_id} is {run.status.value}, not dead"
        )
        return
    yield RunDiscarded(
        job_id=job.job_id,
        run_id=run.run_id,
        command_id=command.command_id,
        reply_to=command.reply_to,
        principal=command.principal,
    )


class _OpenRun(NamedTuple):
    job: Job
    run: Run


def _open_run(
    state: PartitionState, command: CancelRun | RedriveRun | DiscardRun
) -> _OpenRun | Step:
    """The run a command means, or the answer to give instead."""
    job = state.jobs.get(command.job_id)
    again = replies.remembered(state, job, command)
    if again is not None:
        return again
    run = None if job is None else job.runs.get(command.run_id)
    if job is not None and run is not None:
        return _OpenRun(job, run)
    return replies.refused(
        state, command, errors.RUN_ENDED, f"there is no open run {command.run_id}"
    )
