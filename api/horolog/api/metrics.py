"""Metrics of one process, in Prometheus' text format.

Counters and histograms are folded from committed events, so they say what the ledger says; a server
counts from its own start. No job and no run is ever a label. What a scrape can read from elsewhere
(backlog, lags, clocks) is asked at the scrape.

Cost: about 1 us an event, in the thread that calls `fold`.
"""

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import msgspec
from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric

from horolog.schemas.records import (
    AttemptEnded,
    AttemptOutcome,
    Event,
    Hint,
    Reply,
    ReportRejected,
    RunCancelled,
    RunDeadLettered,
    RunDiscarded,
    RunId,
    RunOrigin,
    RunPlanned,
    RunRefused,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
    SlotsSkipped,
    Tier,
)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
US_PER_S: Final = 1_000_000
BATCHES_WAITING_MAX: Final = 10_000
"""Folded by the one who offers, beyond it: nobody else did."""

LATENCY_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800)
DURATION_S: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400)
COMMIT_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class Batch(Protocol):
    """What the log gives."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Stamped events."""
        ...


class Gauges(msgspec.Struct, frozen=True, kw_only=True):
    """What a scrape asks for."""

    backlog: Mapping[tuple[str, Tier], tuple[int, float]]
    """Pool and tier -> runs that are due and not started, and how long the oldest waits (s)."""
    projection_lag_s: float
    snapshot_age_s: float
    clock_skew_s: float
    recovery_s: Mapping[int, float]
    """Ledger partition -> how long its recovery took at the start."""


class _Open(msgspec.Struct):
    """What is remembered of a run until its end."""

    due_us: int
    tier: str
    pool: str
    counts: bool
    """Whether its start is one that has to be prompt: a slot's, and its first."""
    is_slot: bool
    started_us: int = 0


class Metrics:
    """All metrics of a process."""

    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        """`gauges`: asked at each scrape, from any thread."""
        self._gauges = gauges
        self._lock = threading.Lock()
        self._waiting: deque[list[Batch] | tuple[Sequence[Hint], int]] = deque()
        self._open: dict[RunId, _Open] = {}
        # Cost: a series more for each counter. The package gives its function no types.
        cast("Callable[[], None]", disable_created_metrics)()
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        registry.register(_Asked(gauges))
        self._start_latency = Histogram(
            "horolog_start_latency_seconds", "From due to started, of runs of slots.",
            ("tier", "pool"), buckets=LATENCY_S, registry=registry,
        )  # fmt: skip
        self._fire_latency = Histogram(
            "horolog_fire_latency_seconds", "From due to the first hint to workers.",
            ("tier", "pool"), buckets=LATENCY_S, registry=registry,
        )  # fmt: skip
        self._slots = Counter(
            "horolog_slots", "Slots by outcome: run, or why not.", ("outcome",), registry=registry
        )
        self._runs = Counter(
            "horolog_runs", "Runs that ended, by how.", ("status",), registry=registry
        )
        self._duration = Histogram(
            "horolog_run_duration_seconds", "From an attempt's start to its end.",
            buckets=DURATION_S, registry=registry,
        )  # fmt: skip
        self._expired = Counter(
            "horolog_leases_expired", "Leases that ended without a report.", registry=registry
        )
        self._rejected = Counter(
            "horolog_reports_rejected", "Reports with a dead or wrong token.", registry=registry
        )
        self._suppressed = Counter(
            "horolog_duplicates_suppressed", "Commands that changed nothing, being repeats.",
            registry=registry,
        )  # fmt: skip
        self._dead = Counter(
            "horolog_dead_letters", "Runs that used up their attempts.", registry=registry
        )
        self._quarantined = Counter(
            "horolog_quarantined", "Records set aside.", ("topic",), registry=registry
        )
        self._transaction = Histogram(
            "horolog_transaction_seconds", "Commits of the log.",
            buckets=COMMIT_S, registry=registry,
        )  # fmt: skip
        # Cost: to find a child by its labels takes longer than to count.
        self._fire_latency_of = functools.cache(self._fire_latency.labels)
        self._start_latency_of = functools.cache(self._start_latency.labels)
        self._slots_of = functools.cache(self._slots.labels)
        self._runs_of = functools.cache(self._runs.labels)
        self._handlers: Mapping[type[Event], Callable[[Any], None]] = {
            RunPlanned: self._planned,
            RunStarted: self._started,
            RunSucceeded: self._succeeded,
            AttemptEnded: self._attempt_ended,
            RunDeadLettered: self._dead_lettered,
            RunCancelled: self._cancelled,
            RunSkipped: self._skipped,
            SlotsSkipped: self._range_skipped,
            RunRevoked: self._gone,
            RunRefused: self._refused,
            RunDiscarded: self._discarded,
            ReportRejected: self._report_rejected,
        }

    # --- called by the host, in its thread

    def offer(self, batches: Sequence[Batch]) -> None:
        """Batches were committed; `fold` counts them."""
        self._waiting.append(list(batches))
        if len(self._waiting) > BATCHES_WAITING_MAX:
            self.fold()

    def hints(self, hints: Sequence[Hint], now_us: int) -> None:
        """Runs were offered to workers; `fold` counts them."""
        self._waiting.append((hints, now_us))

    def replied(self, reply: Reply) -> None:
        """A command was answered."""
        if not reply.code and not reply.changed:
            self._suppressed.inc()

    def committed_in(self, seconds: float) -> None:
        """The log took so long to write."""
        self._transaction.observe(seconds)

    # --- called from any thread

    def fold(self) -> None:
        """Count what was offered."""
        with self._lock:
            while self._waiting:
                offered = self._waiting.popleft()
                if isinstance(offered, tuple):
                    self._hinted(*offered)
                    continue
                for batch in offered:
                    for event in batch.events:
                        handler = self._handlers.get(type(event))
                        if handler is not None:
                            handler(event)

    def text(self) -> bytes:
        """Everything, for a scrape."""
        self.fold()
        return generate_latest(self._registry)

    def _hinted(self, hints: Sequence[Hint], now_us: int) -> None:
        for hint in hints:
            run = self._open.get(hint.run_id) if hint.offer == 1 else None
            if run is not None and run.counts and not run.started_us:
                late_s = max(now_us - run.due_us, 0) / US_PER_S
                self._fire_latency_of(run.tier, run.pool).observe(late_s)

    # --- events

    def _planned(self, event: RunPlanned) -> None:
        self._open[event.run_id] = _Open(
            event.due_us, event.tier.value, event.pool, event.origin is RunOrigin.SCHEDULE,
            event.origin is not RunOrigin.BACKFILL,
        )  # fmt: skip

    def _started(self, event: RunStarted) -> None:
        run = self._open.get(event.run_id)
        if run is None:
            # A manual run, or one that was planned before this process began.
            run = self._open[event.run_id] = _Open(event.at_us, "", "", False, False)
        elif run.is_slot:
            self._slots_of("run").inc()
            if run.counts:
                late_s = (event.at_us - run.due_us) / US_PER_S
                self._start_latency_of(run.tier, run.pool).observe(late_s)
            run.is_slot = run.counts = False
        run.started_us = event.at_us

    def _succeeded(self, event: RunSucceeded) -> None:
        self._runs_of("succeeded").inc()
        self._lasted(event.run_id, event.at_us)
        self._open.pop(event.run_id, None)

    def _attempt_ended(self, event: AttemptEnded) -> None:
        if event.outcome is AttemptOutcome.LOST:
            self._expired.inc()
        self._lasted(event.run_id, event.at_us)

    def _lasted(self, run_id: RunId, ended_us: int) -> None:
        run = self._open.get(run_id)
        if run is not None and run.started_us:
            self._duration.observe((ended_us - run.started_us) / US_PER_S)
            run.started_us = 0

    def _dead_lettered(self, event: RunDeadLettered) -> None:
        self._dead.inc()
        self._runs.labels("dead").inc()
        self._open.pop(event.run_id, None)

    def _cancelled(self, event: RunCancelled) -> None:
        self._runs.labels("cancelled").inc()
        run = self._open.pop(event.run_id, None)
        if run is not None and run.is_slot:
            self._slots.labels("cancelled").inc()

    def _skipped(self, event: RunSkipped) -> None:
        run = self._open.pop(event.run_id, None)
        if run is None or run.is_slot:
            self._slots.labels(event.reason.value).inc()

    def _range_skipped(self, event: SlotsSkipped) -> None:
        self._slots.labels(event.reason.value).inc(event.slots_count)

    def _gone(self, event: RunRevoked) -> None:
        self._open.pop(event.run_id, None)

    def _refused(self, event: RunRefused) -> None:
        self._runs.labels("refused").inc()
        self._open.pop(event.run_id, None)

    def _discarded(self, event: RunDiscarded) -> None:
        self._runs.labels("discarded").inc()
        self._open.pop(event.run_id, None)

    def _report_rejected(self, _event: ReportRejected) -> None:
        self._rejected.inc()


class _Asked:
    """The gauges, read at the scrape."""

    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """See `prometheus_client.registry.Collector`."""
        now = self._gauges()
        backlog = GaugeMetricFamily(
            "horolog_backlog_runs", "Runs that are due and not started.", labels=("tier", "pool")
        )
        oldest = GaugeMetricFamily(
            "horolog_oldest_waiting_seconds", "How long the oldest of them waits.",
            labels=("tier", "pool"),
        )  # fmt: skip
        for (pool, tier), (count, oldest_s) in now.backlog.items():
            backlog.add_metric((tier.value, pool), count)
            oldest.add_metric((tier.value, pool), oldest_s)
        yield backlog
        yield oldest
        recovery = GaugeMetricFamily(
            "horolog_partition_recovery_seconds", "How long a recovery took.",
            labels=("partition",),
        )  # fmt: skip
        for partition, took_s in now.recovery_s.items():
            recovery.add_metric((str(partition),), took_s)
        yield recovery
        yield GaugeMetricFamily(
            "horolog_projection_lag_seconds", "Age of the oldest event that no table has yet.",
            value=now.projection_lag_s,
        )  # fmt: skip
        yield GaugeMetricFamily(
            "horolog_snapshot_age_seconds", "Age of the oldest change that no snapshot has yet.",
            value=now.snapshot_age_s,
        )  # fmt: skip
        yield GaugeMetricFamily(
            "horolog_clock_skew_seconds", "What the wall clock shows beyond the time believed.",
            value=now.clock_skew_s,
        )  # fmt: skip
