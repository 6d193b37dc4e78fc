"""The command line of administration: tenants, workers, schemas, topics, tables, the shell.

As in `main`, modules that do the work are imported by the commands that need them.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from horolog.cli.session import session_of

SHELLS: Final = ("bash", "zsh", "fish", "powershell")
Context = typer.Context
TenantName = Annotated[str, typer.Argument(help="Name of a tenant.")]

tenant_app = typer.Typer(help="Limits of a tenant.", no_args_is_help=True)
schemas_app = typer.Typer(help="Schemas of the records.", no_args_is_help=True)
topics_app = typer.Typer(help="Topics of a fleet.", no_args_is_help=True)
projections_app = typer.Typer(help="The tables that reads come from.", no_args_is_help=True)


def install(app: typer.Typer) -> None:
    """Add the commands of administration to an app."""
    app.command()(tenants)
    app.command()(workers)
    app.command()(drain)
    app.command()(completion)
    app.add_typer(tenant_app, name="tenant")
    app.add_typer(schemas_app, name="schemas")
    app.add_typer(topics_app, name="topics")
    app.add_typer(projections_app, name="projections")


def tenants(context: Context) -> None:
    """List tenants: what each has, and of how much."""
    from horolog.cli import tenants as commands

    commands.index(session_of(context))


@tenant_app.command("set")
def tenant_set(
    context: Context,
    name: TenantName,
    concurrency: Annotated[
        str | None, typer.Option(help="Runs at the same time; `none`: no limit.")
    ] = None,
    backlog: Annotated[str | None, typer.Option(help="Runs that may wait; or `none`.")] = None,
    jobs: Annotated[str | None, typer.Option(help="Jobs that may exist; or `none`.")] = None,
) -> None:
    """Set what a tenant may have; in force at once."""
    from horolog.cli import tenants as commands

    given = {"concurrency": concurrency, "backlog": backlog, "jobs": jobs}
    commands.set_limits(session_of(context), name, given)


def workers(context: Context) -> None:
    """List workers: what each holds, and when it was seen last."""
    from horolog.cli import workers as commands

    commands.index(session_of(context))


def drain(context: Context, worker: Annotated[str, typer.Argument(help="ID of a worker.")]) -> None:
    """Have a worker take nothing more; what it runs goes on."""
    from horolog.cli import workers as commands

    commands.drain(session_of(context), worker)


@schemas_app.command("list")
def schemas_list(context: Context) -> None:
    """List the schemas in force with their fingerprints."""
    from horolog.cli import schemas as commands

    commands.index(session_of(context))


@schemas_app.command("check")
def schemas_check(
    context: Context,
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of schemas; left out: those of this release.")
    ] = None,
) -> None:
    """Check that schemas and every released version read each other; exit 1 where not."""
    from horolog.cli import schemas as commands

    commands.check(session_of(context), folder)


@schemas_app.command("register")
def schemas_register() -> None:
    """Put the schemas into a schema registry; needs a log on Kafka."""
    from horolog.cli import schemas as commands

    raise commands.needs_kafka("to register schemas")


@topics_app.command("plan")
def topics_plan() -> None:
    """Say how the topics differ from what they should be; needs a log on Kafka."""
    from horolog.cli import schemas as commands

    raise commands.needs_kafka("to plan topics")


@topics_app.command("apply")
def topics_apply() -> None:
    """Make and change the topics; needs a log on Kafka."""
    from horolog.cli import schemas as commands

    raise commands.needs_kafka("to make topics")


@projections_app.command("status")
def projections_status(context: Context) -> None:
    """Say how far the tables are behind the ledger, in records and seconds."""
    from horolog.cli import projections as commands

    commands.status(session_of(context))


@projections_app.command("rebuild")
def projections_rebuild(
    context: Context,
    name: Annotated[str, typer.Argument(help="Which, as `projections status` names it.")] = (
        "history"
    ),
) -> None:
    """Build tables anew from the ledger, beside those in use, and swap them in."""
    from horolog.cli import projections as commands

    commands.rebuild(session_of(context), name)


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh, fish or powershell.")],
) -> None:
    """Print what makes a shell complete commands and options."""
    from typer._completion_shared import get_completion_script

    from horolog.cli.exits import Exit, Stop

    if shell not in SHELLS:
        raise Stop(
            Exit.USAGE,
            f"{shell!r} is no shell that is known",
            hint=f'one of {", ".join(SHELLS)}: eval "$(horolog completion bash)"',
        )
    print(get_completion_script(prog_name="horolog", complete_var="_HOROLOG_COMPLETE", shell=shell))
