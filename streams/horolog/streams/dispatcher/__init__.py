"""The dispatcher: a disposable index of the open runs of its tenants.

It owns what needs a tenant's whole view: the concurrency quota, the backlog and job limits, the
order of release, and how many hints are out. It keeps no log: when it is lost, the schedulers fill
the next one. Pure: no I/O, no clock, no randomness.

    states, marks, digests ─► sources    what each ledger partition told, and whether all of it
                                 │
                               index ─► tenants     who holds the quota, what waits
                                 ├────► admission   answers by the backlog and job limits
                                 └────► queues      turns, window, re-offers ─► hints
"""

from horolog.streams.dispatcher.index import Dispatcher, Incoming, Outgoing
from horolog.streams.dispatcher.standing import Backlog, Standing, StandingStatus

__all__ = ["Backlog", "Dispatcher", "Incoming", "Outgoing", "Standing", "StandingStatus"]
