"""`horolog up`: everything in one process, until it is told to drain."""

import asyncio
import contextlib
import gc
import importlib
import secrets
import signal
import socket
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final

import structlog
import uvicorn
from typing_extensions import override

from horolog.api.app import create_app
from horolog.cli.embedded import Embedded
from horolog.cli.exits import Exit, Stop
from horolog.schemas.errors import PORT_IN_USE, HorologError
from horolog.workers.executors.handler import Handler

FORGET_EVERY_S: Final = 3600
BACKLOG: Final = 2048
"""Connections that wait to be accepted, as with uvicorn."""
HEALTH_EVERY_S: Final = 1.0
SECRET_FILE: Final = "cursor-secret"  # noqa: S105 - the name of a file
BOX: Final = """\
+----------------------------------------------------------------------------+
| One process on SQLite: for a laptop or a single server.                    |
| It is not for: surviving the loss of this machine, more than one server.   |
| Whoever reaches the port may run commands as this user: keep it on this    |
| machine.                                                                   |
+----------------------------------------------------------------------------+"""


def serve(
    *,
    data: Path,
    host: str,
    port: int,
    partitions: int | None,
    slots: int,
    handlers: Mapping[str, Handler],
    retention_us: int,
    hosts: tuple[str, ...] = (),
    quiet: bool = False,
) -> None:
    """Serve until TERM or INT, then drain. Raises Stop with what to do."""
    # A traceback drawn with its locals costs a second each, which whoever can cause one could use.
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    listener = _listen(host, port)
    try:
        server = Embedded(
            data,
            partitions=partitions,
            slots=slots,
            handlers=handlers,
            retention_us=retention_us,
        )
        server.start()
    except HorologError as error:
        listener.close()
        text = f"{error.detail} ({error.error.number})"
        raise Stop(Exit.UNAVAILABLE, text, hint=error.error.hint) from error
    # Cost: each full collection would look at every recovered job, 60 ms for 20,000 of them.
    gc.collect()
    gc.freeze()
    if server.log.is_copy:
        print(
            f"{data} is a copy, or was put back from one: it goes on as generation "
            f"{server.log.generation}, its fencing tokens above all that were given before",
            file=sys.stderr,
        )
    try:
        asyncio.run(_serve(server, listener, data, hosts, quiet=quiet))
    finally:
        if not quiet:
            print("draining: what runs may finish; once more Ctrl-C kills it", file=sys.stderr)
        server.stop()
    if server.host.failure is not None:
        raise Stop(Exit.FAILED, f"the host stopped: {server.host.failure}")


def handlers_of(modules: list[str]) -> dict[str, Handler]:
    """Functions registered by the workers of some modules, named `module` or `module:worker`."""
    found: dict[str, Handler] = {}
    sys.path.insert(0, "")
    for text in modules:
        module_name, _, name = text.partition(":")
        try:
            module = importlib.import_module(module_name)
            worker = getattr(module, name or "worker")
        except (ImportError, AttributeError) as error:
            raise Stop(Exit.USAGE, f"--handlers {text}: {error}") from error
        found |= worker.handlers
    return found


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise Stop(
            Exit.UNAVAILABLE,
            f"{host}:{port} cannot be listened on: {error.strerror} ({PORT_IN_USE.number})",
            hint="name another with --port",
        ) from error
    return listener


async def _serve(
    server: Embedded,
    listener: socket.socket,
    data: Path,
    hosts: tuple[str, ...],
    *,
    quiet: bool,
) -> None:
    app = create_app(server, secret=_secret(data), hosts=hosts)
    config = uvicorn.Config(
        app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1, access_log=False
    )
    api = _Api(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)

    def failed() -> None:
        with contextlib.suppress(RuntimeError):
            # The loop is closed: it drains already.
            loop.call_soon_threadsafe(stop.set)

    server.host.on_failure = failed
    # From here on a request waits to be answered; without it, one could come before uvicorn does.
    listener.listen(BACKLOG)
    serving = loop.create_task(api.serve(sockets=[listener]))
    if not quiet:
        address, port = listener.getsockname()[:2]
        print(BOX, file=sys.stderr)
        print(f"API on http://{address}:{port}, data in {data}", file=sys.stderr)
        print("next: horolog add hello --every 1m -- echo hi", file=sys.stderr, flush=True)
    server.projector.on_failure = failed
    waiting = loop.create_task(stop.wait())
    tidying = loop.create_task(_forget_hourly(server))
    telling = loop.create_task(_tell_health(server))
    await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
    tidying.cancel()
    telling.cancel()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
    api.should_exit = True
    waiting.cancel()
    await serving


async def _forget_hourly(server: Embedded) -> None:
    while True:
        await asyncio.to_thread(server.forget_output)
        await asyncio.sleep(FORGET_EVERY_S)


async def _tell_health(server: Embedded) -> None:
    told = ""
    while True:
        detail = server.health().detail
        if _news(detail) != _news(told):
            print(f"horolog: {detail or 'all is well again'}", file=sys.stderr, flush=True)
            told = detail
        await asyncio.sleep(HEALTH_EVERY_S)


def _news(detail: str) -> str:
    """What of a detail is worth telling again: not its numbers."""
    return "".join(char for char in detail if not char.isdigit())


class _Api(uvicorn.Server):
    """uvicorn without its own signal handlers: what ends first is decided here."""

    @contextlib.contextmanager
    @override
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals alone."""
        yield


def _secret(data: Path) -> bytes:
    """The secret that signs cursors: made once for a data directory."""
    place = data / SECRET_FILE
    if not place.exists():
        place.touch(mode=0o600)
        place.write_bytes(secrets.token_bytes(32))
    return place.read_bytes()
