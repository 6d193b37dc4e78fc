"""Projections: tables folded from the ledger, to be queried. Derived, never the truth.

    events ─► fold (jobs, history: pure) ─► rows by key ─► store (SQLite; Cassandra later)
                                                             └─► queries ─► API

Any of it may be deleted and is rebuilt from the ledger. `logs` is beside it: what runs printed is
not in the ledger.
"""
