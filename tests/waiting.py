"""Waiting for a state where there is no event to await, such as a file or a port of a process."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE_S = 0.01


def until(look: Callable[[], T | None], what: str, within_s: float = 60) -> T:
    """The first thing `look` returns that is not None; fails, naming `what`, after `within_s`.

    The limit only ends a test that hangs: nothing may depend on how long it took.
    """
    end_s = time.monotonic() + within_s
    while True:
        found = look()
        if found is not None:
            return found
        assert time.monotonic() < end_s, f"{what}: not within {within_s} s"
        time.sleep(PAUSE_S)
