"""The scheduler: pure functions over the state of one ledger partition.

    decide(state, soft, input, now)  -> events and answers     reads only
    evolve(state, event)                                       the only writer
    react(state, events)             -> messages               after the commit, on the owner only
    wake_us(state, job, after)       -> when a job has something to decide

Start reading at `lifecycle` (the life of a run, as data), then `decide_slots` and `decide_leases`.
"""

from horolog.streams.scheduler.decide import decide
from horolog.streams.scheduler.evolve import evolve
from horolog.streams.scheduler.react import react
from horolog.streams.scheduler.state import Job, PartitionState, Run, Soft
from horolog.streams.scheduler.wake import wake_us

__all__ = ["Job", "PartitionState", "Run", "Soft", "decide", "evolve", "react", "wake_us"]
