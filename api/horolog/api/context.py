"""What every route needs: the backend, who asks, zones, cursors, and positions to wait for."""

import re
import secrets
from typing import Final, cast

from starlette.requests import Request
from starlette.responses import JSONResponse

from horolog.api.auth import Authenticator, Principal
from horolog.api.backend import Backend
from horolog.api.checks import id_faults
from horolog.api.cursors import Cursors
from horolog.api.faults import Fault, Refused
from horolog.api.gateway import Gateway
from horolog.api.json_values import Json
from horolog.api.limits import PAGE_DEFAULT, PAGE_MAX, POSITION_WAIT_S
from horolog.api.problems import Denied
from horolog.api.values import parse_instant
from horolog.api.workers import HttpWorkers
from horolog.api.zone_table import ZoneTable
from horolog.schemas.errors import BEHIND, UNKNOWN_JOB, UNKNOWN_RUN, error_of
from horolog.schemas.ids import is_job_id, job_of, tenant_of
from horolog.schemas.records import Command, JobId, Reply, RunId

POSITION: Final = "Horolog-Position"
DIGITS_MAX: Final = 18
"""Of a number in a query: what 64 bits hold."""
_POSITION: Final = re.compile(r"\s*(\d{1,4}):(\d{1,18})\s*")


class Context:
    """Of one app."""

    def __init__(
        self,
        backend: Backend,
        gateways: "Gateways",
        auth: Authenticator,
        cursors: Cursors,
    ) -> None:
        self.backend = backend
        self.gateways = gateways
        self.auth = auth
        self.cursors = cursors
        self.zones = ZoneTable()
        self.followers = 0
        """Streams of events that are open."""
        self.workers = HttpWorkers(backend.now_us)


class Gateways:
    """One gateway a kind of worker: by the functions it has, or the other targets."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._made: dict[frozenset[str] | None, Gateway] = {}
        self._by_claim: dict[str, Gateway] = {}

    def of(self, handlers: frozenset[str] | None) -> Gateway:
        """The gateway of workers that have these functions, or, for None, of workers that execute
        other targets.
        """
        gateway = self._made.get(handlers)
        if gateway is None:
            backend = self._backend
            gateway = self._made[handlers] = Gateway(
                lambda pool: backend.exchange(pool, handlers),
                partitions=backend.partitions,
                now_us=backend.now_us,
            )
            gateway.attach()
            backend.connect(gateway.inbox, gateway.deliver)
        return gateway

    def any(self) -> Gateway:
        """A gateway to report through; which one does not matter to the scheduler."""
        return next(iter(self._made.values()), None) or self.of(None)

    def with_claim(self, claim_id: str) -> Gateway:
        """The gateway a lease went through, else any."""
        for gateway in self._made.values():
            if gateway.term_us_of(claim_id) is not None:
                return gateway
        return self.any()


def context_of(request: Request) -> Context:
    """The app's context."""
    return cast("Context", request.app.state.horolog)


def principal_of(request: Request) -> Principal:
    """Who asks."""
    return context_of(request).auth.principal(request.headers)


def job_id_in(request: Request, text: str) -> JobId:
    """The job a path names, as far as the caller may see it; else there is no such job."""
    if not is_job_id(text) or not principal_of(request).may_see(tenant_of(JobId(text))):
        raise Denied(UNKNOWN_JOB, f"there is no job {text}")
    return JobId(text)


def run_id_in(request: Request, text: str) -> RunId:
    """The run a path names, as far as the caller may see it; else there is no such run."""
    job_id = job_of(RunId(text))
    if not is_job_id(job_id) or not principal_of(request).may_see(tenant_of(job_id)):
        raise Denied(UNKNOWN_RUN, f"there is no run {text}")
    return RunId(text)


def new_job_id(request: Request, name: Json, whole: Json) -> JobId:
    """The ID of a job to create, from its name within the caller's tenant or from a whole ID."""
    principal = principal_of(request)
    text = whole if whole is not None else f"{principal.tenant}.{name}"
    pointer = "/id" if whole is not None else "/name"
    if not isinstance(text, str) or (whole is None and not isinstance(name, str)):
        detail = "a job needs a name, or an id of the form TENANT.NAME"
        raise Refused([Fault(pointer=pointer, detail=detail)])
    tenant, _, rest = text.partition(".")
    faults = id_faults(tenant, rest, pointer)
    if faults:
        raise Refused(faults)
    if not principal.may_see(tenant):
        raise Denied(UNKNOWN_JOB, f"there is no tenant {tenant} for this credential")
    return JobId(text)


async def decided(request: Request, command: Command) -> Reply:
    """The reply to a command; raises Denied if it was refused. With `validateOnly` the reply it
    would have, and nothing is done.
    """
    backend = context_of(request).backend
    if is_dry(request):
        reply = (await backend.preview(command)).reply
    else:
        reply = await backend.submit(command)
    accepted(reply)
    return reply


def accepted(reply: Reply) -> None:
    """Raises Denied if a command was refused."""
    if reply.code:
        raise Denied(error_of(reply.code), reply.detail, field=reply.field)


def written(
    body: dict[str, Json], reply: Reply, *, status: int = 200, version: int | None = None
) -> JSONResponse:
    """The answer to a write, with the position that a later read can ask for; that to a dry one
    (`seq` 0) is 200 and has none.
    """
    if not reply.seq:
        return JSONResponse(body)
    headers = {POSITION: f"{reply.partition}:{reply.seq}"}
    if version:
        headers["ETag"] = f'"{version}"'
    return JSONResponse(body, status, headers)


async def caught_up(request: Request) -> None:
    """Wait until the history has the positions a read names; 503 rather than old data."""
    backend = context_of(request).backend
    for part in (request.headers.get(POSITION) or "").split(","):
        if not part.strip():
            continue
        match = _POSITION.fullmatch(part)
        if match is None or int(match[1]) >= backend.partitions:
            detail = f"{part.strip()!r} is no position; it is as {POSITION} of a write had it"
            raise Refused([Fault(pointer=f"?{POSITION}", detail=detail)])
        await caught_up_to(request, int(match[1]), int(match[2]))


async def caught_up_to(request: Request, partition: int, seq: int) -> None:
    """Wait until the history has a position; 503 rather than old data."""
    if not await context_of(request).backend.wait_for(partition, seq, POSITION_WAIT_S):
        raise Denied(BEHIND, f"the history has not got to {partition}:{seq} yet")


def command_id() -> str:
    """A new command's ID."""
    return secrets.token_urlsafe(16)


def is_dry(request: Request) -> bool:
    """Whether only to check."""
    return flag_in(request, "validateOnly")


def if_version(request: Request) -> int | None:
    """The version that If-Match demands: a strong tag of one version, or `*` for any. A weak tag
    never matches (RFC 9110, 13.1.1).
    """
    tag = request.headers.get("if-match")
    if tag is None or tag.strip() == "*":
        return None
    match = re.fullmatch(r'\s*"(\d{1,9})"\s*', tag)
    return int(match[1]) if match else -1


def tag_demanded(request: Request) -> str | None:
    """The strong tag that If-Match demands, without its quotes; None: any. A weak or malformed one
    is no tag that anything has.
    """
    tag = request.headers.get("if-match")
    if tag is None or tag.strip() == "*":
        return None
    match = re.fullmatch(r'\s*"([\x21\x23-\x7e]{1,64})"\s*', tag)
    return match[1] if match else "?"


def page_limit(request: Request) -> int:
    """How many rows to give."""
    return count_in(request, "limit", default=PAGE_DEFAULT, most=PAGE_MAX)


def count_in(request: Request, name: str, *, default: int, most: int) -> int:
    """A number of things to give; more than the most is clamped."""
    text = request.query_params.get(name)
    if text is None:
        return default
    number = _whole(text)
    if number is None or number < 1:
        detail = f"{text!r} is no such number; from 1 to {most} are right"
        raise Refused([Fault(pointer=f"?{name}", detail=detail)])
    return min(number, most)


def number_in(request: Request, name: str) -> int | None:
    """A whole number of the query, from 0."""
    text = request.query_params.get(name)
    if text is None:
        return None
    number = _whole(text)
    if number is None:
        raise Refused([Fault(pointer=f"?{name}", detail=f"{text!r} is no whole number")])
    return number


def flag_in(request: Request, name: str) -> bool:
    """Whether a flag of the query is set; absent: it is not."""
    text = request.query_params.get(name, "false")
    if text not in ("true", "false", "1", "0"):
        raise Refused([Fault(pointer=f"?{name}", detail=f"{text!r} is neither true nor false")])
    return text in ("true", "1")


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None


def instant_in(request: Request, name: str) -> int | None:
    """An instant of the query, microseconds UTC. It names its offset: a date alone, or a time
    without one, would mean another instant elsewhere.
    """
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        raise Refused([Fault(pointer=f"?{name}", detail=f"{text!r} {error}")]) from error
