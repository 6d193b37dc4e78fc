"""A client that knows nothing of the product: requests, and clients that repeat until answered."""

import http.client
import json
import threading
import time
from typing import Any, NamedTuple

from tests.torture.acks import Acks

PATIENCE_S = 90.0
KEPT_S = 2.0


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any
    headers: dict[str, str]


class Api:
    """One connection, for one thread; made anew after an error."""

    def __init__(self, port: int, timeout_s: float = 15.0) -> None:
        self._port = port
        self._timeout_s = timeout_s
        self._http: http.client.HTTPConnection | None = None
        self._used_s = 0.0

    def call(
        self,
        method: str,
        path: str,
        body: object | None = None,
        *,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request. Raises OSError or HTTPException if it is not answered."""
        if self._http is None or time.monotonic() - self._used_s > KEPT_S:
            # The server closes what has been idle; a request must not meet that.
            self.close()
            self._http = http.client.HTTPConnection(
                "127.0.0.1", self._port, timeout=self._timeout_s
            )
        self._used_s = time.monotonic()
        data = raw if raw is not None else (None if body is None else json.dumps(body).encode())
        sent = {"Content-Type": "application/json", **(headers or {})}
        try:
            self._http.request(method, path, data, sent)
            response = self._http.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        kind = response.headers.get("Content-Type", "")
        return Answer(
            response.status,
            json.loads(content) if "json" in kind and content else content,
            dict(response.headers.items()),
        )

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def until_answered(
        self, method: str, path: str, body: object | None = None, *, stop: threading.Event
    ) -> Answer | None:
        """Repeat the same request until it is answered for good (2xx, or 4xx but 429); None: told
        to stop before.
        """
        end = time.monotonic() + PATIENCE_S
        while not stop.is_set():
            try:
                answer = self.call(method, path, body)
            except (OSError, http.client.HTTPException):
                answer = None
            if answer is not None and answer.status < 500 and answer.status != 429:
                return answer
            assert time.monotonic() < end, f"{method} {path}: not answered, last {answer}"
            stop.wait(0.05)
        return None


class Client(threading.Thread):
    """Triggers some jobs and edits one, each request repeated until it is answered."""

    def __init__(self, port: int, acks: Acks, name: str, jobs: list[str], pause_s: float) -> None:
        super().__init__(name=name, daemon=True)
        self._api = Api(port)
        self._acks = acks
        self._jobs = jobs
        self._pause_s = pause_s
        self._halt = threading.Event()
        self.failure: BaseException | None = None

    def halt(self) -> None:
        """Send nothing new; what waits for its answer is given up."""
        self._halt.set()
        self.join()

    def run(self) -> None:
        try:
            number = 0
            while not self._halt.wait(self._pause_s):
                number += 1
                self._trigger(self._jobs[number % len(self._jobs)], f"{self.name}-{number}")
                if number % 10 == 0:
                    self._edit(number)
        except BaseException as failure:
            self.failure = failure
            raise
        finally:
            self._api.close()

    def _trigger(self, job: str, key: str) -> None:
        path, body = f"/v1/jobs/default.{job}:trigger", {"idempotencyKey": key}
        answer = self._api.until_answered("POST", path, body, stop=self._halt)
        if answer is not None:
            assert answer.status == 202, answer
            self._acks.triggered(key, answer.body["runId"])

    def _edit(self, number: int) -> None:
        job = f"edited-{self.name}"
        spec = {"target": {"handler": "inline"}, "payload": {"n": number}}
        answer = self._api.until_answered("PUT", f"/v1/jobs/default.{job}", spec, stop=self._halt)
        if answer is not None:
            assert answer.status in {200, 201}, answer
            self._acks.edited(f"default.{job}", number)
