"""What an agent does about its claims and leases, with time in the test's hand."""

from collections.abc import Iterable
from typing import TypeVar

from horolog.schemas.records import (
    ClaimRefused,
    ClaimRun,
    CompleteRun,
    Grant,
    Heartbeat,
    Hint,
    RefusalReason,
    ReleaseRun,
    ReportAnswered,
    ReportKind,
    RunResult,
    StopReason,
    StopRun,
    Target,
    Verdict,
)
from horolog.workers.leases import Delivered, Leases, Order, Outcome, Send, Start, Stop, Why
from tests.builders.grants import RUN, grant

S = 1_000_000
R = TypeVar("R")
DONE = Outcome(result=RunResult.SUCCEEDED)


class Desk:
    """An agent's core with its clock."""

    def __init__(self, slots: int = 2) -> None:
        self.at_us = 1_000 * S
        self.count = 0
        self.leases = Leases(
            worker_id="w1", inbox="w1", slots=slots, new_claim_id=self._new_claim_id
        )

    def _new_claim_id(self) -> str:
        self.count += 1
        return f"c{self.count}"

    def claim(self) -> list[Order]:
        """Claim one run."""
        hint = Hint(run_id=RUN, partition=3, plan=5, dispatcher=0, epoch=2, valid_until_us=1 << 60)
        return list(self.leases.claim([hint], self.at_us))

    def deliver(self, message: Delivered) -> list[Order]:
        """A message comes."""
        return list(self.leases.deliver(message, self.at_us, self.at_us))

    def running(self) -> Grant:
        """Claim a run and get it."""
        self.claim()
        given = grant(Target(handler="x"), claim_id=f"c{self.count}")
        assert isinstance(self.deliver(given)[0], Start)
        return given

    def pass_time(self, us: int) -> list[Order]:
        """Time passes, a tick each half second."""
        orders: list[Order] = []
        end = self.at_us + us
        while self.at_us < end:
            self.at_us += S // 2
            orders += self.leases.tick(self.at_us)
        return orders


def reports(orders: Iterable[Order], kind: type[R]) -> list[R]:
    """Reports of a kind among orders."""
    return [
        order.report
        for order in orders
        if isinstance(order, Send) and isinstance(order.report, kind)
    ]


def answer(given: Grant, kind: ReportKind, verdict: Verdict) -> ReportAnswered:
    """The scheduler's answer to a report."""
    return ReportAnswered(
        run_id=given.run_id,
        token=given.token,
        claim_id=given.claim_id,
        inbox="w1",
        kind=kind,
        verdict=verdict,
    )


def test_claim_is_repeated_each_second_until_it_is_answered() -> None:
    desk = Desk()
    first = reports(desk.claim(), ClaimRun)
    again = reports(desk.pass_time(3 * S), ClaimRun)
    assert again == first * 3
    desk.deliver(ClaimRefused(run_id=RUN, claim_id="c1", inbox="w1", reason=RefusalReason.TAKEN))
    assert not desk.pass_time(3 * S)
    assert desk.leases.free == 2


def test_grant_counts_once_and_only_for_a_claim_that_is_out() -> None:
    desk = Desk()
    given = desk.running()
    assert desk.deliver(given) == []
    assert desk.deliver(grant(Target(handler="x"), claim_id="unknown")) == []
    assert desk.leases.executing == 1


def test_grant_of_a_claim_older_than_a_third_of_the_term_is_given_back() -> None:
    desk = Desk()
    desk.claim()
    desk.pass_time(11 * S)
    orders = desk.deliver(grant(Target(handler="x")))
    assert reports(orders, ReleaseRun)
    assert not [order for order in orders if isinstance(order, Start)]


def test_claim_that_came_too_early_is_sent_again_when_it_is_time() -> None:
    desk = Desk()
    desk.claim()
    desk.deliver(
        ClaimRefused(
            run_id=RUN,
            claim_id="c1",
            inbox="w1",
            reason=RefusalReason.NOT_YET,
            retry_at_us=desk.at_us + 2 * S,
        )
    )
    assert not desk.pass_time(S)
    assert len(reports(desk.pass_time(S), ClaimRun)) == 1


def test_heartbeats_leave_every_ten_seconds_and_each_second_while_unanswered() -> None:
    desk = Desk()
    given = desk.running()
    assert not reports(desk.pass_time(9 * S), Heartbeat)
    assert len(reports(desk.pass_time(3 * S), Heartbeat)) == 3
    desk.deliver(answer(given, ReportKind.HEARTBEAT, Verdict.ACCEPTED))
    # The lease counts from the first copy, sent 2.5 s ago or less; the next is due 10 s after it.
    assert not reports(desk.pass_time(7 * S), Heartbeat)
    assert reports(desk.pass_time(2 * S), Heartbeat)


def test_run_is_fenced_before_its_lease_can_end() -> None:
    desk = Desk()
    desk.running()
    begun = desk.at_us
    orders: list[Order] = []
    while not [order for order in orders if isinstance(order, Stop)]:
        orders += desk.pass_time(S // 2)
    # Term 30 s, kill grace 5 s, margin 3 s.
    assert 21.5 * S <= desk.at_us - begun <= 22.5 * S
    assert not reports(desk.leases.ended("c1", DONE, desk.at_us), CompleteRun)
    assert desk.leases.is_idle


def test_acknowledged_heartbeats_keep_a_run_for_hours() -> None:
    desk = Desk()
    given = desk.running()
    for _ in range(1_000):
        orders = desk.pass_time(S)
        assert not [order for order in orders if isinstance(order, Stop)]
        if reports(orders, Heartbeat):
            desk.deliver(answer(given, ReportKind.HEARTBEAT, Verdict.ACCEPTED))


def test_cancel_stops_the_run_and_its_end_is_reported() -> None:
    desk = Desk()
    given = desk.running()
    stop = StopRun(
        run_id=RUN,
        token=given.token,
        claim_id=given.claim_id,
        inbox="w1",
        reason=StopReason.CANCELLED,
    )
    assert desk.deliver(stop) == [Stop("c1", Why.CANCELLED)]
    assert desk.deliver(stop) == []
    ended = list(desk.leases.ended("c1", Outcome(result=RunResult.CANCELLED), desk.at_us))
    assert [report.result for report in reports(ended, CompleteRun)] == [RunResult.CANCELLED]


def test_completion_is_repeated_until_it_is_answered() -> None:
    desk = Desk()
    given = desk.running()
    assert len(reports(desk.leases.ended("c1", DONE, desk.at_us), CompleteRun)) == 1
    assert len(reports(desk.pass_time(3 * S), CompleteRun)) == 3
    desk.deliver(answer(given, ReportKind.COMPLETE, Verdict.ACCEPTED))
    assert not desk.pass_time(3 * S)
    assert desk.leases.is_idle


def test_stale_heartbeat_stops_the_run_and_nothing_is_reported() -> None:
    desk = Desk()
    given = desk.running()
    assert desk.deliver(answer(given, ReportKind.HEARTBEAT, Verdict.STALE)) == [
        Stop("c1", Why.LEASE_LOST)
    ]
    assert not list(desk.leases.ended("c1", DONE, desk.at_us))


def test_drain_claims_nothing_gives_late_grants_back_and_ends_what_runs() -> None:
    desk = Desk()
    desk.running()
    desk.claim()
    desk.leases.drain()
    assert desk.leases.free == 0
    assert reports(desk.deliver(grant(Target(handler="x"), claim_id="c2")), ReleaseRun)
    assert list(desk.leases.stop_all()) == [Stop("c1", Why.DRAINED)]
    ended = desk.leases.ended("c1", Outcome(result=RunResult.CANCELLED), desk.at_us)
    assert reports(ended, ReleaseRun)


def test_slots_bound_what_is_claimed_and_executed() -> None:
    desk = Desk(slots=2)
    desk.running()
    desk.claim()
    assert desk.leases.free == 0


def test_same_token_of_two_partitions_is_two_runs() -> None:
    desk = Desk()
    first, second = desk.running(), desk.running()
    assert first.token == second.token
    assert desk.leases.executing == 2
    list(desk.leases.ended(first.claim_id, DONE, desk.at_us))
    assert desk.leases.executing == 1


def test_agent_while_a_lost_run_is_being_killed_has_nothing_to_wake_for() -> None:
    desk = Desk()
    given = desk.running()
    desk.at_us += given.term_us
    assert [type(order) for order in desk.leases.tick(desk.at_us)] == [Stop]
    # A wake-up that changes nothing would be a loop without rest until the program has ended.
    assert desk.leases.next_us() is None


def test_agent_of_a_cancelled_run_wakes_for_its_fence() -> None:
    desk = Desk()
    given = desk.running()
    stop = StopRun(
        run_id=RUN,
        token=given.token,
        claim_id=given.claim_id,
        inbox="w1",
        reason=StopReason.CANCELLED,
    )
    assert [type(order) for order in desk.deliver(stop)] == [Stop]
    wakes: list[int] = []
    while (next_us := desk.leases.next_us()) is not None:
        wakes.append(next_us)
        desk.at_us = next_us
        list(desk.leases.tick(desk.at_us))
    assert wakes[-1] <= 1_000 * S + given.term_us - given.kill_grace_us - 3 * S


def test_lease_with_a_long_kill_grace_is_renewed_before_the_run_is_fenced() -> None:
    desk = Desk()
    desk.claim()
    given = grant(Target(handler="x"), claim_id="c1", term_us=10_000_000, kill_grace_us=4_900_000)
    assert isinstance(desk.deliver(given)[0], Start)
    # It would be fenced after 2.1 s.
    orders = desk.pass_time(2_000_000)
    assert orders
    assert {type(order) for order in orders} == {Send}
