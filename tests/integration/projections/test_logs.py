"""What runs printed: kept byte for byte, given by ranges, followed without polling."""

import threading
from collections.abc import Collection, Generator, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horolog.projections.logs import LogPiece, LogStore
from horolog.projections.stores.logs_sqlite import SqliteLogs
from horolog.schemas.records import Grant, JobId, LogChunk, RunId, Target
from horolog.workers.capture import Capture
from tests.builders.ledger import DAY_US, T0

JOB = JobId("acme.a")
RUN = RunId("acme.a@20240506T120000Z")
TOKEN = 7
ALL_BYTES = bytes(range(256))
MIB = 1 << 20


class Clock:
    """Time in the test's hand."""

    def __init__(self) -> None:
        self.now_us = T0

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture(name="clock")
def _clock() -> Clock:
    return Clock()


@pytest.fixture(name="logs")
def _logs(tmp_path: Path, clock: Clock) -> Generator[SqliteLogs]:
    logs = SqliteLogs(tmp_path / "logs.db", now_us=clock)
    yield logs
    logs.close()


def chunk(
    offset: int,
    data: bytes,
    *,
    dropped: int = 0,
    last: bool = False,
    token: int = TOKEN,
    run_id: RunId = RUN,
    attempt: int = 1,
    round_: int = 0,
) -> LogChunk:
    return LogChunk(
        job_id=JOB,
        run_id=run_id,
        attempt=attempt,
        round=round_,
        token=token,
        offset=offset,
        data=data,
        dropped=dropped,
        last=last,
    )


def whole(logs: LogStore, limit: int = 1 << 30, token: int = TOKEN) -> list[LogPiece]:
    """All pieces, read a limit at a time as a follower does."""
    pieces: list[LogPiece] = []
    offset = 0
    while True:
        found = logs.read(RUN, token, offset, limit)
        pieces += found
        if not found or found[-1].last:
            return pieces
        offset = found[-1].end


def joined(pieces: Sequence[LogPiece]) -> bytes:
    return b"".join(piece.data for piece in pieces)


def captured(data: bytes, limit: int, sizes: Sequence[int]) -> list[LogChunk]:
    """The chunks that a worker makes of an output."""
    chunks: list[LogChunk] = []
    grant = Grant(
        run_id=RUN,
        job_id=JOB,
        partition=0,
        attempt=1,
        token=TOKEN,
        claim_id="c",
        inbox="i",
        term_us=1,
        due_us=T0,
        target=Target(handler="noop"),
        timeout_us=1,
        kill_grace_us=1,
    )
    capture = Capture(grant, chunks.append, limit)
    begin = 0
    for number in range(len(data) + 1):
        if begin >= len(data):
            break
        size = sizes[number % len(sizes)] if sizes else len(data)
        capture.write(data[begin : begin + size])
        capture.flush()
        begin += size
    capture.close()
    return chunks


def test_output_is_kept_byte_for_byte(logs: SqliteLogs) -> None:
    logs.append([chunk(0, ALL_BYTES), chunk(256, b"\xff\xfe\x00", last=True)])
    assert joined(whole(logs)) == ALL_BYTES + b"\xff\xfe\x00"
    (state,) = logs.attempts(RUN)
    assert (state.size, state.stored, state.dropped, state.ended) == (259, 259, 0, True)


def test_a_piece_stored_again_changes_nothing(logs: SqliteLogs) -> None:
    pieces = [chunk(0, b"abc"), chunk(3, b"def"), chunk(6, b"", last=True)]
    for _ in range(2):
        logs.append(pieces)
    logs.append(pieces[1:2])
    assert joined(whole(logs)) == b"abcdef"
    (state,) = logs.attempts(RUN)
    assert (state.size, state.stored) == (6, 6)


@pytest.mark.parametrize("empty_first", [True, False])
def test_an_end_told_at_the_place_of_a_piece_takes_nothing_from_it(
    logs: SqliteLogs, *, empty_first: bool
) -> None:
    pieces = [chunk(0, b"", last=True), chunk(0, b"abc")]
    for piece in pieces if empty_first else pieces[::-1]:
        logs.append([piece])
    assert joined(whole(logs)) == b"abc"


def test_a_range_is_given_from_its_offset_and_up_to_its_limit(logs: SqliteLogs) -> None:
    logs.append([chunk(0, b"0123456789"), chunk(10, b"abcdefghij")])
    (first, second) = logs.read(RUN, TOKEN, 8, 5)
    assert (first.offset, first.data, second.offset, second.data) == (8, b"89", 10, b"abc")
    assert not second.last
    assert logs.read(RUN, TOKEN, 20, 5) == []


def test_the_end_is_told_once_everything_before_it_was_given(logs: SqliteLogs) -> None:
    logs.append([chunk(0, b"abc")])
    assert not logs.read(RUN, TOKEN, 0, 100)[-1].last
    logs.append([chunk(3, b"", last=True)])
    assert logs.read(RUN, TOKEN, 3, 100) == [LogPiece(offset=3, data=b"", dropped=0, last=True)]
    assert not logs.read(RUN, TOKEN, 0, 2)[-1].last
    assert logs.read(RUN, TOKEN, 0, 3)[-1].last


def test_an_output_without_a_byte_has_an_end(logs: SqliteLogs) -> None:
    logs.append([chunk(0, b"", last=True)])
    assert whole(logs) == [LogPiece(offset=0, data=b"", dropped=0, last=True)]


def test_what_was_left_out_is_said_where_it_is_missing(logs: SqliteLogs) -> None:
    logs.append([chunk(0, b"head"), chunk(104, b"tail", dropped=100, last=True)])
    head, tail = whole(logs)
    assert (head.data, head.dropped) == (b"head", 0)
    assert (tail.offset, tail.data, tail.dropped, tail.last) == (104, b"tail", 100, True)
    (inside,) = logs.read(RUN, TOKEN, 50, 10)
    assert (inside.offset, inside.dropped) == (104, 54)
    (state,) = logs.attempts(RUN)
    assert (state.size, state.stored, state.dropped) == (108, 8, 100)


def test_a_piece_on_its_way_is_waited_for_and_after_the_end_given_up(logs: SqliteLogs) -> None:
    logs.append([chunk(0, b"ab"), chunk(4, b"ef")])
    assert joined(whole(logs)) == b"ab"
    logs.append([chunk(2, b"cd")])
    assert joined(whole(logs)) == b"abcdef"
    logs.append([chunk(8, b"ij", last=True)])
    assert [(piece.data, piece.dropped) for piece in whole(logs)][-1] == (b"ij", 2)


def test_attempts_that_share_a_number_are_told_apart_by_their_token(logs: SqliteLogs) -> None:
    logs.append([chunk(0, b"released", token=7, last=True)])
    logs.append([chunk(0, b"the next", token=9, last=True)])
    logs.append([chunk(0, b"redriven", token=12, round_=1)])
    assert [state.token for state in logs.attempts(RUN)] == [7, 9, 12]
    assert [(state.round, state.attempt) for state in logs.attempts(RUN)] == [
        (0, 1),
        (0, 1),
        (1, 1),
    ]
    assert joined(whole(logs, token=9)) == b"the next"
    assert logs.read(RUN, 99, 0, 10) == ()
    assert logs.attempts(RunId("acme.a@manual-x")) == []


@given(
    data=st.binary(min_size=1, max_size=600),
    limit=st.integers(2, 800),
    sizes=st.lists(st.integers(1, 90), max_size=5),
    reads=st.integers(1, 200),
    shuffle=st.randoms(use_true_random=False),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_worker_sent_in_any_order_and_number_is_read_as_it_was_printed(
    tmp_path: Path, data: bytes, limit: int, sizes: list[int], reads: int, shuffle: Random
) -> None:
    chunks = captured(data, limit, sizes)
    sent = [*chunks, *chunks[::2]]
    shuffle.shuffle(sent)
    path = tmp_path / "any.db"
    path.unlink(missing_ok=True)
    logs = SqliteLogs(path)
    for one in sent:
        logs.append([one])
    pieces = whole(logs, reads)
    logs.close()
    position = 0
    for piece in pieces:
        assert piece.offset == position + piece.dropped
        assert data[piece.offset : piece.end] == piece.data
        position = piece.end
    assert position == len(data)
    assert pieces[-1].last
    assert [piece.last for piece in pieces].count(True) == 1
    dropped = sum(each.dropped for each in chunks)
    assert sum(piece.dropped for piece in pieces) == dropped
    assert len(joined(pieces)) == len(data) - dropped


def test_tail_of_ten_mebibytes_reads_only_the_end(logs: SqliteLogs) -> None:
    piece = ALL_BYTES * 256
    chunks = [chunk(number * len(piece), piece) for number in range(10 * MIB // len(piece))]
    logs.append(chunks)
    logs.append([chunk(10 * MIB, b"the end", last=True)])
    tail = logs.tail(RUN, TOKEN, 1_000)
    assert joined(tail) == (piece + b"the end")[-1_000:]
    assert tail[-1].last
    # No look at the hundred pieces before: two hold the last thousand bytes.
    assert len(tail) == 2


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 9, 100])
def test_tail_over_what_was_left_out_gives_so_many_kept_bytes(logs: SqliteLogs, limit: int) -> None:
    logs.append([chunk(0, b"head"), chunk(54, b"tail", dropped=50, last=True)])
    assert joined(logs.tail(RUN, TOKEN, limit)) == b"headtail"[max(8 - limit, 0) :]
    assert logs.tail(RUN, 99, limit) == ()


def test_followers_are_told_after_the_piece_can_be_read(logs: SqliteLogs) -> None:
    seen: list[bytes] = []
    end = logs.follow(lambda run_ids: seen.append(joined(whole(logs)) if RUN in run_ids else b""))
    logs.append([chunk(0, b"ab")])
    logs.append([chunk(2, b"cd")])
    end()
    logs.append([chunk(4, b"ef")])
    assert seen == [b"ab", b"abcd"]


def test_a_follower_in_another_thread_sees_everything_once(logs: SqliteLogs) -> None:
    news = threading.Semaphore(0)
    got: list[bytes] = []

    def told(run_ids: Collection[RunId]) -> None:
        assert run_ids
        news.release()

    def follow() -> None:
        offset = 0
        while True:
            pieces = logs.read(RUN, TOKEN, offset, 1 << 20)
            got.extend(piece.data for piece in pieces)
            if pieces and pieces[-1].last:
                return
            offset = pieces[-1].end if pieces else offset
            assert news.acquire(timeout=30)

    end = logs.follow(told)
    follower = threading.Thread(target=follow)
    follower.start()
    for number in range(200):
        logs.append([chunk(number * 4, f"{number:04}".encode(), last=number == 199)])
    follower.join()
    end()
    assert b"".join(got) == b"".join(f"{number:04}".encode() for number in range(200))


def test_output_is_forgotten_when_it_is_old_enough_and_some_at_a_time(
    logs: SqliteLogs, clock: Clock
) -> None:
    for token in range(1, 6):
        logs.append([chunk(0, b"x" * 1_000, token=token)])
        clock.now_us += DAY_US
    assert logs.forget(T0 + 3 * DAY_US, 2) == 2
    assert logs.forget(T0 + 3 * DAY_US, 2) == 1
    assert logs.forget(T0 + 3 * DAY_US, 2) == 0
    assert [state.token for state in logs.attempts(RUN)] == [4, 5]
    assert logs.attempts(RUN)[0].written_us == T0 + 3 * DAY_US
    # A piece that comes late begins a stream anew and harms no other.
    logs.append([chunk(1_000, b"late", token=1)])
    assert [state.token for state in logs.attempts(RUN)] == [1, 4, 5]


def test_output_that_is_written_on_is_not_old(logs: SqliteLogs, clock: Clock) -> None:
    logs.append([chunk(0, b"ab")])
    clock.now_us += 5 * DAY_US
    logs.append([chunk(2, b"cd")])
    assert logs.forget(T0 + DAY_US, 10) == 0


def test_without_a_clock_nothing_is_forgotten(tmp_path: Path) -> None:
    logs = SqliteLogs(tmp_path / "logs.db")
    logs.append([chunk(0, b"ab")])
    assert logs.forget(1 << 60, 10) == 0
    logs.close()


def test_output_outlives_the_process(tmp_path: Path) -> None:
    for number in range(3):
        logs = SqliteLogs(tmp_path / "logs.db")
        logs.append([chunk(number * 2, b"ab")])
        logs.close()
    logs = SqliteLogs(tmp_path / "logs.db")
    assert joined(whole(logs)) == b"ababab"
    logs.close()


def test_threads_may_append_and_read_at_once(logs: SqliteLogs) -> None:
    def print_on(token: int) -> None:
        for number in range(50):
            logs.append([chunk(number, b"x", token=token, last=number == 49)])
            logs.attempts(RUN)

    threads = [threading.Thread(target=print_on, args=(token,)) for token in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    states = logs.attempts(RUN)
    assert [(state.token, state.size, state.ended) for state in states] == [
        (token, 50, True) for token in range(1, 5)
    ]
