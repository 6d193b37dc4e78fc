"""The audit: proves from the log alone that every slot of every job has exactly one outcome.

It recomputes the slots from the definitions in force, with the zone rules the log recorded, and
matches them with what the events say became of them; and it checks the invariants that a ledger
can show (`rules`). It shares with the scheduler the schemas, the calendar and the numbers in
`limits`, and no line of code besides: it must be able to find the scheduler wrong.

    proof         reads, one event after another, and closes the books at the end
    accounts      which slots of a job have no outcome yet
    state         what is open, and no more
    partitions, jobs, slots, lives, leases    handlers of the events, a concern each
    closing       what is left at the end
    rules         what must hold, why, and what to do when it did not
    report        what was found

A slot may be undecided when the log ends if its run waits, if it lies in an open cursor, if its job
is paused, or if it is younger than 5 s. After a crash the owner that takes over has those 5 s for
what came while nobody was there; until then only what the owner before had to decide is demanded.
"""

from horolog.streams.audit.proof import audit
from horolog.streams.audit.report import Doubled, Report, Unexplained, Violation
from horolog.streams.audit.rules import RULES, Rule

__all__ = ["RULES", "Doubled", "Report", "Rule", "Unexplained", "Violation", "audit"]
