"""What the server has acknowledged to its clients."""

import threading


class Acks:
    """Kept by the clients' threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.runs: dict[str, str] = {}
        """Idempotency key -> run."""
        self.edits: set[tuple[str, int]] = set()
        """Job and the number in the payload that it was given."""
        self.disagreements: list[str] = []

    def triggered(self, key: str, run_id: str) -> None:
        """A trigger was answered 2xx; the same key again must have the same answer."""
        with self._lock:
            known = self.runs.setdefault(key, run_id)
            if known != run_id:
                self.disagreements.append(f"{key}: {known} and {run_id}")

    def edited(self, job_id: str, number: int) -> None:
        """An edit was answered 2xx."""
        with self._lock:
            self.edits.add((job_id, number))

    @property
    def count(self) -> int:
        """Commands acknowledged."""
        with self._lock:
            return len(self.runs) + len(self.edits)
