"""Pages of the docs whose commands are run, in order, against a real server."""

import re
import shlex
from pathlib import Path

import pytest

from tests.acceptance.server import ROOT, Server, serving


def commands_of(page: str) -> list[tuple[str, str]]:
    """Each command of a page with what it is to print."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(\$ .*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.split("$ ./horolog ")[1:]]
    return [(line.partition("\n")[0], line.partition("\n")[2]) for line in lines]


def check(server: Server, page: str) -> None:
    """Run every command of a page and look for every line it is to print."""
    commands = commands_of(page)
    assert commands
    for command, told in commands:
        said = server.cli(*shlex.split(command))
        assert said.status == 0, (command, said)
        printed = {" ".join(line.split()) for line in said.out.splitlines()}
        for line in told.splitlines():
            assert " ".join(line.split()) in printed, (command, line, said)


@pytest.mark.parametrize("page", ["tenants.md"])
def test_commands_of_a_page_print_what_the_page_says(tmp_path: Path, page: str) -> None:
    with serving(tmp_path) as server:
        check(server, page)
