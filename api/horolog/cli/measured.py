"""What the metrics ask of an embedded server: its log, timed, and its gauges."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from horolog.api.metrics import Gauges
from horolog.cli.history_process import HistoryProcess
from horolog.streams.host.embedded import EmbeddedHost
from horolog.streams.limits import SECOND_US
from horolog.streams.log import Batch, Log, SnapshotRecord


class MeasuredLog:
    """A log that says how long each commit took, in seconds."""

    def __init__(self, log: Log, observe: Callable[[float], None]) -> None:
        """`observe` is called in the writer's thread."""
        self._log = log
        self._observe = observe
        self.partitions = log.partitions
        self.log_id = log.log_id
        self.generation = log.generation
        self.last_seq = log.last_seq
        self.close = log.close

    def append(self, batches: Sequence[Batch]) -> None:
        """See `Log`."""
        begun = time.perf_counter()
        self._log.append(batches)
        self._observe(time.perf_counter() - begun)

    def read(self, partition: int, after_seq: int) -> Iterator[Batch]:
        """See `Log`."""
        return self._log.read(partition, after_seq)

    def snapshots(self, partition: int) -> Iterator[tuple[str, SnapshotRecord]]:
        """See `Log`."""
        return self._log.snapshots(partition)


def gauges_of(
    host: EmbeddedHost, projector: HistoryProcess, recovery_s: Mapping[int, float], now_us: int
) -> Gauges:
    """The gauges of a server. `now_us`: microseconds UTC."""
    backlog = {
        (pool, tier): (
            found.waiting + found.offered,
            0.0
            if found.oldest_due_us is None
            else max(now_us - found.oldest_due_us, 0) / SECOND_US,
        )
        for (pool, tier), found in host.dispatcher.backlog().items()
    }
    lags_us = [
        now_us - owner.state.at_us
        for owner in host.owners
        if projector.position(owner.partition) < owner.state.seq
    ]
    ages_us = [owner.snapshot_age_us(now_us) for owner in host.owners]
    return Gauges(
        backlog=backlog,
        projection_lag_s=max(lags_us, default=0) / SECOND_US,
        snapshot_age_s=max(ages_us, default=0) / SECOND_US,
        clock_skew_s=host.clock_skew_us / SECOND_US,
        recovery_s=recovery_s,
    )
