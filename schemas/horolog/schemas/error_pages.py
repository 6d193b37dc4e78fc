"""Writes a page for each error into the docs: `python -m horolog.schemas.error_pages [--check]`."""

import sys
from pathlib import Path
from typing import Final

from horolog.schemas.errors import ERRORS, ErrorCode, Reaction

FOLDER: Final = Path(__file__).resolve().parents[3] / "docs" / "errors"
_REACTIONS: Final = {
    Reaction.REJECTED: "The request was understood and refused; nothing was changed.",
    Reaction.INVALID_INPUT: "What was sent cannot be used; nothing was changed.",
    Reaction.UNAVAILABLE: "A part gave no answer; what was asked may or may not be done.",
    Reaction.FENCED: "Another owner has taken over.",
    Reaction.CORRUPT: "The data is not as it must be. Nothing is guessed: the part stops.",
    Reaction.BUG: "Horolog made a mistake.",
}


def page_of(error: ErrorCode) -> str:
    """The page of an error."""
    status = "" if error.http_status is None else f" HTTP status {error.http_status}."
    again = (
        "The same request may pass later: send it again with the same key."
        if error.transient
        else "The same request is answered the same again."
    )
    return (
        f"# {error.number}: {error.title}\n\n"
        f"`{error.slug}`.{status} {_REACTIONS[error.reaction]}\n\n"
        f"**What to do.** {error.hint} {again}\n"
    )


def main() -> int:
    """Write the pages, or with `--check` say by the exit status whether they are current."""
    pages = {f"{error.number}.md": page_of(error) for error in ERRORS}
    if "--check" in sys.argv[1:]:
        there = {place.name: place.read_text(encoding="utf-8") for place in FOLDER.glob("*.md")}
        return int(there != pages)
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
