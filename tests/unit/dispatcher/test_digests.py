"""The digest, and how what was lost is found and mended."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from horolog.schemas.records import DigestSent, DispatchStatus, RunState
from horolog.streams.dispatcher.digest import BUCKETS, Digest, bucket_of, part_of
from tests.unit.dispatcher.rig import (
    WRITER,
    Rig,
    a_run,
    again,
    closed,
    digest_of,
    ids,
    pending,
    settings,
    started,
)

states = st.builds(
    a_run,
    st.integers(0, 200),
    st.sampled_from(["a", "b"]),
    plan=st.integers(1, 1 << 40),
    status=st.sampled_from([each for each in DispatchStatus if each.value != "closed"]),
)


@given(st.lists(states, max_size=30), st.randoms(use_true_random=False))
def test_digest_of_any_order_of_the_same_states_is_equal(
    told: list[RunState], random: object
) -> None:
    shuffled = list(told)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a `random.Random` of Hypothesis
    assert digest_of(shuffled) == digest_of(told)


@given(st.lists(states, max_size=20), st.lists(states, max_size=20))
def test_digest_without_what_was_taken_out_is_that_of_the_rest(
    rest: list[RunState], others: list[RunState]
) -> None:
    digest = Digest()
    for state in [*rest, *others]:
        digest.add(state)
    for state in others:
        digest.remove(state)
    assert digest.buckets() == digest_of(rest)


@given(states, st.sampled_from(["plan", "attempt", "status"]))
def test_digest_of_a_state_that_differs_in_a_field_differs_in_its_bucket(
    state: RunState, field: str
) -> None:
    other = {
        "plan": msgspec.structs.replace(state, plan=state.plan + 1),
        "attempt": msgspec.structs.replace(state, attempt=state.attempt + 1),
        "status": msgspec.structs.replace(
            state,
            status=DispatchStatus.STARTED
            if state.status is not DispatchStatus.STARTED
            else DispatchStatus.WAITING,
        ),
    }[field]
    pairs = enumerate(zip(digest_of([state]), digest_of([other]), strict=True))
    assert [bucket for bucket, (a, b) in pairs if a != b] == [bucket_of(state.run_id)]


def test_digest_of_two_opposite_mistakes_in_a_bucket_does_not_cancel_out() -> None:
    same = [state for n in range(999) if bucket_of((state := a_run(n, plan=50)).run_id) == 3]
    one, two = same[:2]
    crossed = [again(one, plan=51), again(two, plan=49)]
    assert digest_of([one, two]) != digest_of(crossed)


def test_digest_values_of_known_states_stay_as_they_are() -> None:
    # Schedulers and dispatchers of different releases compare them.
    state = a_run("x", "acme", plan=1234)
    assert part_of(state) == (51, 13538567871876727414)
    assert part_of(started(state)) == (51, 6758163686327577659)
    assert part_of(pending(state)) == (51, 10281464762663811489)
    assert part_of(closed(state)) == (51, 0)


def test_digest_buckets_of_many_states_fit_an_avro_long() -> None:
    values = digest_of(a_run(number) for number in range(5_000))
    assert len(values) == BUCKETS
    assert all(-(1 << 63) <= value < 1 << 63 for value in values)
    assert any(value < 0 for value in values)


def test_a_lost_message_is_found_and_only_its_bucket_asked_for() -> None:
    rig = Rig()
    rig.tell(a_run(1))
    rig.digest(a_run(1), a_run(2))
    (wanted,) = rig.repairs()
    assert wanted.buckets == (bucket_of(a_run(2).run_id),)
    rig.tell(a_run(2))
    rig.digest(a_run(1), a_run(2))
    assert rig.repairs() == []


def test_an_equal_digest_asks_for_nothing() -> None:
    rig = Rig()
    rig.tell(a_run(1), started(a_run(2)))
    rig.digest(a_run(1), started(a_run(2)))
    assert rig.repairs() == []


def test_a_run_whose_end_was_lost_goes_when_the_rest_of_its_bucket_was_told_again() -> None:
    rig = Rig(limits=[settings(concurrency=2)])
    same = [state for n in range(999) if bucket_of((state := a_run(n)).run_id) == 3][:3]
    ended, running, waiting = same
    rig.tell(started(ended), started(running), waiting)
    assert rig.hinted() == []
    rig.digest(started(running), waiting)
    assert [each.buckets for each in rig.repairs()] == [(3,)]
    # Until the digest agrees nothing is freed: the resend may be cut short.
    rig.tell(waiting)
    assert rig.hinted() == []
    rig.tell(started(running))
    assert rig.hinted() == []
    rig.digest(started(running), waiting)
    assert rig.hinted() == [waiting.run_id]
    assert rig.holding(waiting.run_id) == 2


def test_an_empty_bucket_is_mended_by_the_next_digest_alone() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    rig.tell(started(a_run(1)), a_run(2))
    rig.digest(a_run(2))
    rig.tick()
    rig.digest(a_run(2))
    assert rig.hinted() == [a_run(2).run_id]


def test_a_resend_that_was_lost_is_asked_for_again() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    one, two = [state for n in range(999) if bucket_of((state := a_run(n)).run_id) == 3][:2]
    rig.tell(started(one))
    rig.digest(started(one), two)
    assert len(rig.repairs()) == 1
    rig.digest(started(one), two)
    # `one` was not told again, yet it is not taken for unknown.
    assert len(rig.repairs()) == 1
    assert rig.holding(one.run_id) == 1
    rig.tell(started(one), two)
    rig.digest(started(one), two)
    assert rig.repairs() == []
    assert rig.holding(one.run_id) == 1


def test_a_hint_that_is_out_is_not_freed_by_a_repair_that_tells_it_again() -> None:
    rig = Rig(limits=[settings(concurrency=1)])
    one, two = [state for n in range(999) if bucket_of((state := a_run(n)).run_id) == 3][:2]
    rig.tell(one)
    assert rig.hinted() == [one.run_id]
    rig.digest(one, two)
    rig.tick()
    rig.tell(one, two)
    rig.digest(one, two)
    assert rig.hinted() == []


def test_a_digest_with_another_number_of_buckets_is_no_finding() -> None:
    rig = Rig()
    rig.receive(
        DigestSent(partition=0, writer_epoch=WRITER, seq=200, dispatcher=0, buckets=(1,) * 128)
    )
    assert rig.repairs() == []


def test_an_old_digest_is_no_finding() -> None:
    rig = Rig()
    rig.seqs[0] = 150
    rig.tell(a_run(1), seq=200)
    rig.digest()
    assert rig.repairs() == []


def test_pending_runs_count_in_the_digest_whether_admitted_or_refused() -> None:
    rig = Rig(limits=[settings(backlog=1)])
    asked = [pending(a_run(number)) for number in range(3)]
    rig.tell(*asked)
    assert [answer.admitted for answer in rig.answers()] == [True, False, False]
    rig.digest(*asked)
    assert rig.repairs() == []
    rig.tell(*(closed(state) for state in asked[1:]))
    rig.digest(asked[0])
    assert rig.repairs() == []
    assert ids(asked[:1]) == [asked[0].run_id]
