"""What a job remembers of what was asked and reported, so that a repeat gets the same answer."""

from horolog.schemas.records import (
    CancelRequested,
    CommandMemory,
    CursorStarted,
    JobCreated,
    JobDeleted,
    JobPaused,
    JobResumed,
    JobUpdated,
    RunCancelled,
    RunDiscarded,
    RunId,
    RunRedriven,
    RunRequested,
)
from horolog.streams.limits import (
    COMMANDS_REMEMBERED,
    ENDED_KEPT_US,
    ENDED_MAX,
    KEYS_KEPT_US,
)
from horolog.streams.scheduler.state import Job, Run

Commanded = (
    JobCreated
    | JobUpdated
    | JobPaused
    | JobResumed
    | JobDeleted
    | CursorStarted
    | RunRequested
    | CancelRequested
    | RunCancelled
    | RunRedriven
    | RunDiscarded
)


def remember(job: Job, event: Commanded, run_id: RunId | None = None) -> None:
    """Keep the answer to a command, for the last few commands of the job."""
    if not event.command_id:
        return
    job.commands = {
        **job.commands,
        event.command_id: CommandMemory(
            command_id=event.command_id, run_id=run_id, version=job.version, seq=event.seq
        ),
    }
    while len(job.commands) > COMMANDS_REMEMBERED:
        del job.commands[next(iter(job.commands))]


def remember_request(job: Job, run: Run, seq: int) -> None:
    """An asked-for run is admitted: from now on its command has an answer."""
    if run.requested_by and run.requested_by not in job.commands:
        job.commands = {
            **job.commands,
            run.requested_by: CommandMemory(
                command_id=run.requested_by, run_id=run.run_id, version=job.version, seq=seq
            ),
        }
        while len(job.commands) > COMMANDS_REMEMBERED:
            del job.commands[next(iter(job.commands))]


def remember_ended(job: Job, token: int, at_us: int) -> None:
    """Keep that a completion counted, to answer its repeats."""
    ended = job.ended
    while ended:
        # In order of time: a job of each second remembers hundreds and forgets one at a time.
        oldest = next(iter(ended))
        if len(ended) < ENDED_MAX and ended[oldest] + ENDED_KEPT_US > at_us:
            break
        del ended[oldest]
    ended[token] = at_us


def forget_keys(job: Job, now_us: int) -> None:
    """Drop the keys older than the idempotency window; they stand in order of asking."""
    while job.keys:
        oldest = next(iter(job.keys.values()))
        if oldest.at_us + KEYS_KEPT_US > now_us:
            return
        del job.keys[oldest.key]
