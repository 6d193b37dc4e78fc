"""Commands that need no server: explain, audit, replay, settings."""

from pathlib import Path
from typing import cast

import msgspec

from horolog.api import explain as api_explain
from horolog.api.faults import Refused
from horolog.api.json_values import Json
from horolog.api.requests import ExplainRequest
from horolog.api.validation import read as read_model
from horolog.api.values import parse_instant
from horolog.api.zone_table import ZoneTable
from horolog.cli import settings as cli_settings
from horolog.cli.client import Object
from horolog.cli.exits import Exit, Stop
from horolog.cli.output import Column
from horolog.cli.session import Session
from horolog.projections.rebuild import verify as verify_history
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.stores.sqlite import SqliteHistory
from horolog.schemas.errors import HorologError
from horolog.streams.audit import audit as audit_log
from horolog.streams.host import replay as host_replay
from horolog.streams.log.sqlite import SqliteLog
from horolog.workers.clock import wall_us


def explain(session: Session, expression: str, zone: str, start: str | None, count: int) -> None:
    """A schedule in words, its next slots, clock changes marked."""
    raw: dict[str, Json] = {"schedule": {"cron": expression, "timezone": zone}, "count": count}
    if start is not None:
        raw["from"] = start
    try:
        answer = api_explain.of_request(read_model(ExplainRequest, raw), ZoneTable(), wall_us())
    except Refused as error:
        first = error.faults[0]
        raise Stop(Exit.USAGE, first.detail, hint=first.hint) from error
    if not session.out.is_table:
        session.out.value(answer)
        return
    session.out.line(str(answer["words"]))
    changes = cast("list[Object]", answer["clockChanges"])
    for slot in cast("list[Object]", answer["slots"]):
        while changes and str(changes[0]["at"]) <= str(slot["slot"]):
            session.out.line(f"  -- {_change(changes.pop(0))}")
        session.out.line(f"  {slot['local']}  =  {slot['slot']}")
    for warning in cast("list[str]", answer["warnings"]):
        session.out.line(f"note: {warning}")


def _change(change: Object) -> str:
    before, after = change["offsetBeforeS"], change["offsetAfterS"]
    assert isinstance(before, int)
    assert isinstance(after, int)
    direction = "forward" if after > before else "back"
    minutes = abs(after - before) // 60
    return f"the clock goes {direction} by {minutes} minutes, at {change['local']}"


def audit(
    session: Session, data: Path | None, job: str | None, start: str | None, end: str | None
) -> None:
    """Prove from the log that every slot has one outcome; exit 1 and the list where not."""
    log = _log(session, data)
    job_id = None if job is None else session.job_id(job)
    try:
        report = audit_log(log, job=job_id, from_us=_instant(start), to_us=_instant(end))
    except HorologError as error:
        raise Stop(Exit.FAILED, str(error), hint=error.error.hint) from error
    if session.out.is_table:
        outcomes = ", ".join(f"{count} {name}" for name, count in report.outcomes.items())
        session.out.line(f"{report.jobs_count} jobs, {report.slots_count} slots: {outcomes or '-'}")
        for finding in (*report.unexplained, *report.doubled, *report.violations):
            session.out.line(str(msgspec.to_builtins(finding)))
        verdict = "every slot has exactly one outcome" if report.ok else "NOT proven"
        session.out.line(verdict)
    else:
        session.out.value(msgspec.to_builtins(report))
    if not report.ok:
        raise Stop(Exit.FAILED, "the log does not prove it", hint="see docs/audit.md")


def replay(
    session: Session, data: Path | None, partition: int | None, to_seq: int | None, *, verify: bool
) -> None:
    """Fold the log again; with `verify` compare with snapshots and history, exit 1 where not."""
    log = _log(session, data)
    wanted = range(log.partitions) if partition is None else (partition,)
    if any(not 0 <= number < log.partitions for number in wanted):
        raise Stop(Exit.USAGE, f"--partition is from 0 to {log.partitions - 1}")
    differences: list[str] = []
    try:
        for number in wanted:
            if verify:
                verdict = host_replay.verify(log, number)
                session.out.line(
                    f"partition {number}: seq {verdict.seq}, {verdict.jobs_count} jobs, "
                    f"{verdict.runs_count} open runs, state {verdict.digest[:16]}"
                )
                if verdict.difference:
                    differences.append(verdict.difference)
            else:
                state = host_replay.state_at(log, number, to_seq or log.last_seq(number))
                session.out.line(
                    f"partition {number}: seq {state.seq}, {len(state.jobs)} jobs, "
                    f"state {host_replay.digest_of(state)[:16]}"
                )
        if verify and partition is None:
            differences += _history_difference(session, log, data)
    except HorologError as error:
        raise Stop(Exit.FAILED, str(error), hint=error.error.hint) from error
    if differences:
        raise Stop(Exit.FAILED, "not identical", details=differences)
    if verify:
        session.out.line("identical")


def _history_difference(session: Session, log: SqliteLog, data: Path | None) -> list[str]:
    place = _data(session, data) / "history.db"
    if not place.exists():
        session.out.note("no history to compare with")
        return []
    history = SqliteHistory(place)
    try:
        with history.snapshot() as live:
            found = verify_history(log, live, MemoryHistory())
        return [] if found is None else [str(found)]
    finally:
        history.close()


def settings(session: Session, *, origin: bool) -> None:
    """Settings in force, and where each comes from."""
    found = cli_settings.with_origins(session.flags)
    items: list[Object] = []
    cells: list[list[str]] = []
    for name, each in found.items():
        value = "***" if each.setting.secret and each.text else each.text
        items.append({"id": name, "value": value, "origin": each.origin})
        cells.append([name, value, each.origin] if origin else [name, value])
    columns = [Column("SETTING"), Column("VALUE"), *([Column("ORIGIN")] if origin else [])]
    session.out.rows(items, columns, cells, empty="no settings")


def _data(session: Session, data: Path | None) -> Path:
    return data or Path(session.settings.data)


def _log(session: Session, data: Path | None) -> SqliteLog:
    try:
        return SqliteLog(_data(session, data), readonly=True)
    except HorologError as error:
        raise Stop(
            Exit.UNAVAILABLE, error.detail, hint="name the folder of `horolog up` with --data"
        ) from error


def _instant(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        raise Stop(Exit.USAGE, f"{text!r} {error}") from error
