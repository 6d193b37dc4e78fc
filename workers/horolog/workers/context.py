"""What a handler is given of its run."""

import datetime as dt
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from horolog.schemas.records import Grant, JobId, RunId


class NoRetry(Exception):
    """Raise it from a handler when no retry would help: the run is dead at once."""


_making: Final = threading.Lock()


class Context:
    """One attempt of a run, as its handler sees it."""

    def __init__(self, grant: Grant, write: Callable[[bytes], object]) -> None:
        """`write`: takes what the handler logs."""
        self._grant = grant
        self._write = write
        self._cancelled: threading.Event | None = None

    @property
    def cancelled(self) -> threading.Event:
        """Set when the run shall stop; look at it between steps of long work."""
        # Cost: an event costs as much as the whole call of a short function; few look at theirs.
        if self._cancelled is None:
            with _making:
                if self._cancelled is None:
                    self._cancelled = threading.Event()
        return self._cancelled

    @property
    def run_id(self) -> RunId:
        """ID of the run, the same for all its attempts: the idempotency key of what it does."""
        return self._grant.run_id

    @property
    def job_id(self) -> JobId:
        """ID of the job."""
        return self._grant.job_id

    @property
    def attempt(self) -> int:
        """1, 2, 3 ... within a round."""
        return self._grant.attempt

    @property
    def fencing_token(self) -> int:
        """Greater than that of every earlier attempt of the job: give it to what you write to,
        and let that refuse lower ones.
        """
        return self._grant.token

    @property
    def slot(self) -> dt.datetime | None:
        """The slot, aware, in UTC; None for a manual run that names none."""
        slot_us = self._grant.slot_us
        if slot_us is None:
            return None
        return dt.datetime.fromtimestamp(slot_us / 1_000_000, dt.UTC)

    @property
    def timeout(self) -> dt.timedelta:
        """How long the attempt may take in all."""
        return dt.timedelta(microseconds=self._grant.timeout_us)

    @property
    def kill_grace(self) -> dt.timedelta:
        """How long it has to stop once it is asked to."""
        return dt.timedelta(microseconds=self._grant.kill_grace_us)

    @property
    def payload(self) -> bytes:
        """The payload as it is."""
        return self._grant.payload

    def json(self) -> object:
        """The payload decoded from JSON; None if there is none. Raises ValueError."""
        return msgspec.json.decode(self._grant.payload) if self._grant.payload else None

    def log(self, *parts: object) -> None:
        """Write a line to the log of the run."""
        self.write(" ".join(str(part) for part in parts) + "\n")

    def write(self, text: str) -> None:
        """Write text to the log of the run as it is."""
        self._write(text.encode(errors="replace"))
