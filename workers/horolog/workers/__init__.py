"""Workers: what executes runs.

ready      hints by tier, drained 70/20/10
leases     claims, heartbeats, fences: pure
agent      the thread around it
executors  http, command, handler
sdk        functions as jobs: `from horolog.workers import Worker`
"""

from typing import TYPE_CHECKING, Any

from horolog.workers.context import Context, NoRetry

if TYPE_CHECKING:
    from horolog.workers.sdk import Worker

__all__ = ["Context", "NoRetry", "Worker"]


def __getattr__(name: str) -> Any:
    # The HTTP client is heavy, and the agent of `horolog up` does not need the SDK.
    if name == "Worker":
        from horolog.workers import sdk

        return sdk.Worker
    raise AttributeError(name)
