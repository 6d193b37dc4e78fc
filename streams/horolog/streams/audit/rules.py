"""The rules that a ledger must keep, as data: what each says, why, and what to do when it broke.

`docs/audit.md` holds the table; a test compares the two.
"""

from typing import Final

import msgspec


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that holds in every ledger, or somebody has to look."""

    name: str
    says: str
    why: str
    do: str


_RULES: Final[list[Rule]] = []


def _rule(name: str, says: str, why: str, do: str) -> Rule:
    made = Rule(name=name, says=says, why=why, do=do)
    _RULES.append(made)
    return made


_KEEP: Final = "Stop the server, keep the folder as it is, restore a copy."
_REPORT: Final = "Keep a copy of the folder and report the event with its `seq`."
_LOOK: Final = "Look at the job's runs around the time given; trigger what should have run."
_TWICE: Final = "See whether the target was called twice; it can tell by the fencing token."

# fmt: off
# One rule, four lines: a table is read by column.
LOG_SEQUENCE: Final = _rule("log-sequence",
    "`seq` has no gap, batches are whole, time and epoch never go back, checksums fit",
    "What is proven from a torn or edited log is worth nothing.", _KEEP)
LOG_IDENTITY: Final = _rule("log-identity",
    "Each partition begins with `LogCreated`; all name one log, and generations only rise",
    "Partitions of two logs, or of a copy, give the same token twice.", _KEEP)
EPOCH: Final = _rule("epoch",
    "Each owner begins a higher epoch after all that the one before wrote",
    "Two owners at once would each decide the same slots.", _REPORT)
DISPATCHER_EPOCH: Final = _rule("dispatcher-epoch",
    "The epoch recorded of a dispatcher only rises",
    "Claims by hints of a lost dispatcher would count again, past the quota.", _REPORT)
LEASE_TIME: Final = _rule("lease-time",
    "Lease time never goes back",
    "A lease would end early or never.", _REPORT)
ZONE_RULES: Final = _rule("zone-rules",
    "A zone's rules are recorded before a job uses them, and new ones take effect later",
    "Otherwise a decided slot would move, or nobody could say what the slots were.", _REPORT)
MISPLACED: Final = _rule("misplaced",
    "A job's events stand in the partition that its ID names",
    "Two partitions would own one job.", _REPORT)

JOB_LIFE: Final = _rule("job-life",
    "A job is asked for, created, changed while it exists, deleted, forgotten",
    "An event of a job that does not exist was decided on a wrong state.", _REPORT)
JOB_VERSION: Final = _rule("job-version",
    "Versions count up by one and none is used twice",
    "A run says which definition it kept by its number.", _REPORT)
ACCOUNTED_TO: Final = _rule("accounted-to",
    "`accounted_to_us` never goes back, behind no decided slot, or beyond one that is to come",
    "A slot would belong to two definitions, or to none.", _REPORT)
SCHEDULE_MOVED: Final = _rule("schedule-moved",
    "An update that says that the schedule stays, leaves it",
    "Planned runs would stand for slots that no longer exist.", _REPORT)
SCHEDULE_UNREADABLE: Final = _rule("schedule-unreadable",
    "A stored schedule can be read and has slots",
    "Nobody could say what the slots were.", _REPORT)
LEFT_OPEN: Final = _rule("left-open",
    "Pause, delete and a new schedule first end or revoke what they say they end",
    "A run would start for a job that is paused, gone or has other slots.", _LOOK)

NO_SUCH_SLOT: Final = _rule("no-such-slot",
    "What is planned is a slot of the schedule in force",
    "A run that nobody asked for is as wrong as one that is missing.", _LOOK)
PLANNED_AGAIN: Final = _rule("planned-again",
    "A slot is planned only while it has no outcome and no open run",
    "It would run twice.", _TWICE)
PLANNED_EARLY: Final = _rule("planned-early",
    "Nothing is planned further ahead than the lookahead",
    "Edits inside the lookahead take effect by revoking; beyond it nothing is revoked.", _REPORT)
PLANNED_WHILE_CLOSED: Final = _rule("planned-while-closed",
    "A job that is paused or deleted plans nothing",
    "Its slots are skipped as paused, or do not exist.", _LOOK)
DUE: Final = _rule("due",
    "A run is due at its slot plus the job's jitter",
    "Lateness and deadlines are measured from there.", _REPORT)
MISSED_AS_FRESH: Final = _rule("missed-as-fresh",
    "A slot more than 60 s past due is planned by catch-up only",
    "Catch-up `skip` and `one` would not be kept.", _REPORT)
REVOKED: Final = _rule("revoked",
    "A run is revoked only for a slot to come, and in the batch that changes its job",
    "A slot would be undecided again for no reason.", _REPORT)
RUN_ID: Final = _rule("run-id",
    "A run's ID is made of its job and its slot or key",
    "One slot or key could have two runs.", _REPORT)
SKIP_COUNT: Final = _rule("skip-count",
    "A skipped range names as many slots as the schedule has in it",
    "Either the range or the calendar that decided it is wrong.", _REPORT)
SKIP_REASON: Final = _rule("skip-reason",
    "A reason is one that the job's state and policies allow",
    "A person who asks why a slot did not run gets a wrong answer.", _REPORT)
SKIPPED_YOUNG: Final = _rule("skipped-young",
    "Catch-up skips only what is more than 60 s past due",
    "Younger slots simply run, late.", _LOOK)
COALESCED_INTO: Final = _rule("coalesced-into",
    "A coalesced slot names a later run of its job, which is planned",
    "Otherwise nothing stands for the slot.", _LOOK)
CURSOR: Final = _rule("cursor",
    "What is made up lies in an open cursor of its kind, in order",
    "Slots would be lost or doubled between two steps of a catch-up.", _REPORT)
BACKFILL: Final = _rule("backfill",
    "A backfill covers only slots that were skipped in a range, or lie before the job",
    "A slot that ran would run again.", _TWICE)

RUN_LIFE: Final = _rule("run-life",
    "A run moves as the diagram in docs/architecture.md says",
    "Nothing follows an end but a redrive.", _REPORT)
RUN_NOT_OPEN: Final = _rule("run-not-open",
    "An event of a run is of one that is open",
    "It has ended, was skipped or never was; no lease may be given for it.", _TWICE)
END_MISSING: Final = _rule("end-missing",
    "An attempt after which there is no other is followed by the run's end in its batch",
    "The run would wait for ever.", "Cancel the run, or redrive it.")
KEY_TWICE: Final = _rule("key-twice",
    "One idempotency key has one run within its window",
    "A request that was repeated would run twice.", _TWICE)
OPEN_LIMIT: Final = _rule("open-limit",
    "A job has at most 1,000 open runs",
    "One job would take the memory of all.", _REPORT)
ROUND: Final = _rule("round",
    "A redrive opens the next round of a dead run, and all events of a round name it",
    "Attempts are counted by round.", _REPORT)

TWO_LEASES: Final = _rule("two-leases",
    "A run has at most one live lease",
    "Two workers would execute it at once.", _TWICE)
TOKEN_ORDER: Final = _rule("token-order",
    "Fencing tokens rise, and carry the log's generation",
    "A target could not tell the newer attempt from the older.", _KEEP)
DEAD_TOKEN: Final = _rule("dead-token",
    "Only the live lease's token ends or cancels an attempt",
    "A worker that was given up would decide the result.", _LOOK)
LIVE_REJECTED: Final = _rule("live-rejected",
    "No report of the live lease is rejected",
    "A result would be lost, and the run done again.", _TWICE)
ATTEMPT_NUMBER: Final = _rule("attempt-number",
    "Attempts of a round count from 1 by one; one that was given back does not count",
    "The budget is counted by them.", _REPORT)
VERSION_KEPT: Final = _rule("version-kept",
    "A run keeps the definition of its first grant for the whole round",
    "A retry would execute something else.", _REPORT)
START_EARLY: Final = _rule("start-early",
    "No attempt starts before its run is due",
    "A job that must not run before an instant did.", _LOOK)
RETRY_EARLY: Final = _rule("retry-early",
    "No attempt starts before the back-off of the one before has passed",
    "A target that is down is hammered.", _REPORT)
START_WHILE_CLOSED: Final = _rule("start-while-closed",
    "No attempt starts while its job is paused or after it was deleted",
    "Somebody switched it off.", _LOOK)
START_TOO_LATE: Final = _rule("start-too-late",
    "No slot's run starts after its starting deadline",
    "The job said that it must not run that late.", _LOOK)
NOT_LET_THROUGH: Final = _rule("not-let-through",
    "A run of a job that may not overlap starts only once the policy has let it through",
    "The policy was not judged.", _REPORT)
OVERLAP: Final = _rule("overlap",
    "A job that may not overlap never has two open attempts",
    "That is what the policy is for.", _TWICE)
OVER_BUDGET: Final = _rule("over-budget",
    "No retry follows when the attempts of the policy are used up",
    "The run would be tried for ever.", "Cancel the run.")
BACK_OFF: Final = _rule("back-off",
    "A retry is planned no earlier than the policy's delay",
    "A target that is down is hammered.", _REPORT)
RETRY_AFTER_END: Final = _rule("retry-after-end",
    "No retry follows a cancel, or the end of the job",
    "Somebody wanted it to end.", "Cancel the run again.")
CANCEL_UNASKED: Final = _rule("cancel-unasked",
    "An attempt ends as cancelled only if that was asked for",
    "A failure would not count.", _REPORT)
LOST_EARLY: Final = _rule("lost-early",
    "A lease is lost only when lease time has passed its term since the grant",
    "A healthy worker's run would be given to another.", _TWICE)
# fmt: on

RULES: Final[tuple[Rule, ...]] = tuple(_RULES)


def table() -> str:
    """The rules as a table for docs/audit.md."""
    lines = ["| rule | what holds | why | when it broke |", "| --- | --- | --- | --- |"]
    lines += [f"| `{rule.name}` | {rule.says} | {rule.why} | {rule.do} |" for rule in RULES]
    return "\n".join(lines) + "\n"
