"""The SDK: functions as jobs, executed by this process.

    worker = Worker("http://127.0.0.1:8700")

    @worker.job("nightly", cron="0 6 * * *", tz="Europe/Paris", retries=3)
    async def nightly(ctx): ...

    worker.run()

Registers the jobs with the server, then leases their runs over HTTP, a thread an attempt. The
module a worker stands in can also be given to `horolog up --handlers module:worker`, which calls
its functions without HTTP.
"""

import base64
import os
import queue
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final, TypeVar

import httpx2
import msgspec

from horolog.schemas.ids import job_of, slot_of
from horolog.schemas.records import Grant, JobId, LogChunk, RunId, RunResult, Target
from horolog.workers.capture import Capture
from horolog.workers.clock import boot_us
from horolog.workers.executors.handler import Handler, HandlerExecutor
from horolog.workers.leases import FENCE_MARGIN_US, Outcome, Why, beat_every_us

F = TypeVar("F", bound=Callable[..., Any])

LEASE_WAIT_S: Final = 5
CALL_S: Final = 30.0
REPEAT_S: Final = 1.0
REPEATS_MOST: Final = 600
FENCE_MARGIN_S: Final = FENCE_MARGIN_US / 1_000_000
BEAT_WAIT_MIN_S: Final = 0.5
TOO_MANY: Final = 429
_US: Final = 1_000_000
USER_AGENT: Final = "horolog-sdk"
_DRAINING: Final = "Horolog-Draining"


class ServerRefused(Exception):
    """The server refuses what this worker asks; its text says why and what would be right."""


class Worker:
    """Functions of this process that a server's jobs call."""

    def __init__(
        self,
        server: str = "http://127.0.0.1:8700",
        *,
        concurrency: int = 16,
        pools: Sequence[str] = ("default",),
        api_key: str | None = None,
        tenant: str = "default",
    ) -> None:
        """`concurrency`: runs at the same time. Nothing is sent before `run`."""
        self.handlers: dict[str, Handler] = {}
        self._jobs: dict[str, dict[str, Any]] = {}
        self._concurrency = concurrency
        self._pools = list(pools)
        self._tenant = tenant
        self._id = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        headers = {"User-Agent": USER_AGENT}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = httpx2.Client(
            base_url=server, headers=headers, timeout=CALL_S, trust_env=False
        )
        self._stopping = threading.Event()
        self._free = threading.Semaphore(concurrency)

    def job(
        self,
        name: str,
        *,
        cron: str | None = None,
        every: str | None = None,
        at: str | None = None,
        tz: str = "UTC",
        retries: int = 0,
        timeout: str = "1h",
        **fields: Any,
    ) -> Callable[[F], F]:
        """Register a function under a job's name; none of `cron`, `every`, `at`: the job runs only
        when triggered. `fields`: others of the job file, such as `catchUp` or `labels`.
        """
        given = {"cron": cron, "every": every, "at": at}
        schedule = {key: value for key, value in given.items() if value is not None}

        def register(function: F) -> F:
            self.handlers[name] = function
            self._jobs[name] = {
                "schedule": {**schedule, "timezone": tz},
                "target": {"handler": name},
                "retry": {"max": retries},
                "timeout": timeout,
                **fields,
            }
            return function

        return register

    def register(self) -> None:
        """Create or update the jobs on the server. Raises ServerRefused."""
        for name, spec in self._jobs.items():
            response = self._http.put(f"/v1/jobs/{self._tenant}.{name}", json=spec)
            if response.status_code >= 400:
                raise ServerRefused(response.json().get("detail", response.text))

    def run(self) -> None:
        """Register the jobs and execute their runs until INT or TERM, then finish what runs."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked_to_stop)
        self.register()
        self.work()

    def _asked_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping.set()

    def work(self) -> None:
        """Execute runs until `stop`, or until the server drains this worker; then finish what
        runs.
        """
        executor = HandlerExecutor(self.handlers, threads=self._concurrency)
        running: list[threading.Thread] = []
        try:
            while not self._stopping.is_set():
                if not self._free.acquire(timeout=REPEAT_S):
                    continue
                lease = self._lease()
                if lease is None:
                    self._free.release()
                    continue
                attempt = _Attempt(self._http, executor, lease, self._free, self.stop)
                attempt.start()
                running = [other for other in running if other.is_alive()]
                running.append(attempt)
        finally:
            for other in running:
                other.join()
            executor.close()

    def stop(self) -> None:
        """Lease nothing more."""
        self._stopping.set()

    def _lease(self) -> tuple[dict[str, Any], float] | None:
        """One lease and when it was asked for. The same request is sent until it is answered, so
        that an answer lost on the way strands no run.
        """
        body = {
            "workerId": self._id,
            "pools": self._pools,
            "max": 1,
            "requestId": secrets.token_hex(8),
            "handlers": sorted(self.handlers),
            "slots": self._concurrency,
        }
        sent_s = boot_s()
        while not self._stopping.is_set():
            try:
                response = self._http.post(
                    "/v1/runs:lease", json=body, headers={"Prefer": f"wait={LEASE_WAIT_S}"}
                )
            except httpx2.TransportError:
                self._stopping.wait(REPEAT_S)
                continue
            if response.status_code >= 500 or response.status_code == TOO_MANY:
                self._stopping.wait(REPEAT_S)
                continue
            if response.status_code >= 400:
                raise ServerRefused(response.json().get("detail", response.text))
            if _DRAINING in response.headers:
                self.stop()
            leases: list[dict[str, Any]] = response.json()
            # Of a long poll only the server knows when its claim left, and nobody knows how long
            # the answer was on its way: the lease counts from when it was asked for.
            return (leases[0], sent_s) if leases else None
        return None


def boot_s() -> float:
    """Boot-time clock in seconds; goes on while the machine is suspended."""
    return boot_us() / _US


class _Attempt(threading.Thread):
    """One leased attempt: the call, its heartbeats, its output, its report."""

    def __init__(
        self,
        http: httpx2.Client,
        executor: HandlerExecutor,
        lease: tuple[dict[str, Any], float],
        free: threading.Semaphore,
        drain: Callable[[], None],
    ) -> None:
        super().__init__(name="horolog-attempt", daemon=True)
        self._http = http
        self._executor = executor
        self._raw, self._held_s = lease
        self._free = free
        self._drain = drain
        self._grant = grant_of(self._raw)
        self._capture = Capture(self._grant, self._send_output)
        self._events: queue.SimpleQueue[bytes | Outcome] = queue.SimpleQueue()
        self._is_lost = False

    def run(self) -> None:
        """Until its end is reported, or nobody waits for it any more."""
        try:
            outcome = self._execute() if self._is_held() else None
            self._capture.close()
            if outcome is not None and not self._is_lost:
                self._complete(outcome)
        finally:
            self._free.release()

    def _is_held(self) -> bool:
        """Whether the lease is still ours. One that was asked for long ago may have ended while
        its answer was on the way, or while this process stood still: then a heartbeat tells.
        """
        give_up_s = boot_s() + self._grant.term_us / _US
        while (now_s := boot_s()) - self._held_s > beat_every_us(self._grant) / _US:
            if self._beat(now_s, REPEAT_S):
                return not self._is_lost
            if now_s >= give_up_s:
                return False
            threading.Event().wait(REPEAT_S)
        return True

    def _execute(self) -> Outcome:
        grant = self._grant
        stop = self._executor.begin(grant, self._events.put, self._events.put)
        term_s, grace_s = grant.term_us / _US, grant.kill_grace_us / _US
        ends_s = boot_s() + grant.timeout_us / _US
        every_s = beat_every_us(grant) / _US
        beat_s = self._held_s + every_s
        stopped = False
        while True:
            now_s = boot_s()
            fence_s = self._held_s + term_s - grace_s - FENCE_MARGIN_S
            if not stopped and now_s >= fence_s:
                self._is_lost = stopped = True
                stop(Why.LEASE_LOST)
            if not stopped and now_s >= ends_s:
                stopped = True
                stop(Why.TIMED_OUT)
            if now_s >= beat_s:
                answered = self._beat(now_s, fence_s - now_s)
                beat_s = (now_s if answered else boot_s()) + (every_s if answered else REPEAT_S)
                if self._raw.get("cancelled") and not stopped:
                    stopped = True
                    stop(Why.CANCELLED)
            wait_s = max(min(beat_s, ends_s, fence_s, now_s + REPEAT_S) - now_s, 0.01)
            try:
                event = self._events.get(timeout=wait_s)
            except queue.Empty:
                self._capture.flush()
                continue
            if isinstance(event, Outcome):
                return event
            self._capture.write(event)

    def _beat(self, now_s: float, wait_s: float) -> bool:
        """Renew the lease; whether it was answered in time."""
        timeout_s = min(max(wait_s, BEAT_WAIT_MIN_S), CALL_S)
        answer = self._report("heartbeat", {}, timeout_s)
        if answer is None or answer.status_code >= 500:
            return False
        if answer.status_code == 409:
            self._is_lost = True
            self._held_s = -1e9
        elif answer.is_success:
            self._held_s = now_s
            told = answer.json()
            if told.get("status") == "CANCELLED":
                self._raw["cancelled"] = True
            if told.get("draining"):
                self._drain()
        return True

    def _complete(self, outcome: Outcome) -> None:
        """Report until it is answered."""
        body = {
            "ok": outcome.result is RunResult.SUCCEEDED,
            "result": outcome.result.value,
            "output": outcome.output.decode(errors="replace"),
            "exitCode": outcome.exit_code,
            "error": outcome.error,
            "retryable": outcome.retryable,
        }
        for _ in range(REPEATS_MOST):
            answer = self._report("complete", body)
            if answer is not None and answer.status_code < 500:
                return
            threading.Event().wait(REPEAT_S)

    def _report(
        self, verb: str, body: dict[str, Any], timeout_s: float = CALL_S
    ) -> httpx2.Response | None:
        grant = self._grant
        proof = {"fencingToken": grant.token, "claimId": grant.claim_id}
        try:
            return self._http.post(
                f"/v1/runs/{grant.run_id}:{verb}", json={**proof, **body}, timeout=timeout_s
            )
        except httpx2.TransportError:
            return None

    def _send_output(self, chunk: LogChunk) -> None:
        params: dict[str, str | int] = {
            "fencingToken": chunk.token,
            "attempt": chunk.attempt,
            "offset": chunk.offset,
            "last": str(chunk.last).lower(),
        }
        for _ in range(3):
            try:
                self._http.post(f"/v1/runs/{chunk.run_id}/logs", params=params, content=chunk.data)
            except httpx2.TransportError:
                continue
            return


def grant_of(raw: dict[str, Any]) -> Grant:
    """The grant that a lease over HTTP stands for."""
    run_id = RunId(raw["runId"])
    payload = raw.get("payload")
    if "payloadBase64" in raw:
        data = base64.b64decode(raw["payloadBase64"])
    elif payload is None:
        data = b""
    elif isinstance(payload, str) and not is_json(raw["contentType"]):
        data = payload.encode()
    else:
        data = msgspec.json.encode(payload)
    return Grant(
        run_id=run_id,
        job_id=JobId(job_of(run_id)),
        partition=0,
        attempt=raw["attempt"],
        round=raw.get("round", 0),
        token=raw["fencingToken"],
        claim_id=raw["claimId"],
        inbox="",
        term_us=int(raw["termS"] * _US),
        slot_us=slot_of(run_id),
        due_us=0,
        target=Target(handler=raw["target"]["handler"]),
        payload=data,
        content_type=raw["contentType"],
        timeout_us=int(raw["timeoutS"] * _US),
        kill_grace_us=int(raw["killGraceS"] * _US),
    )


def is_json(content_type: str) -> bool:
    """Whether a media type is JSON."""
    return content_type.partition(";")[0].strip().endswith("json")
