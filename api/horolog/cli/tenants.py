"""Commands on tenants."""

from typing import Final

from horolog.api.json_values import Json
from horolog.cli.client import Object
from horolog.cli.exits import Exit, Stop
from horolog.cli.jobs import as_list
from horolog.cli.output import Column
from horolog.cli.session import Session

LIMITS: Final = ("concurrency", "backlog", "jobs")
NO_LIMIT: Final = "none"
_COLUMNS: Final = (
    Column("TENANT"),
    Column("JOBS"),
    Column("RUNNING"),
    Column("WAITING"),
    Column("DEAD"),
)


def index(session: Session) -> None:
    """List tenants: what each has, and of how much."""
    answer = session.client.get("/v1/tenants").object
    items = [item for item in as_list(answer["items"]) if isinstance(item, dict)]
    cells = [_cells(item) for item in items]
    session.out.rows(items, _COLUMNS, cells, empty="no tenants", name="tenant")


def set_limits(session: Session, name: str, given: dict[str, str | None]) -> None:
    """Set the limits that are given; the others stay. `none` takes one away."""
    changes: dict[str, Json] = {
        limit: _limit(limit, text) for limit, text in given.items() if text is not None
    }
    if not changes:
        raise Stop(
            Exit.USAGE,
            "no limit is given",
            hint=f"give one, as `horolog tenant set {name} --concurrency 10`",
        )
    found = session.client.find(f"/v1/tenants/{name}")
    before: Object = {} if found is None else found.object
    body = {limit: before.get(limit) for limit in LIMITS} | changes
    headers = {} if found is None else {"If-Match": found.headers["etag"]}
    after = session.client.put(f"/v1/tenants/{name}", body, headers=headers).object
    if not session.out.is_table:
        session.out.item({**after, "id": name}, [])
        return
    for limit in changes:
        session.out.line(f"{name} {limit}: {_told(before.get(limit))} -> {_told(after[limit])}")
    session.out.note("in force now; next: horolog tenants")


def _limit(limit: str, text: str) -> int | None:
    if text == NO_LIMIT:
        return None
    if not text.isascii() or not text.isdigit():
        raise Stop(Exit.USAGE, f"--{limit} is {text!r}, neither a whole number nor {NO_LIMIT!r}")
    return int(text)


def _cells(tenant: Object) -> list[str]:
    use = tenant["use"]
    assert isinstance(use, dict)
    return [
        str(tenant["tenant"]),
        _of(use["jobs"], tenant["jobs"]),
        _of(use["running"], tenant["concurrency"]),
        _of(use["waiting"], tenant["backlog"]),
        str(use["dead"]),
    ]


def _of(used: Json, limit: Json) -> str:
    return str(used) if limit is None else f"{used} of {limit}"


def _told(limit: Json) -> str:
    return NO_LIMIT if limit is None else str(limit)
