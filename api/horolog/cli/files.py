"""Job files and crontabs: apply, diff, export, lint, import."""

import difflib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

from horolog.api.checks import faults_of
from horolog.api.definitions import definition_of, read_spec, sparse, spec_of
from horolog.api.explain import explained
from horolog.api.faults import Fault, Refused
from horolog.api.job_files import SUFFIXES, jobs_of
from horolog.api.json_values import Json
from horolog.api.zone_table import ZoneTable
from horolog.cli import crontab
from horolog.cli.client import Object
from horolog.cli.exits import Exit, Stop
from horolog.cli.jobs import confirm
from horolog.cli.output import Column
from horolog.cli.session import Session
from horolog.schemas.ids import name_of
from horolog.schemas.records import JobDefinition, JobId
from horolog.streams.calendar import anchored
from horolog.workers.clock import wall_us

FILES_MAX: Final = 1_000
SOURCE_LABEL: Final = "horolog.source"


class Wanted(NamedTuple):
    """A job as a file wants it."""

    job_id: JobId
    spec: dict[str, Json]
    definition: JobDefinition


class Change(NamedTuple):
    """What applying would do to a job."""

    job_id: JobId
    verb: str
    """`create`, `update`, `delete` or `keep`."""
    lines: list[str]
    """Of the difference, as `diff -u` has them."""
    spec: dict[str, Json]


def wanted_in(session: Session, places: list[str]) -> list[Wanted]:
    """The jobs of some files or folders. Raises Stop with all that is wrong, by file and job."""
    zones = ZoneTable()
    found: dict[JobId, Wanted] = {}
    faults: list[str] = []
    for place in _files(places):
        try:
            tenant, jobs = jobs_of(place.read_bytes(), str(place))
        except OSError as error:
            raise Stop(Exit.USAGE, f"{place}: {error.strerror}") from error
        except Refused as error:
            faults += _told("", error.faults)
            continue
        for name, raw in jobs.items():
            job_id = JobId(f"{tenant or session.tenant}.{name}")
            try:
                wanted = _wanted(job_id, raw, zones)
            except Refused as error:
                faults += _told(f"{place}: jobs.{name}", error.faults)
                continue
            if job_id in found:
                faults.append(f"{place}: {job_id} is in another file already")
            found[job_id] = wanted
    if faults:
        raise Stop(Exit.USAGE, f"{len(faults)} mistakes; nothing was done", details=faults)
    return list(found.values())


def _wanted(job_id: JobId, raw: Json, zones: ZoneTable) -> Wanted:
    definition = definition_of(read_spec(raw), zones)
    loaded = zones.with_zone(definition.schedule.timezone)
    faults = faults_of(definition, job_id, wall_us(), loaded)
    if faults:
        raise Refused(faults)
    return Wanted(job_id, spec_of(definition), definition)


def _told(where: str, faults: Sequence[Fault]) -> list[str]:
    return [f"{where}{fault.pointer.replace('/', '.')}: {fault.detail}" for fault in faults]


def _files(places: list[str]) -> Iterator[Path]:
    for text in places:
        place = Path(text)
        if place.is_dir():
            inside = sorted(each for each in place.rglob("*") if each.suffix in SUFFIXES)
            yield from inside[:FILES_MAX]
        else:
            yield place


def changes_of(session: Session, wanted: list[Wanted], *, prune: bool) -> list[Change]:
    """What applying these would change on the server."""
    changes: list[Change] = []
    for job in wanted:
        answer = session.client.find(f"/v1/jobs/{job.job_id}")
        before = {} if answer is None else _spec_in(answer.object)
        spec: dict[str, Json] = dict(job.spec)
        anchor = _dict(before.get("schedule")).get("anchor")
        schedule = _dict(spec.get("schedule"))
        if anchor is not None and "anchor" not in schedule:
            spec["schedule"] = {**schedule, "anchor": anchor}
        lines = _difference(str(job.job_id), before, spec)
        verb = "create" if answer is None else "update" if lines else "keep"
        changes.append(Change(job.job_id, verb, lines, spec))
    if prune:
        names = {str(job.job_id) for job in wanted}
        tenants = {str(job.job_id).partition(".")[0] for job in wanted} or {session.tenant}
        for tenant in sorted(tenants):
            for job_there in session.client.pages("/v1/jobs", {"tenant": tenant}, None):
                if job_there["id"] not in names:
                    job_id = JobId(str(job_there["id"]))
                    lines = _difference(str(job_id), _spec_in(job_there), {})
                    changes.append(Change(job_id, "delete", lines, {}))
    return changes


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _spec_in(job: Object) -> dict[str, Json]:
    names = [
        "schedule",
        "target",
        "payload",
        "payloadBase64",
        "contentType",
        "timeout",
        "killGrace",
        "retry",
        "priority",
        "pool",
        "catchUp",
        "overlap",
        "startingDeadline",
        "leaseTerm",
        "owner",
        "labels",
        "description",
    ]
    return {name: job[name] for name in names if name in job}


def _difference(name: str, before: dict[str, Json], after: dict[str, Json]) -> list[str]:
    return list(
        difflib.unified_diff(
            _lines(before), _lines(after), f"{name} (server)", f"{name} (file)", lineterm="", n=1
        )
    )


def _lines(spec: dict[str, Json]) -> list[str]:
    if not spec:
        return []
    return json.dumps(sparse(spec), indent=2, sort_keys=True, ensure_ascii=False).splitlines()


def diff(session: Session, places: list[str], *, prune: bool = False) -> list[Change]:
    """Print what applying would change; the changes."""
    changes = changes_of(session, wanted_in(session, places), prune=prune)
    for change in changes:
        for line in change.lines:
            session.out.line(line)
    return changes


def apply(
    session: Session, places: list[str], *, prune: bool, dry_run: bool, detailed: bool
) -> None:
    """Make the server have the jobs of some files, after showing the difference."""
    changes = diff(session, places, prune=prune)
    todo = [change for change in changes if change.verb != "keep"]
    counts = {
        verb: sum(change.verb == verb for change in changes)
        for verb in ("create", "update", "delete", "keep")
    }
    session.out.note(", ".join(f"{count} to {verb}" for verb, count in counts.items()))
    if not dry_run and todo:
        if len(todo) > 1 or counts["delete"]:
            confirm(session, f"apply {len(todo)} changes")
        for change in todo:
            _apply(session, change)
    if detailed and todo:
        raise SystemExit(10)


def _apply(session: Session, change: Change) -> None:
    if change.verb == "delete":
        session.client.delete(f"/v1/jobs/{change.job_id}")
    else:
        session.client.put(f"/v1/jobs/{change.job_id}", change.spec)
    session.out.line(f"{change.job_id} {change.verb}d")


def export(session: Session) -> None:
    """Print the jobs of the tenant as a job file."""
    jobs = {
        name_of(JobId(str(job["id"]))): sparse(_spec_in(job))
        for job in session.client.pages("/v1/jobs", {"tenant": session.tenant}, None)
    }
    if session.out.is_table:
        session.out.form = "yaml"
    session.out.value({"tenant": session.tenant, "jobs": jobs})


def lint(session: Session, places: list[str]) -> None:
    """Say what is odd about the schedules of job files; exit 1 if anything is."""
    zones = ZoneTable()
    found = 0
    for job in wanted_in(session, places):
        schedule = anchored(job.definition.schedule, wall_us())
        for warning in cast(
            "list[str]", explained(schedule, job.job_id, wall_us(), 1, zones)["warnings"]
        ):
            found += 1
            session.out.line(f"{job.job_id}: {warning}")
    if found:
        raise Stop(Exit.FAILED, f"{found} warnings")
    session.out.note("nothing odd")


_COLUMNS: Final = (
    Column("JOB"),
    Column("CRON"),
    Column("ZONE"),
    Column("NEXT"),
    Column("FROM"),
    Column("COMMAND"),
)


class _Line(NamedTuple):
    """A line of a crontab, as a job."""

    job_id: JobId
    body: Object
    cron: str
    zone: str
    coming: str
    """The next slot, in the line's own zone."""
    source: str
    command: str


def import_crontab(
    session: Session, places: list[str], *, dry_run: bool, user_field: bool | None
) -> None:
    """Register the lines of crontabs as jobs; what cannot be carried over is named by line, and
    stops no other line, as in cron itself.
    """
    zone = machine_zone()
    zones = ZoneTable()
    lines: list[_Line] = []
    lost = 0
    for place in places:
        if crontab.is_ignored_by_cron(place):
            session.out.note(f"{place}: cron itself does not read a file of this name")
            continue
        try:
            text = Path(place).read_text(encoding="utf-8", errors="replace")
            table = crontab.parse(text, place, user_field=user_field, is_user=is_user)
        except (OSError, ValueError) as error:
            raise Stop(Exit.USAGE, f"{place}: {error}") from error
        for note in table.notes:
            session.out.note(f"{place}:{note.line}: {note.text}")
            lost += note.lost
        for entry in table.entries:
            try:
                lines.append(_line(session.tenant, entry, place, zone, zones))
            except Refused as error:
                lost += 1
                for fault in error.faults:
                    session.out.note(f"{place}:{entry.line}: {fault.detail}")
    _show(session, lines)
    session.out.note(f"{len(lines)} lines can be carried over, {lost} cannot; zone {zone}")
    if dry_run:
        session.out.note("nothing was done; leave out --dry-run to register them")
        return
    if len(lines) > 1:
        confirm(session, f"register {len(lines)} jobs")
    done = {"created": 0, "updated": 0, "unchanged": 0}
    for line in lines:
        answer = session.client.put(f"/v1/jobs/{line.job_id}", line.body)
        verb = "created" if answer.status == 201 else "unchanged"
        done["updated" if answer.object.get("changed") is True else verb] += 1
    session.out.note(", ".join(f"{count} {verb}" for verb, count in done.items()))
    session.out.note("next: horolog jobs")


def _line(tenant: str, entry: crontab.Entry, place: str, zone: str, zones: ZoneTable) -> _Line:
    """A line as a job. Raises Refused if no server would take it."""
    job_id = JobId(f"{tenant}.{entry.name}")
    body = _body(entry, place, zone)
    schedule = _wanted(job_id, body, zones).definition.schedule
    slots = cast("list[Object]", explained(schedule, job_id, wall_us(), 1, zones)["slots"])
    return _Line(
        job_id,
        body,
        entry.cron,
        schedule.timezone,
        str(slots[0]["local"]) if slots else "never",
        f"{place}:{entry.line}",
        entry.command,
    )


def _body(entry: crontab.Entry, place: str, zone: str) -> Object:
    schedule: dict[str, Json] = {"cron": entry.cron, "timezone": entry.zone or zone}
    if entry.jitter_minutes:
        schedule["jitter"] = f"{entry.jitter_minutes}m"
    body: Object = {
        "schedule": schedule,
        "target": {"command": list(crontab.argv_of(entry))},
        "description": f"{place}:{entry.line}",
        "labels": {SOURCE_LABEL: "crontab"},
    }
    if entry.stdin is not None:
        body |= {"payload": entry.stdin, "contentType": "text/plain"}
    return body


def _show(session: Session, lines: list[_Line]) -> None:
    cells = [
        [name_of(line.job_id), line.cron, line.zone, line.coming, line.source, line.command[:60]]
        for line in lines
    ]
    items: list[Object] = [{"id": line.job_id, **line.body} for line in lines]
    session.out.rows(items, _COLUMNS, cells, empty="no line can be carried over")


def machine_zone() -> str:
    """The zone of this machine, by which its cron runs."""
    link = Path("/etc/localtime")
    if link.is_symlink():
        _, found, name = str(link.readlink()).partition("zoneinfo/")
        if found:
            return "UTC" if name in ("Etc/UTC", "UTC", "UCT", "Etc/UCT") else name
    place = Path("/etc/timezone")
    if place.exists():
        name = place.read_text(encoding="utf-8").strip()
        return "UTC" if name in ("Etc/UTC", "") else name
    return "UTC"


def is_user(name: str) -> bool:
    """Whether this machine has a user of that name."""
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
