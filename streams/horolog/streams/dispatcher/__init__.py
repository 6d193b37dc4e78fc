"""The dispatcher: a disposable index of the open runs of its tenants.

It owns what needs a tenant's whole view: the concurrency quota, the backlog and job limits, the
order of release, and how many hints are out. It keeps no log: when it is lost, the schedulers fill
the next one. Pure: no I/O, no clock, no randomness.

    RunStates, marks, digests ─► sources (what each ledger partition told, in which order)
                                    │
                                 index ─► tenants (quota as a set, limits)
                                    └──► queues (pool and tier: turns, window, re-offers) ─► hints
"""

from horolog.streams.dispatcher.index import Dispatcher, Outgoing, Standing

__all__ = ["Dispatcher", "Outgoing", "Standing"]
