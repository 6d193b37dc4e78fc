"""Why a run has not started, and what waits where."""

from horolog.schemas.records import Tier
from horolog.streams.dispatcher import Backlog, StandingStatus
from horolog.streams.limits import SECOND_US
from tests.unit.dispatcher.rig import T0, Rig, a_run, pending, settings, started


def said(rig: Rig, name: str | int, tenant: str = "acme") -> tuple[StandingStatus, str]:
    standing = rig.index.explain(a_run(name, tenant).run_id, rig.now_us)
    return standing.status, standing.reason


def test_standing_of_a_run_nobody_told_of_is_unknown() -> None:
    status, reason = said(Rig(), "x")
    assert status is StandingStatus.UNKNOWN
    assert reason.startswith("the dispatcher knows of no such run")


def test_standing_of_a_run_before_its_time_says_how_long() -> None:
    rig = Rig()
    rig.tell(a_run(1, at_us=T0 + 12 * SECOND_US))
    assert said(rig, 1) == (StandingStatus.NOT_DUE, "waits until it is due, in 12.0 s")


def test_standing_of_a_run_at_the_quota_says_the_count_and_the_place() -> None:
    rig = Rig(limits=[settings(concurrency=10)])
    rig.tell(*(a_run(f"{n:02}") for n in range(50)))
    rig.tick()
    assert said(rig, "12") == (
        StandingStatus.AT_QUOTA,
        (
            "the tenant is at its quota, 10 of 10; 3rd of 40 of its tenant in tier normal, "
            "1 tenants take turns"
        ),
    )


def test_standing_of_a_run_behind_the_window_says_what_is_out() -> None:
    rig = Rig()
    rig.tell(*(a_run(f"{n:02}") for n in range(50)), a_run(1, "b"))
    rig.tick()
    status, reason = said(rig, "20")
    assert status is StandingStatus.IN_LINE
    assert reason == (
        "6th of 35 of its tenant in tier normal, 1 tenants take turns; 16 hints are out, "
        "16 at most; pool 'default' has shown no claim yet"
    )


def test_standing_of_an_unclaimed_run_says_since_when_and_that_nobody_claims() -> None:
    rig = Rig()
    rig.tell(a_run(1), a_run(2))
    rig.tick()
    rig.tell(started(a_run(2)))
    rig.tick(1_000)
    standing = rig.index.explain(a_run(1).run_id, rig.now_us)
    assert (standing.offers, standing.offered_us, standing.claimed_us) == (1, T0, T0)
    assert said(rig, 1) == (
        StandingStatus.OFFERED,
        "a hint is out since 1.0 s, unclaimed; the last claim of pool 'default' was 1.0 s ago",
    )


def test_standing_while_open_runs_are_not_all_known_says_which_partitions_are_missing() -> None:
    rig = Rig(3, limits=[settings(concurrency=1)], ready=False)
    rig.tick()
    rig.inventory(1, a_run(1))
    rig.tick()
    assert said(rig, 1) == (
        StandingStatus.UNKNOWN_QUOTA,
        "waits until all open runs are known; ledger partitions missing: 0, 2",
    )


def test_standing_of_asked_for_runs_says_what_the_backlog_limit_did() -> None:
    rig = Rig(limits=[settings(backlog=0)])
    rig.tell(pending(a_run(1)))
    assert said(rig, 1)[0] is StandingStatus.UNDECIDED
    rig.tick()
    assert said(rig, 1)[0] is StandingStatus.REFUSED


def test_standing_of_a_started_run_is_started() -> None:
    rig = Rig()
    rig.tell(started(a_run(1)))
    assert said(rig, 1) == (StandingStatus.STARTED, "a worker holds it")


def test_explaining_a_run_changes_nothing() -> None:
    rig = Rig()
    rig.tell(started(a_run(1, "new", pool="never seen")))
    rig.index.explain(a_run(1, "new").run_id, rig.now_us)
    assert rig.index.backlog() == {}


def test_backlog_by_pool_and_tier_counts_what_is_due_and_its_oldest() -> None:
    rig = Rig()
    rig.tell(*(a_run(f"{n:02}", due_us=T0 - n) for n in range(20)))
    rig.tell(a_run("later", at_us=T0 + SECOND_US), a_run("low", tier=Tier.LOW, pool="batch"))
    rig.tick()
    found = rig.index.backlog()
    assert found["default", Tier.NORMAL] == Backlog(waiting=4, offered=16, oldest_due_us=T0 - 19)
    assert found["batch", Tier.LOW] == Backlog(waiting=0, offered=1, oldest_due_us=T0)
    assert found["default", Tier.HIGH] == Backlog()
    rig.tick(3_000)
    assert rig.index.backlog()["batch", Tier.LOW].offered == 1
