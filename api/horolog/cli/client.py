"""The API as the CLI sees it: answers as JSON, errors as exits that say what to do."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, cast

import httpx2

from horolog.api.json_values import Json
from horolog.cli.exits import Exit, Stop

DEFAULT_SERVER: Final = "http://127.0.0.1:8700"
_POSITION: Final = "Horolog-Position"
_TIMEOUT_S: Final = 15.0
_EXITS: Final = {
    400: Exit.USAGE,
    404: Exit.NOT_FOUND,
    410: Exit.NOT_FOUND,
    413: Exit.USAGE,
    415: Exit.USAGE,
}
"""By status of the answer; any other below 500 is a refusal."""

Object = dict[str, Json]


class Answer(NamedTuple):
    """What the server said."""

    status: int
    body: Json
    headers: Mapping[str, str]

    @property
    def object(self) -> Object:
        """The body, which is an object."""
        assert isinstance(self.body, dict), f"expected an object, got {self.body!r}"
        return self.body


class Client:
    """A connection to one server. Reads see what was written through the same client before."""

    def __init__(self, server: str, *, api_key: str = "", timeout_s: float = _TIMEOUT_S) -> None:
        self.server = server.rstrip("/")
        headers = {"User-Agent": "horolog-cli"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        # The proxy of the environment is for the internet; the server is named by hand.
        self._http = httpx2.Client(
            base_url=self.server, headers=headers, timeout=timeout_s, trust_env=False
        )
        self._positions: dict[str, str] = {}

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
        """Read."""
        return self._call("GET", path, params=params)

    def find(self, path: str) -> Answer | None:
        """Read what may not exist."""
        answer = self._send("GET", path, None, None, None)
        return None if answer.status in (404, 410) else self._checked(answer)

    def probe(self, path: str) -> Answer:
        """Read what answers 503 when something is wrong."""
        answer = self._send("GET", path, None, None, None)
        return answer if answer.status == 503 else self._checked(answer)

    def text(self, path: str) -> str:
        """Read what is no JSON."""
        return b"".join(self.stream(path, {})).decode()

    def post(
        self,
        path: str,
        body: Object | None = None,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        is_long: bool = False,
    ) -> Answer:
        """Do. `is_long`: waits as long as it takes."""
        return self._call(
            "POST", path, body=body or {}, params=params, headers=headers, is_long=is_long
        )

    def put(
        self,
        path: str,
        body: Object,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Replace or create."""
        return self._call("PUT", path, body=body, params=params, headers=headers)

    def delete(self, path: str, *, params: Mapping[str, str] | None = None) -> Answer:
        """End."""
        return self._call("DELETE", path, params=params)

    def pages(self, path: str, params: Mapping[str, str], limit: int | None) -> Iterator[Object]:
        """The items of a list, page after page, at most `limit`."""
        sent = dict(params)
        left = limit
        while left is None or left > 0:
            if left is not None:
                sent["limit"] = str(min(left, 1_000))
            page = self.get(path, sent).object
            items = cast("list[Object]", page["items"])
            yield from items
            left = None if left is None else left - len(items)
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or not items:
                return
            sent["cursor"] = cursor

    def stream(self, path: str, params: Mapping[str, str]) -> Iterator[bytes]:
        """A body as it comes, for as long as it comes."""
        try:
            timeout = httpx2.Timeout(_TIMEOUT_S, read=None)
            with self._http.stream(
                "GET", path, params=params, timeout=timeout, headers=self._seen()
            ) as response:
                if response.status_code >= 400:
                    response.read()
                    self._checked(_answer(response))
                yield from response.iter_bytes()
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Object | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        is_long: bool = False,
    ) -> Answer:
        return self._checked(self._send(method, path, body, params, headers, is_long=is_long))

    def _send(
        self,
        method: str,
        path: str,
        body: Object | None,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        *,
        is_long: bool = False,
    ) -> Answer:
        timeout = httpx2.Timeout(_TIMEOUT_S, read=None) if is_long else self._http.timeout
        sent = dict(headers or {})
        if method == "GET":
            sent |= self._seen()
        try:
            response = self._http.request(
                method, path, json=body, params=params, headers=sent, timeout=timeout
            )
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        position = response.headers.get(_POSITION, "")
        partition, colon, seq = position.partition(":")
        if colon:
            self._positions[partition] = seq
        return _answer(response)

    def _seen(self) -> dict[str, str]:
        """What makes a read see all that this client wrote."""
        if not self._positions:
            return {}
        return {_POSITION: ", ".join(f"{k}:{v}" for k, v in self._positions.items())}

    def _checked(self, answer: Answer) -> Answer:
        if answer.status < 400:
            return answer
        problem = answer.body if isinstance(answer.body, dict) else {}
        default = Exit.UNAVAILABLE if answer.status >= 500 else Exit.REFUSED
        errors = problem.get("errors")
        code = problem.get("code")
        detail = str(problem.get("detail") or f"the server answered {answer.status}")
        raise Stop(
            _EXITS.get(answer.status, default),
            f"{detail} ({code})" if code else detail,
            hint=str(problem.get("hint") or ""),
            details=[_fault(one) for one in errors if isinstance(one, dict)]
            if isinstance(errors, list) and len(errors) > 1
            else (),
        )

    def _unreachable(self, error: httpx2.TransportError) -> Stop:
        if isinstance(error, httpx2.TimeoutException):
            return Stop(
                Exit.UNAVAILABLE,
                f"{self.server} has not answered in {_TIMEOUT_S:.0f} s",
                hint="see what is wrong with `horolog doctor`",
            )
        return Stop(
            Exit.UNAVAILABLE,
            f"no server answers at {self.server}",
            hint="start one with `horolog up`, or name another with --server",
        )


def _fault(fault: Mapping[str, Json]) -> str:
    return f"{fault.get('pointer') or 'body'}: {fault.get('detail')}"


def _answer(response: httpx2.Response) -> Answer:
    body: Json = None
    if response.content and "json" in response.headers.get("content-type", ""):
        body = cast("Json", response.json())
    return Answer(response.status_code, body, response.headers)
