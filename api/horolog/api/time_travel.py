"""A job or a run as it was at an instant: folded from its events in the ledger, by the projections
that the tables are made with.
"""

from collections.abc import Iterable, Iterator

from horolog.api.backend import Backend
from horolog.projections.fold import Batch, Fold
from horolog.projections.queries import Queries
from horolog.projections.stores.memory import MemoryHistory
from horolog.schemas.ids import partition_of
from horolog.schemas.records import Event, JobId


def history_at(backend: Backend, job_id: JobId, at_us: int) -> Queries:
    """The tables of one job as they were at an instant (microseconds UTC), events of that very
    instant included. Cost: reads its ledger partition up to there, about a second for 100,000
    events; call it from a thread that may wait.
    """
    history = MemoryHistory()
    fold = Fold(_Ledger(backend.partitions), history)
    partition = partition_of(job_id, backend.partitions)
    fold.excerpt(partition, _of_job(backend.events(partition, 0), job_id, at_us))
    fold.write()
    return history


def _of_job(events: Iterable[Event], job_id: JobId, at_us: int) -> Iterator[Event]:
    for event in events:
        if event.at_us > at_us:
            return
        if getattr(event, "job_id", None) == job_id:
            yield event


class _Ledger:
    """What an excerpt is told of the log it is from."""

    log_id = "excerpt"
    generation = 0

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    def read(self, partition: int, after_seq: int) -> Iterable[Batch]:
        """Nothing is read by the fold itself."""
        del partition, after_seq
        return ()
