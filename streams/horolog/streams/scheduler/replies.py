"""Answers to commands: done, found again, refused."""

from horolog.schemas.errors import ErrorCode
from horolog.schemas.records import Command, JobId, Reply, RunId
from horolog.streams.scheduler.state import Job, PartitionState


def done(
    state: PartitionState,
    command: Command,
    *,
    run_id: RunId | None = None,
    version: int = 0,
    changed: bool = False,
) -> Reply:
    """The command has, or already had, its effect."""
    return Reply(
        command_id=command.command_id,
        reply_to=command.reply_to,
        job_id=command.job_id,
        run_id=run_id,
        version=version,
        changed=changed,
        partition=state.partition,
        writer_epoch=state.writer_epoch,
        seq=state.seq,
    )


def refused(
    state: PartitionState, command: Command, error: ErrorCode, detail: str, *, field: str = ""
) -> Reply:
    """The command changed nothing. `code`: slug of a user-visible error; `detail` names the value
    and what would be right.
    """
    return Reply(
        command_id=command.command_id,
        reply_to=command.reply_to,
        job_id=command.job_id,
        run_id=None,
        changed=False,
        code=error.slug,
        field=field,
        detail=detail,
        partition=state.partition,
        writer_epoch=state.writer_epoch,
        seq=state.seq,
    )


def remembered(state: PartitionState, job: Job | None, command: Command) -> Reply | None:
    """The answer to a command that was decided before, if the job remembers it. Asked before
    anything else: what was accepted stays so, though the job is another by now or was deleted.
    """
    memory = None if job is None else job.commands.get(command.command_id)
    if memory is None:
        return None
    return done(state, command, run_id=memory.run_id, version=memory.version, changed=True)


def of_event(
    state: PartitionState,
    *,
    command_id: str,
    reply_to: str,
    job_id: JobId,
    run_id: RunId | None = None,
    version: int = 0,
    code: str = "",
    detail: str = "",
) -> Reply:
    """The answer that an event implies."""
    return Reply(
        command_id=command_id,
        reply_to=reply_to,
        job_id=job_id,
        run_id=run_id,
        version=version,
        changed=not code,
        code=code,
        detail=detail,
        partition=state.partition,
        writer_epoch=state.writer_epoch,
        seq=state.seq,
    )
