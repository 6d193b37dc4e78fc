"""Programs that outlived the server that ran them.

A server that is killed cannot stop what it runs. The next one gives each lease a full term, and
then the run to another: by then its program must be gone, as after a lease that was lost in any
other way. A program is known by the claim in its environment, which whatever it starts inherits.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from horolog.workers.executors.protocol import CLAIM_VARIABLE

GRACE_S: Final = 5.0
"""Between TERM and KILL; less than the shortest term, so that they are gone before it ends."""
_PROC: Final = Path("/proc")
_PREFIX: Final = f"{CLAIM_VARIABLE}=".encode()


class Leftovers:
    """Ends the programs of some claims. On systems without /proc it finds none."""

    def __init__(self, claim_ids: Collection[str], *, grace_s: float = GRACE_S) -> None:
        """`claim_ids`: of the leases that were live when the server before ended."""
        self._claims = frozenset(claim_id.encode() for claim_id in claim_ids)
        self._timer = threading.Timer(grace_s, self._signal, (signal.SIGKILL,))
        self._timer.daemon = True

    def end(self) -> int:
        """Ask them to end; those that have not by the end of the grace are killed. How many."""
        count = self._signal(signal.SIGTERM)
        if count:
            self._timer.start()
        return count

    def close(self) -> None:
        """Kill at once what is left."""
        if self._timer.is_alive():
            self._timer.cancel()
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> int:
        count = 0
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
                count += 1
        return count

    def _pids(self) -> Iterator[int]:
        if not self._claims or not _PROC.is_dir():
            return
        for place in _PROC.iterdir():
            if place.name.isdigit() and _claim_of(place) in self._claims:
                yield int(place.name)


def _claim_of(place: Path) -> bytes | None:
    try:
        variables = (place / "environ").read_bytes()
    except OSError:
        # It has ended, or is another user's.
        return None
    for variable in variables.split(b"\0"):
        if variable.startswith(_PREFIX):
            return variable[len(_PREFIX) :]
    return None
