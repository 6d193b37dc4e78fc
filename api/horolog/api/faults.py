"""What is wrong with something that was sent: where, what stands there, what would be right."""

import json
from collections.abc import Iterable, Sequence

import msgspec

from horolog.api.limits import VALUE_CHARS_SHOWN_MAX
from horolog.schemas.errors import INVALID_FIELD, ErrorCode


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong.

    pointer: JSON pointer into what was sent; empty = the whole.
    detail: one sentence with the value and what would be right.
    """

    pointer: str
    detail: str
    error: ErrorCode = INVALID_FIELD
    hint: str = ""


class Refused(Exception):
    """What was sent cannot be used; nothing was done. `faults`: at least one, in order."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: Sequence[Fault] = tuple(faults)
        assert self.faults, "refused for no reason"
        super().__init__("; ".join(f"{one.pointer or 'body'} {one.detail}" for one in self.faults))


def shown(value: object) -> str:
    """A value as it stands in an error: as JSON has it, on one line, cut."""
    if isinstance(value, str):
        text = f'"{value}"'
    else:
        text = json.dumps(value, ensure_ascii=False, default=repr, skipkeys=True)
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    if len(text) > VALUE_CHARS_SHOWN_MAX:
        return text[: VALUE_CHARS_SHOWN_MAX - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return text
