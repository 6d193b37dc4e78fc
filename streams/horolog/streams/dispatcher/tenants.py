"""A tenant's view: who holds its quota, what waits, how many jobs it has."""

from typing import Final

from horolog.schemas.records import JobId, RunId, TenantId, TenantSettings
from horolog.streams.dispatcher.entries import QueueKey
from horolog.streams.limits import MINUTE_US

ASK_KEPT_US: Final = MINUTE_US
"""An admitted job counts this long beside the numbers told, should none of them include it."""


class Tenant:
    """What the dispatcher knows of one tenant."""

    __slots__ = ("asks", "holding", "jobs", "name", "parked", "settings", "waiting")

    def __init__(self, name: TenantId) -> None:
        self.name = name
        self.settings = TenantSettings(tenant=name)
        self.holding: set[RunId] = set()
        """Runs released or started: a set, so a repeated end frees nothing twice."""
        self.waiting = 0
        """Runs that wait or are pending and were admitted."""
        self.jobs: dict[int, int] = {}
        """Number of jobs by ledger partition."""
        self.asks: dict[int, dict[JobId, int]] = {}
        """Jobs admitted and not yet in the numbers, by partition, with the time of the answer."""
        self.parked: set[QueueKey] = set()
        """Queues in which it has work but no room in its quota."""

    @property
    def is_limited(self) -> bool:
        """Whether its quota must be known exactly before anything is released."""
        return self.settings.concurrency is not None

    @property
    def has_room(self) -> bool:
        """Whether one more run may be released."""
        quota = self.settings.concurrency
        return quota is None or len(self.holding) < quota

    def admits_run(self) -> bool:
        """Whether one more run may wait."""
        backlog = self.settings.backlog
        return backlog is None or self.waiting < backlog

    def admits_job(self, partition: int, job_id: JobId, now_us: int) -> bool:
        """Whether one more job may exist; asking again for the same one gives the same answer."""
        most = self.settings.jobs
        asks = self.asks.setdefault(partition, {})
        if job_id not in asks and most is not None:
            self._forget_asks(now_us)
            known = sum(self.jobs.values()) + sum(len(asks) for asks in self.asks.values())
            if known >= most:
                return False
        asks[job_id] = now_us
        return True

    def count_jobs(self, partition: int, jobs_count: int) -> None:
        """A partition told how many jobs there are; those admitted since are among them."""
        gained = jobs_count - self.jobs.get(partition, 0)
        self.jobs[partition] = jobs_count
        asks = self.asks.get(partition, {})
        for job_id in list(asks)[: max(gained, 0)]:
            del asks[job_id]

    def _forget_asks(self, now_us: int) -> None:
        for asks in self.asks.values():
            for job_id in [key for key, at_us in asks.items() if at_us + ASK_KEPT_US < now_us]:
                del asks[job_id]
