"""What every command has at hand: settings, where to print, the client, the tenant meant."""

from functools import cached_property
from typing import Final

import typer

from horolog.api.settings import Settings
from horolog.cli import settings as cli_settings
from horolog.cli.client import DEFAULT_SERVER, Client
from horolog.cli.output import Output
from horolog.schemas.ids import is_job_id
from horolog.schemas.records import JobId

DEFAULT_TENANT: Final = "default"


class Session:
    """One call of the CLI."""

    def __init__(
        self,
        *,
        output: str = "table",
        server: str | None = None,
        tenant: str | None = None,
        api_key: str | None = None,
        quiet: bool = False,
        verbose: bool = False,
        yes: bool = False,
    ) -> None:
        flags = {"server": server, "tenant": tenant, "api_key": api_key}
        self.flags = {name: value for name, value in flags.items() if value is not None}
        self.out = Output(
            output, quiet=quiet, verbose=verbose, color=cli_settings.is_color_wanted()
        )
        self.yes = yes

    @cached_property
    def settings(self) -> Settings:
        """Settings in force."""
        return cli_settings.in_force(self.flags)

    @cached_property
    def client(self) -> Client:
        """The connection to the server."""
        return Client(self.settings.server or DEFAULT_SERVER, api_key=self.settings.api_key)

    @property
    def tenant(self) -> str:
        """The tenant meant where none is named."""
        return self.settings.tenant or DEFAULT_TENANT

    def job_id(self, name: str) -> JobId:
        """A job by its whole ID or by its name within the tenant."""
        if is_job_id(name) and name.partition(".")[0] == self.tenant:
            return JobId(name)
        if "." in name and self.client.find(f"/v1/jobs/{name}") is not None:
            return JobId(name)
        return JobId(f"{self.tenant}.{name}")

    def run_or_job(self, name: str) -> tuple[JobId | None, str]:
        """A run ID, or the last run of a job: (job, "") then."""
        if "@" in name:
            tenant, dot, _ = name.partition("@")[0].partition(".")
            return None, name if dot and tenant else f"{self.tenant}.{name}"
        return self.job_id(name), ""


def session_of(context: typer.Context) -> Session:
    """What the options before the command said."""
    assert isinstance(context.obj, Session)
    return context.obj
