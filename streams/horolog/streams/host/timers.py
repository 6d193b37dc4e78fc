"""When which job is to be woken: a heap with one live entry a job."""

import heapq

from horolog.schemas.records import JobId


class Timers:
    """Next wake-up of each job. Derived from the state; rebuilt by every new owner.

    Cost: O(log n) a change; a changed entry stays in the heap until it surfaces, so the heap holds
    at most one stale entry for each change since.
    """

    def __init__(self) -> None:
        """No job waits."""
        self._heap: list[tuple[int, JobId]] = []
        self._at: dict[JobId, int] = {}

    def set(self, job_id: JobId, at_us: int | None) -> None:
        """Wake the job at this instant and at no other; None = never."""
        if at_us is None:
            self._at.pop(job_id, None)
        elif self._at.get(job_id) != at_us:
            self._at[job_id] = at_us
            heapq.heappush(self._heap, (at_us, job_id))

    def due(self, now_us: int, most: int) -> list[JobId]:
        """Take the jobs whose instant has come, earliest first, at most so many."""
        found: list[JobId] = []
        heap = self._heap
        while heap and heap[0][0] <= now_us and len(found) < most:
            at_us, job_id = heapq.heappop(heap)
            if self._at.get(job_id) == at_us:
                del self._at[job_id]
                found.append(job_id)
        return found

    def next_us(self) -> int | None:
        """The next instant at which a job is to be woken."""
        heap = self._heap
        while heap and self._at.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None
