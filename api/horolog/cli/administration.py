"""The command line of administration: tenants, workers.

As in `main`, modules that do the work are imported by the commands that need them.
"""

from typing import Annotated

import typer

from horolog.cli.session import session_of

Context = typer.Context
TenantName = Annotated[str, typer.Argument(help="Name of a tenant.")]

tenant_app = typer.Typer(help="Limits of a tenant.", no_args_is_help=True)


def install(app: typer.Typer) -> None:
    """Add the commands of administration to an app."""
    app.command()(tenants)
    app.command()(workers)
    app.command()(drain)
    app.add_typer(tenant_app, name="tenant")


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
