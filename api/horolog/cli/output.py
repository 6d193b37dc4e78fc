"""What a command prints: data on standard output, all else on standard error."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from horolog.api.json_values import Json
from horolog.cli.exits import Exit, Stop

FORMATS: Final = ("table", "wide", "json", "yaml", "name")
_PIPE_WIDTH: Final = 10_000
_STYLES: Final = {
    "succeeded": "green",
    "running": "cyan",
    "active": "green",
    "paused": "yellow",
    "skipped": "yellow",
    "dead": "red",
    "failed": "red",
    "timed_out": "red",
    "lost": "red",
    "refused": "red",
    "cancelled": "magenta",
}


class Column(NamedTuple):
    """A column of a table; `wide` ones are shown by `-o wide` only."""

    title: str
    wide: bool = False


class Output:
    """Where and how to print."""

    def __init__(
        self,
        form: str = "table",
        *,
        quiet: bool = False,
        verbose: bool = False,
        color: bool = False,
    ) -> None:
        if form not in FORMATS:
            raise Stop(Exit.USAGE, f"--output is {form!r}, not one of {', '.join(FORMATS)}")
        self.form = form
        self.quiet = quiet
        self.is_verbose = verbose
        self.color = color

    @property
    def is_table(self) -> bool:
        """Whether people are to read it."""
        return self.form in ("table", "wide")

    def note(self, text: str) -> None:
        """Say something beside the data; nothing when quiet."""
        if not self.quiet:
            print(printable(text), file=sys.stderr)

    def detail(self, text: str) -> None:
        """Say something that only `-v` wants."""
        if self.is_verbose:
            print(printable(text), file=sys.stderr)

    def line(self, text: str) -> None:
        """A line of data."""
        print(printable(text) if sys.stdout.isatty() else text)

    def rows(
        self,
        items: Sequence[Mapping[str, Json]],
        columns: Sequence[Column],
        cells: Sequence[Sequence[str]],
        *,
        empty: str,
        name: str = "id",
    ) -> None:
        """A list: as a table, as JSON or YAML of `items`, or as names.

        empty: what is said, beside the data, when there is nothing.
        """
        if self.form == "name":
            for item in items:
                self.line(str(item.get(name, "")))
        elif not self.is_table:
            self.value(list(items))
        elif not items:
            self.note(empty)
        else:
            self._table(columns, cells)

    def change(self, item: Mapping[str, Json], cells: Sequence[str], name: str = "runId") -> None:
        """One line of something that goes on: JSON and YAML as a JSON line, at once."""
        if self.form == "name":
            self.line(str(item.get(name, "")))
        elif self.is_table:
            self.line("  ".join(cells).rstrip())
        else:
            print(json.dumps(item, ensure_ascii=False))
        sys.stdout.flush()

    def value(self, value: object) -> None:
        """One value, as JSON or YAML."""
        if self.form == "yaml":
            from ruamel.yaml import YAML

            # ruamel is typed in part.
            yaml: Any = YAML(typ="safe", pure=True)
            yaml.default_flow_style = False
            yaml.dump(value, sys.stdout)
        else:
            print(json.dumps(value, indent=2, ensure_ascii=False))

    def item(self, item: Mapping[str, Json], lines: Sequence[tuple[str, str]]) -> None:
        """One thing: as lines of name and value, as JSON or YAML, or as its name."""
        if self.form == "name":
            self.line(str(item.get("id", "")))
        elif not self.is_table:
            self.value(dict(item))
        else:
            width = max((len(title) for title, _ in lines), default=0)
            for title, text in lines:
                self.line(f"{title:<{width}}  {text}".rstrip())

    def _table(self, columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        shown = [i for i, column in enumerate(columns) if self.form == "wide" or not column.wide]
        table = Table(box=None, pad_edge=False, header_style="bold")
        for i in shown:
            table.add_column(columns[i].title, no_wrap=True, overflow="ellipsis")
        for row in cells:
            texts = [Text(printable(row[i]), style=_STYLES.get(row[i], "")) for i in shown]
            table.add_row(*texts)
        on_terminal = sys.stdout.isatty()
        console = Console(
            no_color=not self.color,
            width=None if on_terminal else _PIPE_WIDTH,
            highlight=False,
            soft_wrap=not on_terminal,
        )
        if on_terminal:
            console.print(table)
            return
        with console.capture() as captured:
            console.print(table)
        print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def printable(text: str) -> str:
    """Text without control characters: what a stranger sent must not drive the terminal."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )
