"""The log: ledger partitions of batches, and the snapshots that go with them.

One protocol, several implementations, one conformance suite (`tests/conformance/log`). A batch is
written whole or not at all; every reader checks what it reads (`check`).
"""

from horolog.streams.log.check import check_not_behind
from horolog.streams.log.protocol import Batch, Log, SnapshotRecord

__all__ = ["Batch", "Log", "SnapshotRecord", "check_not_behind"]
