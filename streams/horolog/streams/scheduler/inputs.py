"""What a partition's owner decides over: commands, reports, answers, and the passing of time."""

import msgspec

from horolog.schemas.records import (
    AdmissionAnswer,
    ClaimRun,
    Command,
    CompleteRun,
    Heartbeat,
    InventoryWanted,
    JobId,
    ReleaseRun,
    RepairWanted,
    ZoneRules,
)


class Wake(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The instant has come at which a job has something to decide (`wake.wake_us`)."""

    job_id: JobId


class LeaseCheck(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A mark was read and lease time has moved: leases may have ended."""


class ZonesSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The rules the host has for zones that the partition uses or is about to use.

    Rules of a zone that is new to the partition hold since ever; changed ones from an instant the
    host proposes (the zone's next local midnight at least a minute away).
    """

    version: str
    zones: tuple[ZoneRules, ...]


Report = ClaimRun | Heartbeat | CompleteRun | ReleaseRun
Answer = AdmissionAnswer | InventoryWanted | RepairWanted
Input = Command | Report | Answer | Wake | LeaseCheck | ZonesSeen
