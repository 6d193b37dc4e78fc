"""What hints, pages and the command line tell a user to type exists."""

import re
from pathlib import Path

import pytest
import typer.core
import typer.main

from horolog.cli.main import app

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted(
    path
    for place in ("api", "schemas", "streams", "projections", "workers", "docs")
    for path in (ROOT / place).rglob("*")
    if path.suffix in (".py", ".md") and "decisions" not in path.parts
)
NAMED = re.compile(r"`(?:\./)?horolog ([a-z]+)(?: ([a-z]+))?")


def _unknown(text: str) -> list[str]:
    """Commands that a text names and that are not there."""
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    missing: list[str] = []
    for verb, second in NAMED.findall(text):
        command = root.commands.get(verb)
        if isinstance(command, typer.core.TyperGroup):
            is_there = not second or second in command.commands
        else:
            is_there = command is not None
        if not is_there:
            missing.append(f"{verb} {second}".rstrip())
    return missing


@pytest.mark.parametrize("text", ["`horolog projections bury`", "`horolog dead bury X`"])
def test_command_that_is_not_there_is_found(text: str) -> None:
    assert _unknown(text)


def test_every_command_that_a_hint_or_page_names_is_there() -> None:
    found = {
        str(path.relative_to(ROOT)): missing
        for path in SOURCES
        if (missing := _unknown(path.read_text("utf-8")))
    }
    assert found == {}
