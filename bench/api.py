"""`api`: requests a second over HTTP, against a bare route of the same stack.

    python -m bench.api [REQUESTS]

uvicorn, FastAPI and the client's process are the same for all; the bare route reads its body as
JSON and answers with JSON. Ratios are what holds on another machine.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI, Request

from bench.report import median, percentile, report
from bench.server import caught_up, defined, register, serving
from horolog.api.app import create_app
from horolog.schemas.records import JobId, Schedule

CONNECTIONS = 8
JOBS = 500
ROUNDS = 3
Asked = tuple[str, str, str]
"""Method, path, body."""


def bare() -> FastAPI:
    """An app with a route that does nothing."""
    app = FastAPI()

    async def nothing(request: Request) -> dict[str, Any]:
        body = await request.body()
        return {"asked": msgspec.json.decode(body) if body else None}

    app.add_api_route("/nothing", nothing, methods=["GET", "POST"], status_code=202)
    return app


@contextmanager
def served(app: FastAPI) -> Generator[int]:
    """Serve an app in a thread; gives the port."""
    config = uvicorn.Config(app, port=0, log_level="warning", lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        threading.Event().wait(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def asked(port: int, requests: Sequence[Asked]) -> tuple[float, float]:
    """Requests a second and the p99 in seconds, by a client in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.api", "--client", str(port)],
        input=msgspec.json.encode(requests),
        capture_output=True,
        check=True,
    )
    taken_s, late_s = msgspec.json.decode(done.stdout, type=tuple[float, list[float]])
    return len(requests) / taken_s, percentile(sorted(late_s), 0.99)


def client(port: int) -> None:
    """Send the requests on standard input over some connections; print how long they took."""
    requests = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Asked])
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(_send_all(port, requests))))


async def _send_all(port: int, requests: list[Asked]) -> tuple[float, list[float]]:
    waiting = iter(requests)
    late_s: list[float] = []
    begun = time.perf_counter()
    await asyncio.gather(*(_send(port, waiting, late_s) for _ in range(CONNECTIONS)))
    return time.perf_counter() - begun, late_s


async def _send(port: int, waiting: Any, late_s: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for method, path, body in waiting:
        begun = time.perf_counter()
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 20" in head.splitlines()[0], head
        length = next(line for line in head.lower().splitlines() if b"content-length" in line)
        await reader.readexactly(int(length.partition(b":")[2]))
        late_s.append(time.perf_counter() - begun)
    writer.close()


def rounds(requests_count: int) -> dict[str, tuple[float, float]]:
    """By what is asked: requests a second and p99, medians; all kinds in turn in each round."""
    jobs = [JobId(f"default.job{number}") for number in range(JOBS)]
    found: dict[str, list[tuple[float, float]]] = {}
    with serving(lambda _: None) as server:
        register(server, ((job_id, defined(Schedule(at="2100-01-01T00:00"))) for job_id in jobs))
        with served(create_app(server)) as port, served(bare()) as bare_port:
            for number in range(ROUNDS):
                keys = [(jobs[n % JOBS], f"r{number}n{n}") for n in range(requests_count)]
                triggers = [
                    ("POST", f"/v1/jobs/{job}:trigger", f'{{"idempotencyKey": "{key}"}}')
                    for job, key in keys
                ]
                kinds: dict[str, tuple[int, list[Asked]]] = {
                    "bare_post": (bare_port, [("POST", "/nothing", b) for _, _, b in triggers]),
                    "trigger": (port, triggers),
                    "bare_get": (bare_port, [("GET", "/nothing", "") for _ in keys]),
                    "run": (port, [("GET", f"/v1/runs/{j}@manual-{k}", "") for j, k in keys]),
                }
                for kind, (at_port, requests) in kinds.items():
                    caught_up(server)
                    found.setdefault(kind, []).append(asked(at_port, requests))
    return {
        kind: (median([each for each, _ in some]), median([each for _, each in some]))
        for kind, some in found.items()
    }


def main() -> None:
    """Print the figures."""
    if sys.argv[1:2] == ["--client"]:
        client(int(sys.argv[2]))
        return
    requests_count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    found = rounds(requests_count)
    report(
        "api",
        "requests over 8 kept connections to uvicorn in the same process as the whole server: "
        "POST :trigger (answered when its commit is on disk; its run is executed beside it) and "
        "GET of a run, each against a bare route; the client is a process beside it",
        requests=requests_count,
        connections=CONNECTIONS,
        **{f"{kind}_per_s": round(per_s) for kind, (per_s, _) in found.items()},
        **{f"{kind}_p99_ms": round(p99_s * 1e3, 1) for kind, (_, p99_s) in found.items()},
        trigger_of_bare=round(found["trigger"][0] / found["bare_post"][0], 3),
        run_of_bare=round(found["run"][0] / found["bare_get"][0], 3),
    )


if __name__ == "__main__":
    main()
