"""Every example of the docs: run against a real server, or it says why it is not."""

import re
from pathlib import Path

import pytest

from tests.acceptance.pages import blocks, matches, page, pages, steps, unexplained

PAGES = {str(path.name): path.read_text(encoding="utf-8") for path in pages()}
RUN = [name for name, text in PAGES.items() if any(block.is_session for block in blocks(text))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RUN)
def test_examples_of_a_page_do_and_say_what_the_page_says(tmp_path: Path, name: str) -> None:
    with page(tmp_path) as running:
        running.run(PAGES[name])


@pytest.mark.parametrize("name", PAGES)
def test_example_that_is_not_run_says_why(name: str) -> None:
    assert unexplained(PAGES[name]) == []


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.name))
def test_links_of_a_page_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
    gone = [each for each in links if "://" not in each and not (path.parent / each).exists()]
    assert gone == []


def test_example_without_a_mark_is_found() -> None:
    marked = "<!-- not run: needs root -->\n```\nreboot\n```\n"
    assert unexplained(marked + "text\n```\nreboot\n```\n") == [6]
    assert unexplained(marked) == []
    assert unexplained("<!-- something -->\n```python\npass\n```\n") == [1]
    assert unexplained("```text\na drawing\n```\n<!-- file: a.py -->\n```python\n```\n") == []


def test_session_is_read_as_commands_and_what_they_print() -> None:
    first, second = steps("$ echo a \\\n  b\na b\n$ false  # exits 1\n")
    assert (first.command, first.status, first.printed) == ("echo a \\\n  b", 0, ("a b",))
    assert (second.status, second.printed) == (1, ())


@pytest.mark.parametrize(
    "line, printed, same",
    [
        ("a  b", " a b ", True),
        ("at 2026-12-01T08:50:40Z", "at 2027-01-31T00:00:00.5Z", True),
        ("at 2026-12-02T08:50:40Z", "at 2027-01-31T00:00:00Z", False),
        ("j@manual-52006952559c432b ok", "j@manual-0000000000000000 ok", True),
        ("a ... (c)", "a long b (c)", True),
        ("a.b", "axb", False),
    ],
)
def test_printed_line_is_compared_but_for_what_differs_each_time(
    line: str, printed: str, same: bool
) -> None:
    assert matches(line, printed) is same
