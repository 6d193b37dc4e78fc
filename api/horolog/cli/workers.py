"""Commands on workers."""

from typing import Final
from urllib.parse import quote

from horolog.cli.client import Object
from horolog.cli.jobs import as_list
from horolog.cli.output import Column
from horolog.cli.session import Session

_COLUMNS: Final = (
    Column("WORKER"),
    Column("KIND"),
    Column("POOLS"),
    Column("RUNNING"),
    Column("STATE"),
    Column("LAST SEEN"),
    Column("TENANT", wide=True),
    Column("RUNS", wide=True),
)


def index(session: Session) -> None:
    """List workers: in the server, then over HTTP."""
    answer = session.client.get("/v1/workers").object
    items = [item for item in as_list(answer["items"]) if isinstance(item, dict)]
    cells = [_cells(item) for item in items]
    session.out.rows(items, _COLUMNS, cells, empty="no workers", name="workerId")


def drain(session: Session, worker_id: str) -> None:
    """Have a worker take nothing more."""
    drained = session.client.post(f"/v1/workers/{quote(worker_id, safe=':')}:drain").object
    if not session.out.is_table:
        session.out.item({**drained, "id": worker_id}, [])
        return
    session.out.line(f"{worker_id} takes nothing new, {drained['running']} runs go on")
    session.out.note("until it ends; next: horolog workers")


def _cells(worker: Object) -> list[str]:
    slots = worker["slots"]
    running = str(worker["running"])
    runs = as_list(worker["runs"])
    return [
        str(worker["workerId"]),
        str(worker["kind"]),
        ",".join(str(pool) for pool in as_list(worker["pools"])) or "all",
        running if slots is None else f"{running} of {slots}",
        "draining" if worker["draining"] is True else "active",
        str(worker["lastSeenAt"]),
        str(worker["tenant"] or "all"),
        ",".join(str(run) for run in runs),
    ]
