"""The command line against the table of the interface page, and its own reference pages."""

import pytest
from typer.core import TyperOption

from horolog.api.settings import SETTINGS
from horolog.cli import reference

VERBS = {
    "up": "--data --port --workers",
    "run": "",
    "topics plan": "",
    "topics apply": "",
    "schemas list": "",
    "schemas check": "",
    "schemas register": "",
    "add": "--cron --every --at --tz",
    "apply": "-f --prune --dry-run --detailed-exitcode",
    "diff": "-f",
    "export": "",
    "lint": "-f",
    "import crontab": "--dry-run",
    "jobs": "",
    "job": "",
    "pause": "--until --reason",
    "resume": "",
    "delete": "",
    "history": "",
    "explain": "--tz",
    "next": "-n",
    "why": "--at",
    "trigger": "--payload --key --wait --logs",
    "backfill": "--from --to --dry-run",
    "runs": "--status --since --limit --watch",
    "logs": "-f --attempt",
    "cancel": "",
    "retry": "",
    "dead": "",
    "dead redrive": "",
    "dead discard": "",
    "tenants": "",
    "tenant set": "--concurrency --backlog --jobs",
    "workers": "",
    "drain": "",
    "audit": "--job --from --to",
    "replay": "--partition --to --verify",
    "projections status": "",
    "projections rebuild": "",
    "doctor": "",
    "settings": "--origin",
    "completion": "",
}
"""Each verb of the interface page's table, with the options it names."""

GLOBAL = ("-o", "--server", "--tenant", "--api-key", "-q", "-v")


def options(command: reference.Command) -> set[str]:
    """Every name of every option."""
    return {
        name
        for parameter in command.params
        if isinstance(parameter, TyperOption)
        for name in (*parameter.opts, *parameter.secondary_opts)
    }


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_verb_of_the_interface_page_exists_with_its_options_and_says_what_it_does(
    verb: str,
) -> None:
    command = dict(reference.commands())[verb]
    assert command.help
    assert set(VERBS[verb].split()) <= options(command)


def test_every_command_takes_the_options_of_the_interface_page() -> None:
    assert set(GLOBAL) <= options(reference.root())


def test_pages_name_every_command_option_and_setting() -> None:
    pages = reference.pages()
    for words, command in reference.commands():
        assert f"### `{words}" in pages["cli.md"]
        assert all(name in pages["cli.md"] for name in options(command))
    for setting in SETTINGS:
        assert f"`{setting.name}`" in pages["settings.md"]
