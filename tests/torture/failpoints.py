"""Points at which a victim ends at once, as by kill -9: `HOROLOG_FAILPOINT=name:n`, at the n-th
pass.

The product knows nothing of them. The victim wraps the seam of the point that is asked for, and
only that one, before the server is made.
"""

import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Final, NamedTuple

from horolog.api.gateway import Gateway
from horolog.cli.embedded import Embedded
from horolog.projections.stores import sql
from horolog.projections.stores.logs_sqlite import SqliteLogs
from horolog.streams.host.embedded import EmbeddedHost
from horolog.streams.host.owner import Owner
from horolog.streams.host.snapshots import Recovery, Snapshotter
from horolog.streams.log import sqlite, sqlite_snapshots
from horolog.workers.agent import Agent
from horolog.workers.executors.handler import HandlerExecutor

VARIABLE: Final = "HOROLOG_FAILPOINT"


class Seam(NamedTuple):
    """A callable of the product, and whether the end comes before or after it."""

    place: Any
    name: str
    after: bool = False
    passes_max: int = 60
    """A pass up to which a busy victim gets in a few seconds."""


POINTS: Final[Mapping[str, Seam]] = {
    "before-commit": Seam(sqlite.SqliteLog, "append"),
    "within-transaction": Seam(sqlite.SqliteLog, "_insert", after=True),
    "after-commit": Seam(sqlite.SqliteLog, "append", after=True),
    "before-reply": Seam(Embedded, "reply"),
    "grant-to-handler": Seam(HandlerExecutor, "begin", passes_max=20),
    "handler-to-report": Seam(Agent, "_end", passes_max=20),
    "grant-to-lease-answer": Seam(Gateway, "_lease_of", passes_max=10),
    "recovering": Seam(Recovery, "_load", after=True, passes_max=2),
    "taking-over": Seam(Owner, "take_over", after=True, passes_max=2),
    "taken-over": Seam(EmbeddedHost, "_take_over", after=True, passes_max=1),
    "writing-history": Seam(sql, "upserting", after=True),
    "taking-snapshot": Seam(Snapshotter, "_bury", passes_max=2),
    "writing-snapshot": Seam(sqlite_snapshots, "snapshot_sum", after=True),
    "writing-output": Seam(SqliteLogs, "_insert", after=True, passes_max=5),
}


IN_HISTORY: Final = frozenset({"writing-history"})
"""Those passed in the history's process, which then ends its server too."""


def is_of_history(asked: str) -> bool:
    """Whether the point is one of the history's process."""
    return asked.partition(":")[0] in IN_HISTORY


def install(asked: str, pids: Sequence[int] = ()) -> None:
    """Wrap the seam of `name:n`; nothing for an empty text. `pids`: who ends, in order; left out:
    this process. Raises KeyError for an unknown name.
    """
    if not asked:
        return
    name, _, count = asked.partition(":")
    seam = POINTS[name]
    inner = getattr(seam.place, seam.name)
    setattr(
        seam.place,
        seam.name,
        _ending(inner, int(count or 1), pids or (os.getpid(),), after=seam.after),
    )


def _ending(
    inner: Callable[..., Any], passes: int, pids: Sequence[int], *, after: bool
) -> Callable[..., Any]:
    left = passes
    lock = threading.Lock()

    def passed() -> None:
        nonlocal left
        with lock:
            left -= 1
            if left == 0:
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)

    @wraps(inner)
    def wrapped(*args: Any, **named: Any) -> Any:
        if not after:
            passed()
        found = inner(*args, **named)
        if after:
            passed()
        return found

    return wrapped
