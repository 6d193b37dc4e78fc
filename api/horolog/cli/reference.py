"""Writes the reference pages of the command line and of the settings into the docs:
`python -m horolog.cli.reference [--check]`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from horolog.api.settings import FILE, PREFIX, SETTINGS
from horolog.cli.exits import Exit
from horolog.cli.main import app

FOLDER: Final = Path(__file__).resolve().parents[3] / "docs"
_WRITTEN: Final = "<!-- Written by `python -m horolog.cli.reference`; change the code instead. -->"
_OUTPUT: Final = """\
Data goes to standard output, everything else to standard error; `NO_COLOR` is honoured. A job may
be named without its tenant. An unknown verb is told the nearest one. `horolog completion SHELL`
prints what makes a shell complete commands and options; `--install-completion` installs it."""
_SOURCES: Final = f"""\
A flag wins over the environment, that over `{FILE}` in the folder where the command is called, that
over the default. A variable with `_FILE` at its end names a file that holds the value, for secrets.
A name that is not here is an error that gives the nearest. `horolog settings --origin` shows what
is in force and where it came from."""
_FORMS: Final = f"""\
In `{FILE}` a dot is a table: `[http]`, then `bind = "127.0.0.1:8700"`. Durations are written as
`90s`, `10m`, `2h` or `90d`."""
_EXITS: Final = {
    Exit.OK: "done",
    Exit.FAILED: "it failed: a run, an audit with findings, a fault of the server",
    Exit.USAGE: "the command or its input is wrong",
    Exit.NOT_FOUND: "there is no such job, run, worker or tenant",
    Exit.REFUSED: "refused: a conflict, a limit, a right that is missing",
    Exit.UNAVAILABLE: "no server answers, or it cannot at present",
}


Command = TyperCommand | TyperGroup


def root() -> TyperGroup:
    """The whole command line."""
    made = typer.main.get_command(app)
    assert isinstance(made, TyperGroup)
    return made


def commands() -> Iterator[tuple[str, Command]]:
    """Each command by the words that call it, groups that do something themselves included."""
    yield from _within("", root())


def _within(words: str, group: TyperGroup) -> Iterator[tuple[str, Command]]:
    if words and group.invoke_without_command:
        yield words, group
    for name in sorted(group.commands):
        command = group.commands[name]
        whole = f"{words} {name}".strip()
        if isinstance(command, TyperGroup):
            yield from _within(whole, command)
        else:
            assert isinstance(command, TyperCommand)
            yield whole, command


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    return {"cli.md": cli_page(), "settings.md": settings_page()}


def cli_page() -> str:
    """Every command with its arguments and options."""
    lines = [
        "# Command line",
        "",
        _WRITTEN,
        "",
        _OUTPUT,
        "",
        "## Exit status",
        "",
        "| status | means |",
        "| --- | --- |",
        *(f"| {status.value} | {text} |" for status, text in _EXITS.items()),
        "",
        "## Options of every command",
        "",
        "They may stand before or after the verb.",
        "",
        *_parameters(root()),
        "## Commands",
        "",
    ]
    for words, command in commands():
        usage = " ".join(
            _usage(parameter)
            for parameter in command.params
            if isinstance(parameter, TyperArgument)
        )
        lines += [f"### `{f'{words} {usage}'.strip()}`", "", command.help or "", ""]
        lines += _parameters(command)
    return "\n".join(lines).rstrip("\n") + "\n"


def _usage(argument: TyperArgument) -> str:
    name = (argument.name or "").upper()
    name = f"{name}..." if argument.nargs == -1 else name
    return name if argument.required else f"[{name}]"


def _parameters(command: Command) -> list[str]:
    rows = [
        f"| `{_names(parameter)}` | {_cell(parameter.help or '')} |"
        for parameter in command.params
        if isinstance(parameter, TyperOption) and not parameter.hidden
    ]
    return ["| option | |", "| --- | --- |", *rows, ""] if rows else []


def _names(option: TyperOption) -> str:
    return " ".join((*option.opts, *option.secondary_opts))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def settings_page() -> str:
    """Every setting: name, variable, default, what it is."""
    lines = [
        "# Settings",
        "",
        _WRITTEN,
        "",
        _SOURCES,
        "",
        _FORMS,
        "",
        "| setting | variable | default | what it is |",
        "| --- | --- | --- | --- |",
    ]
    for one in SETTINGS:
        variable = PREFIX + one.name.upper().replace(".", "__")
        default = f"`{one.default}`" if one.default else ""
        about = f"{one.about} (secret: never shown)" if one.secret else one.about
        lines.append(f"| `{one.name}` | `{variable}` | {default} | {about} |")
    lines += [
        "| `kafka.client.*` | `HOROLOG_KAFKA__CLIENT__*` | | passed on to librdkafka as it is |",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Write the pages, or with `--check` say by the exit status whether they are current."""
    made = pages()
    if "--check" in sys.argv[1:]:
        return int(
            any(
                not (FOLDER / name).is_file() or (FOLDER / name).read_text("utf-8") != text
                for name, text in made.items()
            )
        )
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
