"""What an owner tells the outside: answers given at once, and orders to its sender.

Each is a state or an answer that can be derived again, so it may be lost or doubled. The host
groups them by target, one record a step, and stamps the record with (partition, writer_epoch,
seq).
"""

import msgspec

from horolog.schemas.records import (
    ClaimRefused,
    EpochSuperseded,
    Grant,
    JobAsk,
    Reply,
    ReportAnswered,
    RunState,
    StopRun,
    TenantJobs,
)


class Resend(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Order to the host: tell a dispatcher the state of its open runs, some a step.

    `buckets` empty: an inventory, with begin and end mark, for a dispatcher of this epoch.
    Otherwise only the open runs of these buckets (`dispatcher.digest`).
    """

    dispatcher: int
    epoch: int
    buckets: tuple[int, ...] = ()


WorkerMessage = Grant | ClaimRefused | ReportAnswered | StopRun
DispatcherMessage = RunState | JobAsk | TenantJobs | EpochSuperseded
Message = WorkerMessage | DispatcherMessage | Reply | Resend
