"""Commands on jobs."""

import json
import re
import secrets
from pathlib import Path
from typing import Final

from horolog.api.json_values import Json
from horolog.cli.client import Object
from horolog.cli.exits import Exit, Stop
from horolog.cli.output import Column
from horolog.cli.session import Session
from horolog.schemas.ids import JOB_NAME_PATTERN, is_job_id

_COLUMNS: Final = (
    Column("JOB"),
    Column("SCHEDULE"),
    Column("ZONE"),
    Column("STATUS"),
    Column("NEXT"),
    Column("TARGET", wide=True),
    Column("VERSION", wide=True),
)


def add(session: Session, name: str, schedule: Object, command: list[str]) -> None:
    """Register a command under a name."""
    if not command:
        raise Stop(
            Exit.USAGE,
            "no command is given",
            hint="write it after --, as `horolog add hello --every 1m -- echo hi`",
        )
    job_id = session.job_id(name)
    if not is_job_id(job_id):
        raise Stop(Exit.USAGE, f"{name!r} is no name of a job; its form is {JOB_NAME_PATTERN}")
    body: Object = {"schedule": schedule, "target": {"command": list(command)}}
    answer = session.client.put(f"/v1/jobs/{job_id}", body)
    verb = "created" if answer.status == 201 else "unchanged"
    if answer.object.get("changed") is True:
        verb = "updated"
    written(session, answer.object, verb)


def written(session: Session, job: Object, verb: str) -> None:
    """Say what a write did, the next slots, and what to do next."""
    if session.out.is_table:
        session.out.line(f"{job['id']} {verb}, version {job['version']}")
    else:
        session.out.item(job, [])
    slots = job.get("next")
    if isinstance(slots, list) and slots:
        session.out.note("next slots: " + ", ".join(str(slot) for slot in slots))
    else:
        session.out.note("no slot is to come: it runs only when triggered")
    name = short(session, str(job["id"]))
    session.out.note(f"next: horolog trigger {name} --wait --logs")


def short(session: Session, job_id: str) -> str:
    """A job as its tenant's people call it."""
    tenant, _, name = job_id.partition(".")
    return name if tenant == session.tenant else job_id


def index(
    session: Session, labels: list[str], pool: str | None, text: str | None, paused: bool | None
) -> None:
    """List jobs."""
    params: dict[str, str] = {"tenant": session.settings.tenant or "*"}
    if pool:
        params["pool"] = pool
    if text:
        params["q"] = text
    if paused is not None:
        params["paused"] = str(paused).lower()
    if labels:
        params["label"] = labels[0]
    items = list(session.client.pages("/v1/jobs", params, None))
    cells = [
        [
            short(session, str(job["id"])),
            schedule_text(job),
            zone_of(job),
            str(job["status"]),
            first_of(job.get("next")),
            target_text(job),
            str(job["version"]),
        ]
        for job in items
    ]
    session.out.rows(
        items, _COLUMNS, cells, empty="no jobs; horolog add hello --every 1m -- echo hi"
    )


def show(session: Session, name: str, as_of: str | None = None) -> None:
    """Show a job, as it is or as it was at an instant."""
    params = None if as_of is None else {"asOf": as_of}
    job = session.client.get(f"/v1/jobs/{session.job_id(name)}", params).object
    lines = [(key, _plain(value)) for key, value in job.items() if value not in (None, "", {}, [])]
    session.out.item(job, lines)


def pause(session: Session, name: str, until: str | None, reason: str) -> None:
    """Stop planning a job."""
    job_id = session.job_id(name)
    body: Object = {"reason": reason}
    if until:
        body["until"] = until
    session.client.post(f"/v1/jobs/{job_id}:pause", body)
    session.out.line(f"{job_id} paused")
    session.out.note(f"slots that pass are skipped; next: horolog resume {name}")


def resume(session: Session, name: str) -> None:
    """Plan a paused job again."""
    job_id = session.job_id(name)
    session.client.post(f"/v1/jobs/{job_id}:resume")
    session.out.line(f"{job_id} active")
    session.out.note(f"next: horolog next {name}")


def delete(session: Session, names: list[str], *, cancel_running: bool) -> None:
    """Delete jobs."""
    job_ids = [session.job_id(name) for name in names]
    if len(job_ids) > 1:
        confirm(session, f"delete {len(job_ids)} jobs")
    params = {"cancelRunning": "true"} if cancel_running else {}
    for job_id in job_ids:
        session.client.delete(f"/v1/jobs/{job_id}", params=params)
        session.out.line(f"{job_id} deleted")


def upcoming(session: Session, name: str, count: int) -> None:
    """The next slots of a job."""
    answer = session.client.get(
        f"/v1/jobs/{session.job_id(name)}/next", {"count": str(count)}
    ).object
    items = answer["items"]
    assert isinstance(items, list)
    slots = [item for item in items if isinstance(item, dict)]
    cells = [[str(item["slot"])] for item in slots]
    session.out.rows(slots, (Column("SLOT"),), cells, empty="no slot is to come", name="slot")


def why(session: Session, name: str, at: str | None) -> None:
    """Why a slot ran, waits or did not run."""
    params = {"at": at} if at else {}
    answer = session.client.get(f"/v1/jobs/{session.job_id(name)}/why", params).object
    if not session.out.is_table:
        session.out.value(answer)
        return
    trail = answer["trail"]
    assert isinstance(trail, list)
    for sentence in trail:
        session.out.line(str(sentence))


def history(session: Session, name: str) -> None:
    """Definitions a job had."""
    answer = session.client.get(f"/v1/jobs/{session.job_id(name)}/versions").object
    items = [item for item in as_list(answer["items"]) if isinstance(item, dict)]
    cells = [
        [str(item["version"]), str(item["at"]), str(item["by"]), str(item["change"])]
        for item in items
    ]
    columns = (Column("VERSION"), Column("AT"), Column("BY"), Column("CHANGE"))
    session.out.rows(items, columns, cells, empty="no versions", name="version")


def trigger(
    session: Session, name: str, payload: str | None, key: str | None, *, wait: bool, logs: bool
) -> None:
    """Start a job now; with `wait` its result is the exit status."""
    from horolog.cli import runs

    job_id = session.job_id(name)
    body: Object = {"idempotencyKey": key or secrets.token_hex(8)}
    if payload is not None:
        body["payload"] = payload_of(payload)
    run_id = str(session.client.post(f"/v1/jobs/{job_id}:trigger", body).object["runId"])
    if not wait and not logs:
        session.out.line(run_id)
        session.out.note(f"next: horolog logs {run_id} -f")
        return
    session.out.note(run_id)
    runs.follow(session, run_id, show=logs)
    runs.end_with(session, run_id)


def payload_of(text: str) -> Json:
    """A payload given as text, or as @FILE; JSON if it is JSON."""
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Stop(Exit.USAGE, f"--payload {text}: {error}") from error
    try:
        decoded: Json = json.loads(text)
    except ValueError:
        return text
    return decoded


def backfill(
    session: Session, name: str, start: str, end: str, tier: str, *, dry: bool = False
) -> None:
    """Turn past slots into runs, after saying which; `dry`: only say."""
    job_id = session.job_id(name)
    body: Object = {"from": start, "to": end, "priority": tier}
    path = f"/v1/jobs/{job_id}:backfill"
    preview = session.client.post(f"{path}?validateOnly=true", body).object
    slots = preview["slots"]
    assert isinstance(slots, dict)
    if not slots["count"]:
        session.out.line("nothing to fill: every slot of the range had its run")
        return
    told = f"{slots['count']} slots of {job_id}, from {slots['first']} to {slots['last']}"
    if dry:
        if session.out.is_table:
            session.out.line(f"would run {told}")
        else:
            session.out.value(preview)
        return
    confirm(session, f"run {told}")
    session.client.post(path, body)
    session.out.line(f"running {told}")
    session.out.note(f"next: horolog runs {name}")


def confirm(session: Session, what: str) -> None:
    """Ask before something that is hard to undo; without a terminal `--yes` is needed."""
    import sys

    if session.yes:
        return
    if not sys.stdin.isatty():
        raise Stop(Exit.USAGE, f"to {what} without being asked, give --yes")
    sys.stderr.write(f"{what}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stop(Exit.FAILED, "nothing was done")


def as_list(value: Json) -> list[Json]:
    """A list the server sent."""
    assert isinstance(value, list)
    return value


def first_of(value: Json) -> str:
    """The first of a list, if there is one."""
    return str(value[0]) if isinstance(value, list) and value else "-"


def schedule_text(job: Object) -> str:
    """The schedule in a word."""
    schedule = job.get("schedule")
    if isinstance(schedule, dict):
        for name in ("cron", "every", "at"):
            if schedule.get(name) is not None:
                text = str(schedule[name])
                return text if name == "cron" else f"{name} {text}"
    return "manual"


def zone_of(job: Object) -> str:
    """The zone of a job's schedule."""
    schedule = job.get("schedule")
    return str(schedule.get("timezone", "UTC")) if isinstance(schedule, dict) else "UTC"


def target_text(job: Object) -> str:
    """The target in a line."""
    target = job.get("target")
    if not isinstance(target, dict):
        return ""
    command = target.get("command")
    if isinstance(command, list):
        return re.sub(r"\s+", " ", " ".join(str(part) for part in command))[:60]
    http = target.get("http")
    if isinstance(http, dict):
        return str(http.get("url"))
    return str(target.get("handler") or "container")


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
