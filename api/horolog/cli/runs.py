"""Commands on runs."""

import sys
import threading
from typing import Final

from horolog.cli.client import Object
from horolog.cli.exits import Exit, Stop
from horolog.cli.jobs import as_list, confirm
from horolog.cli.output import Column
from horolog.cli.session import Session

_COLUMNS: Final = (
    Column("RUN"),
    Column("STATUS"),
    Column("ATTEMPT"),
    Column("STARTED"),
    Column("ENDED"),
    Column("REASON"),
    Column("WORKER", wide=True),
)
WATCHED: Final = 50
WATCH_EVERY_S: Final = 0.5
_FAILED: Final = ("dead", "cancelled", "skipped", "refused", "discarded")


def index(session: Session, name: str, statuses: list[str], since: str | None, limit: int) -> None:
    """List the runs of a job, newest first."""
    params: dict[str, str] = {}
    if statuses:
        params["status"] = ",".join(statuses)
    if since:
        params["from"] = since
    path = f"/v1/jobs/{session.job_id(name)}/runs"
    _print(session, list(session.client.pages(path, params, limit)), "no runs yet")


def watch(session: Session, name: str, statuses: list[str], since: str | None) -> None:
    """The newest runs, oldest first, then each whenever it changes, until Ctrl-C. A line a change,
    so that it can be piped.
    """
    params = {"status": ",".join(statuses)} if statuses else {}
    if since:
        params["from"] = since
    path = f"/v1/jobs/{session.job_id(name)}/runs"
    shown: dict[str, Object] = {}
    rest = threading.Event()
    try:
        while True:
            page = list(session.client.pages(path, params, WATCHED))
            for run in reversed(page):
                if shown.get(str(run["runId"])) != run:
                    session.out.change(run, _cells(run))
            shown = {str(run["runId"]): run for run in page}
            rest.wait(WATCH_EVERY_S)
    except KeyboardInterrupt:
        return


def _cells(run: Object) -> list[str]:
    return [
        str(run["runId"]),
        str(run["status"]),
        str(run["attempt"]),
        str(run["startedAt"] or "-"),
        str(run["endedAt"] or "-"),
        str(run["reason"] or run["error"] or ""),
        str(run["workerId"] or ""),
    ]


def _print(session: Session, items: list[Object], empty: str) -> None:
    cells = [_cells(run) for run in items]
    session.out.rows(items, _COLUMNS, cells, empty=empty, name="runId")


def show(session: Session, run_id: str, as_of: str | None = None) -> None:
    """Show a run with its attempts, as it is or as it was at an instant."""
    _, run_id = session.run_or_job(run_id)
    params = None if as_of is None else {"asOf": as_of}
    run = session.client.get(f"/v1/runs/{run_id}", params).object
    lines = [
        (key, str(value))
        for key, value in run.items()
        if value not in (None, "") and key != "attempts"
    ]
    for attempt in as_list(run["attempts"]):
        assert isinstance(attempt, dict)
        text = f"{attempt['outcome']} {attempt['startedAt']} .. {attempt['endedAt'] or ''}"
        text += f" on {attempt['workerId']} token {attempt['fencingToken']} {attempt['error']}"
        lines.append((f"attempt {attempt['round']}/{attempt['attempt']}", text.rstrip()))
    session.out.item(run, lines)


def logs(session: Session, name: str, attempt: int | None, *, follow_it: bool) -> None:
    """What a run, or the last run of a job, printed."""
    job_id, run_id = session.run_or_job(name)
    if job_id is not None:
        run_id = last_run(session, job_id)
    params: dict[str, str] = {}
    if attempt is not None:
        params["attempt"] = str(attempt)
    if follow_it:
        params["follow"] = "true"
    for data in session.client.stream(f"/v1/runs/{run_id}/logs", params):
        _write(data)


def last_run(session: Session, job_id: str) -> str:
    """The newest run of a job that has begun."""
    statuses = "running,succeeded,dead,cancelled,queued"
    params = {"status": statuses, "limit": "1"}
    items = as_list(session.client.get(f"/v1/jobs/{job_id}/runs", params).object["items"])
    if not items or not isinstance(items[0], dict):
        raise Stop(
            Exit.NOT_FOUND,
            f"{job_id} has not run yet",
            hint=f"see when it will with `horolog next {job_id}`",
        )
    return str(items[0]["runId"])


def follow(session: Session, run_id: str, *, show: bool) -> None:
    """Wait for the end of a run, with its output if it is wanted."""
    for data in session.client.stream(f"/v1/runs/{run_id}/logs", {"follow": "true"}):
        if show:
            _write(data)


def end_with(session: Session, run_id: str) -> None:
    """Say how a run ended; exit 1 if it did not succeed."""
    run = session.client.get(f"/v1/runs/{run_id}").object
    status = str(run["status"])
    if status in _FAILED:
        why = run["error"] or run["reason"]
        raise Stop(
            Exit.FAILED, f"{run_id} {status}: {why}", hint=f"see it with `horolog run {run_id}`"
        )
    session.out.note(f"{run_id} {status}")


def cancel(session: Session, run_id: str, reason: str) -> None:
    """Ask that a run ends."""
    _, run_id = session.run_or_job(run_id)
    session.client.post(f"/v1/runs/{run_id}:cancel", {"reason": reason})
    session.out.line(f"{run_id} is asked to stop")
    session.out.note(f"next: horolog run {run_id}")


def retry(session: Session, run_id: str) -> None:
    """Start a dead run again."""
    _, run_id = session.run_or_job(run_id)
    session.client.post(f"/v1/runs/{run_id}:retry")
    session.out.line(f"{run_id} starts again")
    session.out.note(f"next: horolog logs {run_id} -f")


def dead(session: Session, limit: int) -> None:
    """List dead letters."""
    items = list(session.client.pages("/v1/dead-letters", {}, limit))
    _print(session, items, "no dead letters")


def dead_do(session: Session, verb: str, run_ids: list[str]) -> None:
    """Redrive or discard dead letters."""
    if len(run_ids) > 1:
        confirm(session, f"{verb} {len(run_ids)} runs")
    named = [session.run_or_job(run_id)[1] for run_id in run_ids]
    answer = session.client.post(f"/v1/dead-letters:{verb}", {"runIds": list(named)}).object
    failed = 0
    for item in as_list(answer["items"]):
        assert isinstance(item, dict)
        done = item["done"] is True
        failed += not done
        session.out.line(f"{item['runId']} {'done' if done else item['detail']}")
    if failed:
        raise Stop(Exit.FAILED, f"{failed} of {len(named)} could not be done")


def _write(data: bytes) -> None:
    """Output as it came, to whatever standard output is. Escapes are kept from a terminal."""
    if sys.stdout.isatty():
        text = data.decode(errors="replace")
        data = "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text).encode()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
