"""The only writer of a partition's folded state. Total: it cannot refuse, only crash on a broken
invariant. All it needs is in the event, so a replay consults no clock, calendar or tzdata.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from horolog.schemas.records import (
    DispatcherEpochRecorded,
    EpochStarted,
    Event,
    InputsRead,
    LogCreated,
    TzdataChanged,
    ZoneRules,
)
from horolog.streams.calendar import Zones
from horolog.streams.scheduler import evolve_jobs, evolve_runs, evolve_slots
from horolog.streams.scheduler.state import PartitionState


def evolve(state: PartitionState, event: Event) -> None:
    """Apply one stamped event; events come in order of `seq`, without a gap."""
    assert event.seq == state.seq + 1, f"seq {event.seq} follows {state.seq}"
    state.seq = event.seq
    state.at_us = event.at_us
    HANDLERS[type(event)](state, event)


def apply(state: PartitionState, event: Event) -> None:
    """Apply one event without moving the partition's `seq`: for a recovery, which starts each job
    from a snapshot of its own `seq` and knows which events its jobs still lack.
    """
    HANDLERS[type(event)](state, event)


def _log_created(state: PartitionState, event: LogCreated) -> None:
    state.log_id = event.log_id
    state.generation = event.generation
    state.partitions = event.partitions
    state.tzdata = event.tzdata


def _epoch_started(state: PartitionState, event: EpochStarted) -> None:
    state.writer_epoch = event.writer_epoch


def _inputs_read(state: PartitionState, event: InputsRead) -> None:
    state.positions.update(event.positions)
    state.lease_time_us = event.lease_time_us


def _dispatcher_epoch(state: PartitionState, event: DispatcherEpochRecorded) -> None:
    state.dispatcher_epochs[event.dispatcher] = event.epoch


def _tzdata_changed(state: PartitionState, event: TzdataChanged) -> None:
    state.tzdata = event.version
    state.zone_rules.extend(event.zones)
    state.zones = with_rules(state.zones, state.zone_rules, {rules.zone for rules in event.zones})
    state.next_slots.clear()


def with_rules(zones: Zones, rules: Sequence[ZoneRules], names: Iterable[str]) -> Zones:
    """The zones with the rules of those named replaced by what the list holds for them."""
    for name in sorted(names):
        zones = zones.load(
            name, [(each.effective_us, each.rules) for each in rules if each.zone == name]
        )
    return zones


# By type and not by `match`, which takes ten times as long over so many cases (style page). A test
# holds that none is missing. Each handler takes its own event type, which a dict cannot say.
HANDLERS: Mapping[type[Event], Callable[[PartitionState, Any], None]] = {
    LogCreated: _log_created,
    EpochStarted: _epoch_started,
    InputsRead: _inputs_read,
    DispatcherEpochRecorded: _dispatcher_epoch,
    TzdataChanged: _tzdata_changed,
    **evolve_jobs.HANDLERS,
    **evolve_slots.HANDLERS,
    **evolve_runs.HANDLERS,
}
