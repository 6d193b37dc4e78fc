"""F17: requests that mean harm or nothing, beside ones that mean something; and F28: dead letters,
redriven.
"""

import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple

from horolog.schemas.records import RunDeadLettered, RunRedriven, RunSucceeded
from horolog.streams.log.sqlite import SqliteLog
from tests.torture.acks import Acks
from tests.torture.api import Api, Client
from tests.torture.checker import Checked, events_of
from tests.torture.figures import Figures
from tests.torture.processes import Place, placed, removed
from tests.torture.rounds import definition, drained
from tests.waiting import until

HUGE: Final = 3 * 1024 * 1024
PATHS: Final = (
    ("POST", "/v1/jobs"),
    ("PUT", "/v1/jobs/default.poisoned"),
    ("PATCH", "/v1/jobs/default.neighbour"),
    ("POST", "/v1/jobs/default.neighbour:trigger"),
    ("POST", "/v1/jobs/default.neighbour:backfill"),
    ("POST", "/v1/runs:lease"),
    ("POST", "/v1/runs:heartbeat"),
    ("POST", "/v1/runs/default.neighbour@manual-x:heartbeat"),
    ("POST", "/v1/runs/default.neighbour@manual-x:complete"),
    ("POST", "/v1/dead-letters:redrive"),
    ("POST", "/v1/schedules:explain"),
)


class Sent(NamedTuple):
    """A request that no one should send."""

    method: str
    path: str
    body: bytes


def _noise(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(1, 4_000))


def _truncated(chance: random.Random) -> bytes:
    whole = json.dumps({"target": {"handler": "inline"}, "payload": {"n": [1, 2, {"x": "y"}]}})
    return whole[: chance.randrange(1, len(whole) - 1)].encode()


def _deep(chance: random.Random) -> bytes:
    depth = chance.choice((40, 5_000, 100_000))
    return b"[" * depth + b"]" * depth


def _huge(_: random.Random) -> bytes:
    return b'{"payload": "' + b"x" * HUGE + b'"}'


def _wrong_types(chance: random.Random) -> bytes:
    numbers, texts = (-1, 1e308, 2**70, True), ("", "\x00", "\ud800", "a" * 9_999)
    values: list[Any] = [None, *numbers, *texts, [], {}, [[]]]
    names = ("fencingToken", "claimId", "workerId", "target", "schedule", "payload", "max", "runs")
    return json.dumps({name: chance.choice(values) for name in names}).encode()


def _wrong_token(chance: random.Random) -> bytes:
    token = chance.choice((0, 1, -1, 2**53, 2**63, 2**64, chance.randrange(2**40)))
    return json.dumps({"fencingToken": token, "claimId": "no such claim", "ok": True}).encode()


def _not_utf8(_: random.Random) -> bytes:
    return b'{"target": {"handler": "\xff\xfe"}}'


def _many_fields(_: random.Random) -> bytes:
    return json.dumps({f"field{n}": n for n in range(2_000)}).encode()


KINDS: Final[tuple[Callable[[random.Random], bytes], ...]] = (
    _noise,
    _truncated,
    _deep,
    _huge,
    _wrong_types,
    _wrong_token,
    _not_utf8,
    _many_fields,
)


def poison_round(folder: Path, seed: int, count: int) -> tuple[Checked, dict[str, object]]:
    """So many of them, while a client and jobs go on beside them."""
    chance = random.Random(f"poison {seed}")
    acks = Acks()
    statuses = Counter[str]()
    wrong: list[str] = []
    with placed(folder) as place:
        server = place.start()
        spec = definition({"handler": "inline"})
        for name in ("neighbour", "edited-client"):
            place.register(name, spec)
        every = definition({"handler": "inline"}, "1s")
        place.register("every", every)
        client = Client(place.port, acks, "client", ["neighbour"], 0.15)
        client.start()
        api = Api(place.port)
        for number in range(count):
            if number % 10 == 9:
                _talk_nonsense(place.port, chance)
                statuses["no HTTP"] += 1
                continue
            sent = Sent(*chance.choice(PATHS), KINDS[number % len(KINDS)](chance))
            statuses[_send(api, sent, wrong)] += 1
        api.close()
        client.halt()
        assert client.failure is None, client.failure
        assert server.is_running
        assert "Traceback" not in place.log.read_text(), place.log.read_text()
        checked = drained(place, acks)
    checked.found("poison that was answered with a mistake of the server", wrong)
    return checked, {"answers": dict(sorted(statuses.items()))}


def _send(api: Api, sent: Sent, wrong: list[str]) -> str:
    try:
        answer = api.call(sent.method, sent.path, raw=sent.body)
    except (OSError, HTTPException):
        # A body that is too large is answered, and the connection closed, before it is all read.
        return "closed"
    if answer.status >= 500:
        wrong.append(f"{sent.method} {sent.path} {sent.body[:60]!r}: {answer.status}")
    return str(answer.status)


def _talk_nonsense(port: int, chance: random.Random) -> None:
    """Bytes that are no HTTP, and requests that stop in the middle."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
        raw.sendall(
            chance.choice(
                (
                    chance.randbytes(500),
                    b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{",
                    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
                    b"PUT /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff",
                )
            )
        )


def poison(folder: Path, faults: int, seed: int) -> Figures:
    """1,000 of 300 faults."""
    count = round(faults * 1_000 / 300)
    place = folder / f"poison-{seed}"
    checked, more = poison_round(place, seed, count)
    if not checked.wrong:
        removed(place)
    return Figures(
        fault="F17: poison over HTTP",
        how="random bytes, truncated and deep JSON, wrong types and tokens, huge bodies, no HTTP",
        count=count,
        seed=seed,
        checked=checked,
        more=more,
    )


def dead_letter_round(folder: Path, runs: int) -> Checked:
    """Runs that fail until they are dead, redriven once their target is mended (F28)."""
    acks = Acks()
    with placed(folder) as place:
        place.start()
        flag = folder / "mended"
        program = ["sh", "-c", f"test -e {flag} || exit 3"]
        spec = {**definition({"command": program}), "retry": {"max": 1, "backoff": "1s"}}
        jobs = [f"failing{n}" for n in range(10)]
        for job in jobs:
            place.register(job, spec)
        dead: list[str] = []
        never = threading.Event()
        for number in range(runs):
            path = f"/v1/jobs/default.{jobs[number % len(jobs)]}:trigger"
            body = {"idempotencyKey": f"k{number}"}
            answer = place.api.until_answered("POST", path, body, stop=never)
            assert answer is not None
            assert answer.status == 202, answer
            acks.triggered(f"k{number}", answer.body["runId"])
            dead.append(answer.body["runId"])
        until(lambda: _all(place, RunDeadLettered, dead), "all are dead", within_s=60 + runs)
        flag.touch()
        for begin in range(0, runs, 100):
            answer = place.api.call(
                "POST", "/v1/dead-letters:redrive", {"runIds": dead[begin : begin + 100]}
            )
            assert answer.status == 200, answer
        until(lambda: _all(place, RunSucceeded, dead), "all succeed", within_s=60 + runs)
        assert place.server is not None
        checked = drained(place, acks, witnessed=False)
        log = SqliteLog(place.data, readonly=True)
        starts = Counter(event.run_id for event in events_of(log) if isinstance(event, RunRedriven))
        log.close()
        checked.found("runs redriven more than once", [run for run, n in starts.items() if n != 1])
        if checked.starts != 3 * runs:
            checked.wrong.append(f"{checked.starts} attempts of {runs} runs, three each are right")
    return checked


def _all(
    place: Place, kind: type[RunDeadLettered] | type[RunSucceeded], runs: list[str]
) -> bool | None:
    log = SqliteLog(place.data, readonly=True)
    seen = {event.run_id for event in events_of(log) if isinstance(event, kind)}
    log.close()
    return seen.issuperset(runs) or None


def dead_letters(folder: Path, faults: int, seed: int) -> Figures:
    """1,000 of 300 faults."""
    runs = round(faults * 1_000 / 300)
    place = folder / f"dead-{seed}"
    checked = dead_letter_round(place, runs)
    if not checked.wrong:
        removed(place)
    return Figures(
        fault="F28: dead letters",
        how="runs that fail twice and are dead, redriven once after their target is mended",
        count=runs,
        seed=seed,
        checked=checked,
    )
