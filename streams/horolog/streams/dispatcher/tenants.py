"""A tenant's view: who holds its quota, how many runs wait, how many jobs it has."""

from typing import TYPE_CHECKING

from horolog.schemas.records import JobId, RunId, TenantId, TenantSettings

if TYPE_CHECKING:
    from horolog.streams.dispatcher.queues import Line, ReadyQueue


class Tenant:
    """What the dispatcher knows of one tenant."""

    __slots__ = (
        "backlog_most", "holding", "jobs", "jobs_most", "name", "parked", "promised",
        "promised_count", "quota", "waiting",
    )  # fmt: skip

    def __init__(self, name: TenantId) -> None:
        """Without limits."""
        self.name = name
        self.quota: int | None = None
        """Most runs released or started at the same time."""
        self.backlog_most: int | None = None
        self.jobs_most: int | None = None
        self.holding: set[RunId] = set()
        """Runs released or started: a set, so a repeated end frees nothing twice."""
        self.waiting = 0
        """Runs that wait, due or not, with a hint out or not; asked-for ones once admitted."""
        self.jobs = 0
        """Jobs that exist, by what all partitions told."""
        self.promised: dict[int, dict[JobId, int]] = {}
        """Jobs admitted that are not in those numbers yet, by ledger partition, oldest first; with
        the digests that the partition has sent since."""
        self.promised_count = 0
        self.parked: dict[Line, ReadyQueue] = {}
        """Its lines that have work while it has no room, longest parked first."""

    def limit(self, settings: TenantSettings) -> None:
        """Take new limits, in force at once. Of several shards each has its part."""
        shards = max(settings.shards, 1)
        self.quota = _part(settings.concurrency, shards)
        self.backlog_most = _part(settings.backlog, shards)
        self.jobs_most = _part(settings.jobs, shards)

    def has_room(self, known: bool) -> bool:  # noqa: FBT001  # asked for each release
        """Whether one more run may be released. A tenant with a quota waits until all its open runs
        are known.
        """
        quota = self.quota
        return quota is None or (known and len(self.holding) < quota)

    def admits_run(self) -> bool:
        """Whether one more run may wait."""
        return self.backlog_most is None or self.waiting < self.backlog_most

    def admits_job(self, job_id: JobId, partition: int) -> bool:
        """Whether one more job may exist; if so it is promised. A job that asks again does not
        exist yet: it is decided anew, and what was promised to it before does not count.
        """
        promised = self.promised.setdefault(partition, {})
        if promised.pop(job_id, None) is not None:
            self.promised_count -= 1
        if self.jobs_most is not None and self.jobs + self.promised_count >= self.jobs_most:
            return False
        promised[job_id] = 0
        self.promised_count += 1
        return True

    def count_jobs(self, partition: int, before: int, count: int) -> None:
        """A partition told how many jobs there are; those gained are among the promised ones."""
        gained = count - before
        self.jobs += gained
        promised = self.promised.get(partition)
        while promised and gained > 0:
            del promised[next(iter(promised))]
            self.promised_count -= 1
            gained -= 1

    def age_promises(self, partition: int) -> bool:
        """A partition has sent a digest. An answer is read long before the second digest after it,
        so what was promised by then is in the numbers, or came to nothing. False: nothing is left.
        """
        promised = self.promised.get(partition, {})
        for job_id, digests in list(promised.items()):
            if digests > 0:
                del promised[job_id]
                self.promised_count -= 1
            else:
                promised[job_id] = 1
        return bool(promised)


def _part(limit: int | None, shards: int) -> int | None:
    return None if limit is None else limit // shards
