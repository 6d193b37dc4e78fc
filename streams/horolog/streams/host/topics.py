"""Topics of a log that several processes share: names, keys, and which records belong where.

A prefix of the operator's (`horolog.` by default) comes before each name; only the adapter of a
broker adds it. Keys are spread over partitions by `ids.partition_of`.
"""

from collections.abc import Mapping
from typing import Final

from horolog.schemas.records import (
    AdmissionAnswer,
    BackfillJob,
    CancelRun,
    ClaimRuns,
    CompleteRuns,
    CreateJob,
    DeleteJob,
    DigestSent,
    DiscardRun,
    EpochSuperseded,
    Heartbeats,
    InventoryBegan,
    InventoryEnded,
    InventoryWanted,
    Mark,
    PauseJob,
    RedriveRun,
    ReleaseRuns,
    RepairWanted,
    ResumeJob,
    RunStates,
    TenantSettings,
    Tier,
    TriggerJob,
    UpdateJob,
)

COMMANDS: Final = "job-commands"
REPORTS: Final = "job-reports"
ANSWERS: Final = "job-answers"
EVENTS: Final = "job-events"
SNAPSHOTS: Final = "job-snapshots"
RUN_STATES: Final = "run-states"
DISPATCH_EPOCHS: Final = "dispatch-epochs"
TENANT_SETTINGS: Final = "tenant-settings"
INBOX: Final = "worker-inbox"
REPLIES: Final = "command-replies"
QUARANTINE: Final = "quarantine"

SCHEDULER_READS: Final = (ANSWERS, REPORTS, COMMANDS)
"""Inputs of a ledger partition, in the order in which a step reads them. Each has as many
partitions as the ledger.
"""

RECORDS: Final[Mapping[str, frozenset[type]]] = {
    COMMANDS: frozenset(
        {
            CreateJob, UpdateJob, DeleteJob, PauseJob, ResumeJob, TriggerJob, BackfillJob,
            CancelRun, RedriveRun, DiscardRun,
        }
    ),
    REPORTS: frozenset({ClaimRuns, Heartbeats, CompleteRuns, ReleaseRuns, Mark}),
    ANSWERS: frozenset({AdmissionAnswer, InventoryWanted, RepairWanted}),
    RUN_STATES: frozenset(
        {RunStates, InventoryBegan, InventoryEnded, DigestSent, EpochSuperseded}
    ),
    TENANT_SETTINGS: frozenset({TenantSettings}),
}  # fmt: skip
"""What may stand in a topic that somebody decides by; anything else is quarantined."""


def ready_topic(pool: str, tier: Tier) -> str:
    """Topic of the hints of a pool and tier."""
    return f"run-ready.{pool}.{tier.value}"
