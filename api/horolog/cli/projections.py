"""Commands on the tables that reads come from."""

from typing import Final
from urllib.parse import quote

from horolog.cli.jobs import as_list
from horolog.cli.output import Column
from horolog.cli.session import Session

_COLUMNS: Final = (
    Column("NAME"),
    Column("PARTITION"),
    Column("POSITION"),
    Column("END"),
    Column("BEHIND"),
    Column("SECONDS"),
)


def status(session: Session) -> None:
    """How far the tables are behind the ledger."""
    items = as_list(session.client.get("/v1/projections").object["items"])
    rows = [
        {"name": item["name"], **part}
        for item in items
        if isinstance(item, dict)
        for part in as_list(item["partitions"])
        if isinstance(part, dict)
    ]
    cells = [[_cell(value) for value in row.values()] for row in rows]
    session.out.rows(rows, _COLUMNS, cells, empty="no projections", name="name")


def rebuild(session: Session, name: str) -> None:
    """Build the tables anew and swap them in."""
    session.out.note(f"building {name} anew beside the tables in use; reads go on")
    path = f"/v1/projections/{quote(name, safe='')}:rebuild"
    answer = session.client.post(path, is_long=True).object
    if session.out.is_table:
        session.out.line(f"{name} rebuilt from {answer['events']} events")
        session.out.note("next: horolog replay --verify")
    else:
        session.out.value(answer)


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
