"""How a command ends: exit status and what is said of it."""

import enum
from collections.abc import Sequence


class Exit(enum.IntEnum):
    """Exit statuses; they are part of the interface."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNAVAILABLE = 5


class Stop(Exception):
    """A command ends here; `message` says why and `hint` what to do next."""

    def __init__(
        self, status: Exit, message: str, *, hint: str = "", details: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint
        self.details = details
