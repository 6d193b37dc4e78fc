"""The dispatcher: quotas, turns, windows, re-offers, admission, takeover, digests."""

from collections import Counter
from itertools import pairwise

from horolog.schemas import errors
from horolog.schemas.ids import tenant_of
from horolog.schemas.records import (
    DispatchStatus,
    EpochSuperseded,
    JobAsk,
    JobId,
    RunStates,
    TenantId,
    TenantJobs,
)
from horolog.streams.dispatcher import Dispatcher, StandingStatus
from horolog.streams.limits import SECOND_US
from horolog.workers.ready import ReadyQueues
from tests.builders.dispatch import EPOCH, START_US, TICK_US, Desk, moved, waiting


def test_run_is_offered_when_it_is_due_and_not_before() -> None:
    desk = Desk()
    desk.tell([waiting("a", due_us=START_US + SECOND_US)])
    assert not desk.tick(SECOND_US - 1)
    assert [hint.run_id for hint in desk.tick(1)] == ["acme.job@a"]


def test_hint_that_nobody_claims_is_offered_again_later_each_time() -> None:
    desk = Desk()
    desk.tell([waiting("a")])
    offered: list[int] = []
    for turn in range(400):
        # Workers are there and claim what else is offered.
        desk.tell([waiting(f"other-{turn}")])
        hints = desk.tick(TICK_US)
        if "acme.job@a" in [hint.run_id for hint in hints]:
            offered.append(desk.now_us - START_US)
        others = [hint for hint in hints if hint.run_id != "acme.job@a"]
        desk.start(others)
        desk.end(hint.run_id for hint in others)
    gaps = [round((b - a) / SECOND_US, 1) for a, b in pairwise(offered)]
    assert gaps == [1.5, 3.0, 6.0]


def test_run_that_is_closed_or_held_is_offered_no_more() -> None:
    desk = Desk()
    run = waiting("a", due_us=START_US + SECOND_US)
    desk.tell([run])
    desk.tell([moved(run, DispatchStatus.CLOSED)])
    assert not desk.tick(2 * SECOND_US)


def test_q01_tenant_with_one_run_does_not_wait_for_a_flood() -> None:
    desk = Desk()
    ready = ReadyQueues()
    desk.tell([waiting(f"a{number:04}", "flood") for number in range(1000)])
    ready.offer(desk.tick())
    desk.start(ready.take(10, desk.now_us))
    desk.tell([waiting("b", "small")])
    ready.offer(desk.tick())
    started_between = 0
    # Ten slots: each second ten runs end and ten hints are claimed.
    while "small.job@b" not in desk.started():
        desk.end(desk.started())
        ready.offer(desk.tick(SECOND_US))
        desk.start(ready.take(10, desk.now_us))
        started_between += 10
    assert started_between <= 20


def test_q05_quota_is_a_set_and_a_repeated_end_frees_nothing_twice() -> None:
    desk = Desk()
    desk.limit("acme", concurrency=2)
    desk.tell([waiting(f"r{number}") for number in range(1, 6)])
    first = desk.tick()
    assert len(first) == 2
    desk.start(first)
    desk.end([first[0].run_id])
    desk.end([first[0].run_id])
    desk.end([first[0].run_id])
    assert len(desk.tick()) == 1
    assert not desk.tick(TICK_US)


def test_q07_made_up_runs_come_after_fresh_ones_and_at_a_bounded_rate() -> None:
    desk = Desk()
    desk.tell(
        [
            waiting(f"m{number:04}", f"t{number % 5}", due_us=START_US - number, make_up=True)
            for number in range(500)
        ]
    )
    starts = Counter[int]()
    tenants = set[str]()
    for turn in range(60 * 20):
        hints = desk.tick(TICK_US)
        starts[turn // 20] += len(hints)
        if turn < 20:
            tenants |= {tenant_of(hint.run_id) for hint in hints}
        desk.start(hints)
        desk.end(hint.run_id for hint in hints)
    assert starts.total() == 500
    assert max(starts.values()) <= 25
    assert tenants == {"t0", "t1", "t2", "t3", "t4"}
    desk.tell([waiting(f"n{number:04}", "t0", make_up=True) for number in range(100)])
    desk.tell([waiting("fresh", "t0", due_us=desk.now_us)])
    assert "t0.job@fresh" in [hint.run_id for hint in desk.tick()]


def test_window_widens_while_hints_are_claimed_fast_and_narrows_when_not() -> None:
    desk = Desk()
    desk.tell([waiting(f"r{number:05}") for number in range(5000)])
    sizes: list[int] = []
    for _ in range(8):
        hints = desk.tick(TICK_US)
        sizes.append(len(hints))
        desk.start(hints)
        desk.end(hint.run_id for hint in hints)
    assert sizes == [16, 32, 64, 128, 256, 512, 1024, 2048]
    left = desk.tick(TICK_US)
    desk.tick(2 * SECOND_US)
    desk.end(hint.run_id for hint in left)
    desk.tell([waiting(f"s{number:05}") for number in range(100)])
    assert len(desk.tick(TICK_US)) == 4


def test_backlog_limit_admits_exactly_so_many_and_answers_again_when_asked_again() -> None:
    desk = Desk()
    desk.limit("acme", backlog=3)
    asked = [waiting(f"m{number}", status=DispatchStatus.PENDING) for number in range(5)]
    desk.tell(asked)
    desk.tick()
    answers = desk.answers()
    assert [answer.admitted for answer in answers] == [True, True, True, False, False]
    assert {answer.code for answer in answers[3:]} == {errors.BACKLOG_FULL.slug}
    desk.tell(asked[:1])
    desk.tick()
    assert [answer.admitted for answer in desk.answers()] == [True]


def test_job_limit_counts_jobs_of_all_partitions_and_those_just_admitted() -> None:
    desk = Desk()
    desk.limit("acme", jobs=3)
    asks = tuple(
        JobAsk(tenant=TenantId("acme"), job_id=JobId(f"acme.j{number}")) for number in range(3)
    )
    desk.dispatcher.receive(
        RunStates(
            partition=0,
            writer_epoch=1,
            seq=desk.seq + 1,
            tenants=(TenantJobs(tenant=TenantId("acme"), jobs_count=1),),
            asks=asks,
        ),
        desk.now_us,
    )
    desk.tick()
    assert [answer.admitted for answer in desk.answers()] == [True, True, False]


def test_message_older_than_what_was_read_changes_nothing() -> None:
    desk = Desk()
    run = waiting("a")
    desk.tell([run])
    old = desk.seq
    desk.tell([moved(run, DispatchStatus.CLOSED)])
    desk.tell([run], seq=old)
    assert not desk.tick()


def test_new_dispatcher_that_is_not_told_asks_every_partition_each_second() -> None:
    dispatcher = Dispatcher(dispatcher=0, epoch=7, ledger_partitions=2)
    asked = [dispatcher.tick(START_US + second * SECOND_US) for second in range(3)]
    assert [len(questions) for questions in asked] == [2, 2, 2]


def test_dispatcher_that_learns_of_a_newer_epoch_stops() -> None:
    desk = Desk()
    desk.tell([waiting("a")])
    desk.dispatcher.receive(
        EpochSuperseded(partition=0, writer_epoch=1, seq=9, dispatcher=0, epoch=EPOCH + 1),
        desk.now_us,
    )
    assert not desk.tick()
    assert desk.dispatcher.superseded_by == EPOCH + 1


def test_why_a_run_has_not_started_is_told() -> None:
    desk = Desk()
    desk.limit("acme", concurrency=1)
    desk.tell([waiting("a"), waiting("b", due_us=START_US + 1), waiting("c", due_us=START_US + 2)])
    desk.start(desk.tick(2))
    standing = desk.dispatcher.explain(waiting("c").run_id, desk.now_us)
    assert (standing.status, standing.holding, standing.quota) == (
        StandingStatus.AT_QUOTA,
        1,
        1,
    )
    assert standing.ahead == 1
