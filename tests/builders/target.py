"""A real HTTP server to be called, which remembers what it got."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from typing_extensions import override


class Received(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[BaseHTTPRequestHandler], None]


class HttpTargetServer:
    """Answers each path by a function; the request is remembered first."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: dict[str, Answer] = {}
        self.arrived = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _handle(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(size)
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.received.append(Received(self.command, self.path, headers, body))
                outer.arrived.set()
                outer.answers.get(self.path, ok)(self)

            do_GET = do_POST = do_PUT = _handle  # noqa: N815 - the names http.server looks for

            @override
            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


def answer(status: int, body: bytes = b"", **headers: str) -> Answer:
    """An answer with a status, a body and headers."""

    def send(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return send


ok = answer(200, b"done")


@contextmanager
def serving() -> Generator[HttpTargetServer, None, None]:
    """A server for the time of a test."""
    server = HttpTargetServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()
