"""Examples in the docs say what the commands say."""

import re
import shlex
from pathlib import Path

import pytest

from tests.acceptance.server import ROOT, Server

PAGES = sorted(ROOT.glob("docs/*.md"))
_EXAMPLE = re.compile(r"^\$ \./horolog (explain .*)\n((?:(?!\$|```).*\n)*)", re.MULTILINE)
EXAMPLES = [
    (page.name, command, told)
    for page in PAGES
    for command, told in _EXAMPLE.findall(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page, command, told", EXAMPLES, ids=[each[1] for each in EXAMPLES])
def test_example_of_a_page_says_what_the_page_says(
    tmp_path: Path, page: str, command: str, told: str
) -> None:
    del page
    printed = Server(tmp_path).ok(*shlex.split(command))
    for line in told.splitlines():
        assert line in printed.splitlines(), printed


def test_there_are_examples() -> None:
    assert EXAMPLES


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, *ROOT.glob("docs/decisions/*.md"), ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
