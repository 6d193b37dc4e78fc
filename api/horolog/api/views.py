"""Rows of the history as the API shows them: camelCase, instants as ISO 8601 in UTC."""

import base64
from collections.abc import Iterable

from horolog.api.answers import AttemptAnswer, OutputFields, RunAnswer, SlotAnswer
from horolog.api.definitions import spec_of
from horolog.api.json_values import Json
from horolog.api.values import instant_text
from horolog.projections.rows import (
    AttemptRow,
    JobRow,
    RunRow,
    SlotRow,
    VersionRow,
    definition_of,
)
from horolog.schemas.ids import name_of, tenant_of
from horolog.schemas.records import JobDefinition, JobId


def at(instant_us: int | None) -> str | None:
    """An instant as text, if there is one."""
    return None if instant_us is None else instant_text(instant_us)


def job_of(row: JobRow) -> dict[str, Json]:
    """A job as it is now."""
    return {
        **job_head(row.job_id, row.status, row.version),
        "createdAt": at(row.created_us),
        "updatedAt": at(row.updated_us),
        "updatedBy": row.updated_by,
        "pausedUntil": at(row.paused_until_us),
        "pauseReason": row.pause_reason,
        **spec_of(definition_of(row.definition)),
    }


def job_head(job_id: JobId, status: str, version: int) -> dict[str, Json]:
    """What names a job."""
    return {
        "id": job_id,
        "tenant": tenant_of(job_id),
        "name": name_of(job_id),
        "status": status,
        "version": version,
    }


def written_job(
    job_id: JobId, version: int, definition: JobDefinition, slots: Iterable[int]
) -> dict[str, Json]:
    """A job right after it was written, with its next slots."""
    return {
        **job_head(job_id, "active", version),
        **spec_of(definition),
        "next": [instant_text(slot_us) for slot_us in slots],
    }


def version_of(row: VersionRow) -> dict[str, Json]:
    """One version of a definition."""
    return {
        "version": row.version,
        "at": at(row.at_us),
        "by": row.principal,
        "change": row.change,
        "definition": spec_of(definition_of(row.definition)),
    }


def run_of(row: RunRow) -> RunAnswer:
    """A run as it is now."""
    return {
        "runId": row.run_id,
        "jobId": row.job_id,
        "slot": at(row.slot_us),
        "at": at(row.at_us),
        "dueAt": at(row.due_us),
        "origin": row.origin,
        "status": row.status,
        "priority": row.tier,
        "pool": row.pool,
        "version": row.version,
        "attempt": row.attempt,
        "round": row.round,
        "startedAt": at(row.started_us),
        "endedAt": at(row.ended_us),
        "retryAt": at(row.retry_at_us),
        "workerId": row.worker_id,
        "exitCode": row.exit_code,
        "error": row.error,
        "reason": row.reason,
        "coalescedInto": row.into,
        "warning": row.warning,
        "cancelReason": row.cancel_reason,
        **output_of(row.output),
    }


def attempt_of(row: AttemptRow) -> AttemptAnswer:
    """One attempt."""
    return {
        "attempt": row.attempt,
        "round": row.round,
        "fencingToken": row.token,
        "workerId": row.worker_id,
        "startedAt": at(row.started_us),
        "endedAt": at(row.ended_us),
        "outcome": row.outcome,
        "exitCode": row.exit_code,
        "error": row.error,
        "retryAt": at(row.retry_at_us),
    }


def output_of(output: bytes) -> OutputFields:
    """The result of a run: as text if it is text, else in base64."""
    try:
        return {"output": output.decode()}
    except UnicodeDecodeError:
        return {"outputBase64": base64.b64encode(output).decode()}


def slot_of(row: SlotRow) -> SlotAnswer:
    """What became of a slot or of a range of slots."""
    shown: SlotAnswer = {
        "slot": at(row.to_us),
        "slots": row.slots_count,
        "outcome": row.outcome,
        "reason": row.reason,
        "runId": row.run_id,
        "coalescedInto": row.into,
    }
    if row.slots_count != 1 or row.after_us != row.to_us:
        shown["after"], shown["to"] = at(row.after_us), at(row.to_us)
    return shown
