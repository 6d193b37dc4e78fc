"""The command line: options to calls, and errors to exit statuses.

Heavy modules are imported by the commands that need them: `horolog --help` imports no server.
"""

import difflib
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from horolog.cli import administration
from horolog.cli.arguments import WITH_VALUE, hoist
from horolog.cli.exits import Exit, Stop
from horolog.cli.session import Session, session_of

app = typer.Typer(
    name="horolog",
    help="Jobs that run when they are due, each slot accounted for.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    rich_markup_mode=None,
)
dead_app = typer.Typer(help="Dead letters.", invoke_without_command=True)
import_app = typer.Typer(help="Bring jobs over from elsewhere.", no_args_is_help=True)
app.add_typer(dead_app, name="dead")
app.add_typer(import_app, name="import")
administration.install(app)

Name = Annotated[str, typer.Argument(help="Name or whole ID of a job.")]
RunName = Annotated[str, typer.Argument(help="ID of a run.")]
AsOf = Annotated[str | None, typer.Option(help="As it was at this instant of the past.")]
Places = Annotated[list[str], typer.Option("-f", "--file", help="File or folder; `-f` again.")]
Context = typer.Context
ROLES = frozenset({"scheduler", "dispatcher", "projector", "api", "worker", "gateway", "archiver"})
"""What a fleet runs apart; no run has such an ID, since each has an `@`."""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"horolog {metadata.version('horolog')}")
        raise typer.Exit


@app.callback()
def _options(
    context: Context,
    output: Annotated[str, typer.Option("--output", "-o", help="table|wide|json|yaml|name")] = (
        "table"
    ),
    server: Annotated[str | None, typer.Option(help="Address of the server.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant meant where none is named.")] = None,
    api_key: Annotated[str | None, typer.Option(help="API key.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only the data.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    del no_color, version
    context.obj = Session(
        output=output,
        server=server,
        tenant=tenant,
        api_key=api_key,
        quiet=quiet,
        verbose=verbose,
        yes=yes,
    )


@app.command()
def up(
    context: Context,
    data: Annotated[Path | None, typer.Option(help="Folder of everything that is kept.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the API; 0 = any.")] = None,
    host: Annotated[str | None, typer.Option(help="Address of the API.")] = None,
    workers: Annotated[int | None, typer.Option(help="Runs at the same time.")] = None,
    handlers: Annotated[
        list[str] | None, typer.Option(help="Module with registered functions, `module:worker`.")
    ] = None,
) -> None:
    """Everything in one process on SQLite; Ctrl-C drains."""
    from horolog.cli import settings as cli_settings
    from horolog.cli import up as server

    session = session_of(context)
    settings = session.settings
    bound, _, bound_port = settings.http_bind.rpartition(":")
    server.serve(
        data=data or Path(settings.data),
        host=host or bound,
        port=int(bound_port) if port is None else port,
        partitions=cli_settings.embedded_partitions(session.flags),
        slots=settings.workers_slots if workers is None else workers,
        handlers=server.handlers_of(handlers or []),
        retention_us=settings.retention_history_us,
        hosts=settings.http_hosts,
        quiet=session.out.quiet,
    )


@app.command()
def add(
    context: Context,
    name: Name,
    command: Annotated[list[str] | None, typer.Argument(help="Program, after `--`.")] = None,
    cron: Annotated[str | None, typer.Option(help="Cron expression.")] = None,
    every: Annotated[str | None, typer.Option(help="Interval, as 90s or 10m.")] = None,
    at: Annotated[str | None, typer.Option(help="One instant.")] = None,
    tz: Annotated[str, typer.Option(help="Zone of --cron and --at.")] = "UTC",
) -> None:
    """Register a command."""
    from horolog.cli import jobs

    given = {"cron": cron, "every": every, "at": at}
    schedule = {name: value for name, value in given.items() if value is not None}
    jobs.add(session_of(context), name, {**schedule, "timezone": tz}, command or [])


@app.command("jobs")
def jobs_(
    context: Context,
    label: Annotated[list[str] | None, typer.Option(help="Label, as team=finance.")] = None,
    pool: Annotated[str | None, typer.Option(help="Pool.")] = None,
    query: Annotated[str | None, typer.Option("--q", help="Text in name, label or target.")] = None,
    paused: Annotated[bool | None, typer.Option(help="Paused ones only, or none.")] = None,
) -> None:
    """List jobs."""
    from horolog.cli import jobs

    jobs.index(session_of(context), label or [], pool, query, paused)


@app.command()
def job(context: Context, name: Name, as_of: AsOf = None) -> None:
    """Show a job."""
    from horolog.cli import jobs

    jobs.show(session_of(context), name, as_of)


@app.command()
def pause(
    context: Context,
    name: Name,
    until: Annotated[str | None, typer.Option(help="Instant at which it resumes.")] = None,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
) -> None:
    """Stop planning a job until it is resumed."""
    from horolog.cli import jobs

    jobs.pause(session_of(context), name, until, reason)


@app.command()
def resume(context: Context, name: Name) -> None:
    """Plan a paused job again."""
    from horolog.cli import jobs

    jobs.resume(session_of(context), name)


@app.command()
def delete(
    context: Context,
    names: Annotated[list[str], typer.Argument(help="Jobs.")],
    cancel_running: Annotated[bool, typer.Option(help="Also stop what runs.")] = False,
) -> None:
    """Delete jobs."""
    from horolog.cli import jobs

    jobs.delete(session_of(context), names, cancel_running=cancel_running)


@app.command()
def history(context: Context, name: Name) -> None:
    """Versions of a job, with who and when."""
    from horolog.cli import jobs

    jobs.history(session_of(context), name)


@app.command("next")
def next_(
    context: Context,
    name: Name,
    count: Annotated[int, typer.Option("-n", help="How many.")] = 10,
) -> None:
    """The next slots of a job."""
    from horolog.cli import jobs

    jobs.upcoming(session_of(context), name, count)


@app.command()
def why(
    context: Context,
    name: Name,
    at: Annotated[str | None, typer.Option(help="The slot asked about.")] = None,
) -> None:
    """Why a slot ran, waits or did not run."""
    from horolog.cli import jobs

    jobs.why(session_of(context), name, at)


@app.command()
def trigger(
    context: Context,
    name: Name,
    payload: Annotated[str | None, typer.Option(help="Payload, or @FILE.")] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    logs: Annotated[bool, typer.Option("--logs", help="Show its output.")] = False,
) -> None:
    """Start a job now."""
    from horolog.cli import jobs

    jobs.trigger(session_of(context), name, payload, key, wait=wait, logs=logs)


@app.command()
def backfill(
    context: Context,
    name: Name,
    start: Annotated[str, typer.Option("--from", help="First instant, inclusive.")],
    end: Annotated[str, typer.Option("--to", help="Last instant, exclusive.")],
    priority: Annotated[str, typer.Option(help="Tier of the runs.")] = "low",
    dry_run: Annotated[bool, typer.Option(help="Only say which slots they would be.")] = False,
) -> None:
    """Turn skipped or never planned slots of the past into runs."""
    from horolog.cli import jobs

    jobs.backfill(session_of(context), name, start, end, priority, dry=dry_run)


@app.command("runs")
def runs_(
    context: Context,
    name: Name,
    status: Annotated[list[str] | None, typer.Option(help="Status; again for more.")] = None,
    since: Annotated[str | None, typer.Option(help="From this instant on.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many.")] = 20,
    watch: Annotated[bool, typer.Option("--watch", help="Go on as they change.")] = False,
) -> None:
    """Runs of a job, newest first."""
    from horolog.cli import runs

    if watch:
        runs.watch(session_of(context), name, status or [], since)
    else:
        runs.index(session_of(context), name, status or [], since, limit)


@app.command()
def run(context: Context, run_id: RunName, as_of: AsOf = None) -> None:
    """Show a run with its attempts."""
    from horolog.cli import runs

    if run_id in ROLES:
        raise Stop(
            Exit.USAGE,
            f"this release runs no {run_id} by itself: it has no Kafka yet",
            hint="`horolog up` runs everything in one process",
        )
    runs.show(session_of(context), run_id, as_of)


@app.command()
def logs(
    context: Context,
    name: Annotated[str, typer.Argument(help="A run, or a job for its last run.")],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="As it comes.")] = False,
    attempt: Annotated[int | None, typer.Option(help="Attempt.")] = None,
) -> None:
    """What a run printed."""
    from horolog.cli import runs

    runs.logs(session_of(context), name, attempt, follow_it=follow)


@app.command()
def cancel(
    context: Context, run_id: RunName, reason: Annotated[str, typer.Option(help="Why.")] = ""
) -> None:
    """Ask that a run ends."""
    from horolog.cli import runs

    runs.cancel(session_of(context), run_id, reason)


@app.command()
def retry(context: Context, run_id: RunName) -> None:
    """Start a dead run again."""
    from horolog.cli import runs

    runs.retry(session_of(context), run_id)


@dead_app.callback()
def dead(
    context: Context, limit: Annotated[int, typer.Option(help="At most so many.")] = 50
) -> None:
    """List dead letters."""
    from horolog.cli import runs

    if context.invoked_subcommand is None:
        runs.dead(session_of(context), limit)


@dead_app.command()
def redrive(context: Context, run_ids: list[str]) -> None:
    """Start dead runs again."""
    from horolog.cli import runs

    runs.dead_do(session_of(context), "redrive", run_ids)


@dead_app.command()
def discard(context: Context, run_ids: list[str]) -> None:
    """Give dead runs up."""
    from horolog.cli import runs

    runs.dead_do(session_of(context), "discard", run_ids)


@app.command()
def apply(
    context: Context,
    places: Places,
    prune: Annotated[bool, typer.Option(help="Delete what no file has.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Only show the difference.")] = False,
    detailed_exitcode: Annotated[bool, typer.Option(help="Exit 10 if anything changes.")] = False,
) -> None:
    """Make the server have the jobs of some files; a difference first."""
    from horolog.cli import files

    files.apply(
        session_of(context), places, prune=prune, dry_run=dry_run, detailed=detailed_exitcode
    )


@app.command()
def diff(context: Context, places: Places) -> None:
    """What applying some files would change; exit 1 if anything."""
    from horolog.cli import files

    if any(change.verb != "keep" for change in files.diff(session_of(context), places)):
        raise typer.Exit(1)


@app.command()
def export(context: Context) -> None:
    """The tenant's jobs as a job file."""
    from horolog.cli import files

    files.export(session_of(context))


@app.command()
def lint(context: Context, places: Places) -> None:
    """What is odd about the schedules of job files."""
    from horolog.cli import files

    files.lint(session_of(context), places)


@import_app.command("crontab")
def import_crontab(
    context: Context,
    places: Annotated[list[str], typer.Argument(help="Crontabs.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show.")] = False,
    user_field: Annotated[
        bool | None, typer.Option(help="Whether lines name a user; found out by itself.")
    ] = None,
) -> None:
    """Register the lines of crontabs as jobs."""
    from horolog.cli import files

    files.import_crontab(session_of(context), places, dry_run=dry_run, user_field=user_field)


@app.command()
def explain(
    context: Context,
    expression: Annotated[str, typer.Argument(help="Cron expression.")],
    tz: Annotated[str, typer.Option(help="Zone.")] = "UTC",
    start: Annotated[str | None, typer.Option("--from", help="From this instant or date.")] = None,
    count: Annotated[int, typer.Option("-n", help="How many slots.")] = 10,
) -> None:
    """A schedule in words, its next slots, clock changes marked."""
    from horolog.cli import local

    local.explain(session_of(context), expression, tz, start, count)


Data = Annotated[Path | None, typer.Option(help="Data folder of `horolog up`.")]


@app.command()
def audit(
    context: Context,
    data: Data = None,
    job: Annotated[str | None, typer.Option(help="One job only.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Slots from here on.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Slots before this.")] = None,
) -> None:
    """Prove from the log that every slot has one outcome."""
    from horolog.cli import local

    local.audit(session_of(context), data, job, start, end)


@app.command()
def replay(
    context: Context,
    data: Data = None,
    partition: Annotated[int | None, typer.Option(help="One ledger partition only.")] = None,
    to: Annotated[int | None, typer.Option(help="Up to this seq.")] = None,
    verify: Annotated[bool, typer.Option(help="Compare with snapshots and history.")] = False,
) -> None:
    """Rebuild the state from the log."""
    from horolog.cli import local

    local.replay(session_of(context), data, partition, to, verify=verify)


@app.command()
def doctor(context: Context, data: Data = None) -> None:
    """What is not as it should be, and what to do about it."""
    from horolog.cli import doctor as checks

    checks.doctor(session_of(context), data)


@app.command()
def settings(
    context: Context,
    origin: Annotated[bool, typer.Option(help="Also where each comes from.")] = False,
) -> None:
    """Settings in force."""
    from horolog.cli import local

    local.settings(session_of(context), origin=origin)


def _names(of: typer.Typer) -> Iterator[str]:
    """Names of the commands of an app."""
    for command in of.registered_commands:
        assert command.callback is not None
        yield command.name or command.callback.__name__
    for group in of.registered_groups:
        yield str(group.name)


def _check_verb(argv: list[str]) -> None:
    """Refuse a verb that is not known, naming the nearest."""
    verbs = [*_names(app)]
    words = iter(argv)
    for word in words:
        if word in WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            if word not in verbs:
                near = difflib.get_close_matches(word, verbs, 1)
                hint = f"did you mean `horolog {near[0]}`?" if near else "see `horolog --help`"
                raise Stop(Exit.USAGE, f"there is no command {word!r}", hint=hint)
            return


def main() -> None:
    """Run the command line; the exit status is part of the interface."""
    if not __debug__:
        sys.stderr.write("horolog: start Python without -O: its assertions must stay on\n")
        sys.exit(Exit.USAGE)
    argv = hoist(sys.argv[1:])
    try:
        _check_verb(argv)
        app(argv, prog_name="horolog")
    except Stop as stop:
        sys.stderr.write(f"horolog: {stop.message}\n")
        for detail in stop.details:
            sys.stderr.write(f"  {detail}\n")
        if stop.hint:
            sys.stderr.write(f"hint: {stop.hint}\n")
        sys.exit(stop.status)
    except BrokenPipeError:
        # Whoever read our output has had enough.
        sys.exit(Exit.FAILED)
