"""Executors: what carries out a granted attempt, one module a kind of target.

All obey `protocol.Executor` and pass `tests/conformance/workers`.
"""

from horolog.workers.executors.protocol import Executor, StopSignal

__all__ = ["Executor", "StopSignal"]
