"""The SDK's worker against servers that are late, busy or deaf."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from horolog.workers import Worker
from horolog.workers.context import Context
from tests.builders.target import Answer, HttpTargetServer, answer, serving

RUN = "default.work@20240506T120000Z"
BEAT, DONE = f"/v1/runs/{RUN}:heartbeat", f"/v1/runs/{RUN}:complete"
PATIENCE_S = 20.0


def leased(term_s: float = 30.0) -> bytes:
    lease = {
        "runId": RUN,
        "jobId": "default.work",
        "attempt": 1,
        "fencingToken": 7,
        "claimId": "claim",
        "termS": term_s,
        "target": {"handler": "work"},
        "timeoutS": 60.0,
        "killGraceS": 0.0,
        "contentType": "application/json",
    }
    return json.dumps([lease]).encode()


def in_turn(*answers: Answer) -> Answer:
    """Each answer once, then that there is nothing."""
    left = list(answers)

    def send(request: BaseHTTPRequestHandler) -> None:
        (left.pop(0) if left else answer(200, b"[]"))(request)

    return send


def after(wait: Callable[[], object], then: Answer) -> Answer:
    """An answer that comes only when `wait` has returned."""

    def send(request: BaseHTTPRequestHandler) -> None:
        wait()
        then(request)

    return send


@contextmanager
def working(server: HttpTargetServer, work: Callable[[Context], None]) -> Generator[Worker]:
    """A worker of a server for the time of a test."""
    worker = Worker(server.url, concurrency=1)
    worker.job("work")(work)
    thread = threading.Thread(target=worker.work)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join()


def test_lease_that_ended_on_its_way_to_the_worker_is_not_executed() -> None:
    executed: list[str] = []
    refused = threading.Event()

    def stale(request: BaseHTTPRequestHandler) -> None:
        answer(409, b"{}")(request)
        refused.set()

    with serving() as server:
        # The answer is held up for more than a third of the term.
        late = after(lambda: threading.Event().wait(1.4), answer(200, leased(term_s=4.0)))
        server.answers = {"/v1/runs:lease": in_turn(late), BEAT: stale}
        with working(server, lambda ctx: executed.append(ctx.run_id)):
            assert refused.wait(PATIENCE_S)
        assert not executed
        assert DONE not in {request.path for request in server.received}


def test_worker_told_that_there_are_too_many_asks_again() -> None:
    done = threading.Event()

    def complete(request: BaseHTTPRequestHandler) -> None:
        answer(200, b"{}")(request)
        done.set()

    with serving() as server:
        server.answers = {
            "/v1/runs:lease": in_turn(answer(429, b"{}"), answer(200, leased())),
            DONE: complete,
        }
        with working(server, lambda _: None):
            assert done.wait(PATIENCE_S)


def test_worker_whose_heartbeat_nobody_answers_stops_the_run_before_its_lease_ends() -> None:
    stopped, beaten = threading.Event(), threading.Event()
    order: list[str] = []

    def hang(request: BaseHTTPRequestHandler) -> None:
        del request
        beaten.set()
        stopped.wait(PATIENCE_S)
        order.append("the server lets go")

    def work(context: Context) -> None:
        context.cancelled.wait(2 * PATIENCE_S)
        order.append("the run is stopped")
        stopped.set()

    with serving() as server:
        server.answers = {
            "/v1/runs:lease": in_turn(answer(200, leased(term_s=6.0))),
            BEAT: hang,
        }
        with working(server, work):
            assert beaten.wait(PATIENCE_S)
            assert stopped.wait(2 * PATIENCE_S)
    assert order[0] == "the run is stopped"
