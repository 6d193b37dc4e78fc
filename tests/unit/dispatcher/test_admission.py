"""Admission of manual runs by the backlog limit, and of jobs by the job limit."""

import pytest

from horolog.schemas import errors
from horolog.schemas.records import (
    AdmissionAnswer,
    InventoryBegan,
    JobId,
    TenantId,
    TenantJobs,
    TenantSettings,
)
from tests.unit.dispatcher.rig import (
    EPOCH,
    T0,
    Rig,
    a_run,
    again,
    closed,
    pending,
    settings,
    started,
)


def jobs(count: int, tenant: str = "acme") -> TenantJobs:
    return TenantJobs(tenant=TenantId(tenant), jobs_count=count)


def test_a_run_within_the_limit_is_admitted_and_waits_like_others() -> None:
    rig = Rig(limits=[settings(backlog=1)])
    rig.tell(pending(a_run()))
    sent = rig.tick()
    assert sent[0] == AdmissionAnswer(
        partition=0,
        dispatcher=0,
        epoch=EPOCH,
        job_id=JobId("acme.job-0"),
        run_id=a_run().run_id,
        admitted=True,
    )
    assert len(sent) == 2


def test_a_run_beyond_the_limit_is_refused_and_never_hinted() -> None:
    rig = Rig(limits=[settings(backlog=2)])
    rig.tell(a_run(1), a_run(2, at_us=T0 + 60_000_000))
    rig.tell(pending(a_run(3)))
    (answer,) = rig.answers()
    assert not answer.admitted
    assert answer.code == errors.BACKLOG_FULL.slug == "backlog_full"
    assert answer.detail == "acme has 2 waiting runs, 2 at most"
    assert a_run(3).run_id not in rig.hinted(60_000)


def test_runs_that_run_do_not_count_as_backlog() -> None:
    rig = Rig(limits=[settings(backlog=1)])
    rig.tell(a_run(1))
    rig.tick()
    rig.tell(started(a_run(1)))
    rig.tell(pending(a_run(2)), pending(a_run(3)))
    assert [answer.admitted for answer in rig.answers()] == [True, False]


def test_an_ask_told_once_is_answered_once_and_again_when_told_again() -> None:
    rig = Rig(limits=[settings(backlog=1)])
    asked = [pending(a_run(1)), pending(a_run(2))]
    rig.tell(*asked)
    assert len(rig.answers()) == 2
    assert rig.answers(10_000) == []
    rig.tell(*asked)
    assert [answer.admitted for answer in rig.answers()] == [True, False]
    assert rig.answers() == []


def test_a_refused_ask_told_again_when_there_is_room_is_admitted() -> None:
    rig = Rig(limits=[settings(backlog=1)])
    rig.tell(a_run(1))
    rig.tell(pending(a_run(2)))
    assert [answer.admitted for answer in rig.answers()] == [False]
    rig.tell(closed(a_run(1)))
    rig.tell(pending(a_run(2)))
    assert [answer.admitted for answer in rig.answers()] == [True]


def test_an_answer_that_was_lost_is_given_again_at_the_second_digest() -> None:
    rig = Rig()
    asked = pending(a_run(1, at_us=T0 + 3_600_000_000))
    rig.tell(asked)
    assert len(rig.answers()) == 1
    rig.digest(asked)
    assert rig.answers() == []
    rig.digest(asked)
    assert len(rig.answers()) == 1
    rig.tell(again(asked, plan=asked.plan))
    rig.digest(again(asked, plan=asked.plan))
    assert rig.answers() == []


def test_an_admitted_run_keeps_its_hint_when_the_scheduler_agrees() -> None:
    rig = Rig(limits=[settings(concurrency=1, backlog=5)])
    asked = pending(a_run(1))
    rig.tell(asked)
    assert rig.hinted() == [asked.run_id]
    rig.tell(again(asked, plan=asked.plan))
    assert rig.hinted() == []
    assert rig.holding(asked.run_id) == 1
    assert rig.index.backlog() != {}


def test_an_admitted_run_told_again_for_another_instant_is_released_then() -> None:
    rig = Rig()
    rig.tell(pending(a_run(1, at_us=T0 + 5_000_000)))
    rig.tick()
    rig.tell(pending(a_run(1, at_us=T0 + 7_000_000)))
    assert rig.hinted(5_000) == []
    assert rig.hinted(2_000) == [a_run(1).run_id]


@pytest.mark.parametrize("limits", [settings(backlog=5), settings(jobs=5)])
def test_a_tenant_with_the_limit_in_question_is_answered_when_all_is_known(
    limits: TenantSettings,
) -> None:
    rig = Rig(2, limits=[limits], ready=False)
    rig.tick()
    rig.inventory(0)
    rig.tell(pending(a_run(1)), pending(a_run(1, "free")))
    rig.ask_job("j")
    first = {(each.run_id, each.job_id) for each in rig.answers()}
    assert (a_run(1, "free").run_id, "free.job-1") in first
    assert len(first) == 2
    rig.inventory(1)
    assert len(rig.answers()) == 1


def test_a_limit_lifted_while_not_all_is_known_answers_at_once() -> None:
    rig = Rig(limits=[settings(backlog=1)], ready=False)
    rig.tick()
    rig.began()
    rig.tell(pending(a_run(1)))
    assert rig.answers() == []
    rig.receive(settings())
    assert [answer.admitted for answer in rig.answers()] == [True]


def test_a_pending_run_of_an_inventory_is_decided_with_all_that_waits() -> None:
    rig = Rig(limits=[settings(backlog=2)], ready=False)
    rig.tick()
    rig.began()
    rig.tell(pending(a_run(1)))
    rig.tell(a_run(2), a_run(3))
    rig.ended(3)
    assert [answer.admitted for answer in rig.answers()] == [False]


def test_jobs_of_all_partitions_and_those_just_admitted_count() -> None:
    rig = Rig(2, limits=[settings(jobs=4)])
    rig.tell(jobs=[jobs(1)])
    rig.tell(jobs=[jobs(1)], partition=1)
    for name in "abc":
        rig.ask_job(name, partition=ord(name) % 2)
    answers = rig.answers()
    assert [answer.admitted for answer in answers] == [True, True, False]
    assert answers[2].code == errors.TOO_MANY_JOBS.slug
    assert answers[2].detail == "acme has 4 jobs, 4 at most"
    assert answers[2].run_id is None


def test_a_job_created_is_not_counted_beside_its_promise() -> None:
    rig = Rig(limits=[settings(jobs=2)])
    rig.ask_job("a")
    rig.tick()
    rig.tell(jobs=[jobs(1)])
    rig.ask_job("b")
    rig.ask_job("c")
    assert [answer.admitted for answer in rig.answers()] == [True, False]


def test_a_job_that_asks_again_is_answered_again_and_counted_once() -> None:
    rig = Rig(limits=[settings(jobs=2)])
    for name in ("a", "a", "b", "a", "c"):
        rig.ask_job(name)
        expected = name != "c"
        assert [answer.admitted for answer in rig.answers()] == [expected]


def test_a_job_deleted_makes_room_for_another() -> None:
    rig = Rig(limits=[settings(jobs=1)])
    rig.tell(jobs=[jobs(1)])
    rig.ask_job("a")
    assert [answer.admitted for answer in rig.answers()] == [False]
    rig.tell(jobs=[jobs(0)])
    rig.ask_job("a")
    assert [answer.admitted for answer in rig.answers()] == [True]


def test_a_promise_that_came_to_nothing_is_forgotten_at_the_second_digest() -> None:
    rig = Rig(limits=[settings(jobs=1)])
    rig.ask_job("a")
    rig.tick()
    rig.digest()
    rig.ask_job("b")
    assert [answer.admitted for answer in rig.answers()] == [False]
    rig.digest()
    rig.ask_job("b")
    assert [answer.admitted for answer in rig.answers()] == [True]


def test_jobs_that_an_inventory_does_not_tell_are_none() -> None:
    rig = Rig(limits=[settings(jobs=1)], ready=False)
    rig.tick()
    rig.began()
    rig.tell(jobs=[jobs(1), jobs(3, "other")])
    rig.ended(7)
    rig.receive(
        InventoryBegan(partition=0, writer_epoch=rig.writers[0], seq=900, dispatcher=0, epoch=EPOCH)
    )
    rig.seqs[0] = 900
    rig.tell(jobs=[jobs(3, "other")])
    rig.ended(0)
    rig.ask_job("a")
    assert [answer.admitted for answer in rig.answers()] == [True]
