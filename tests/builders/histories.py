"""Stores of the tables, made anew for each example, and folds into them."""

import contextlib
import tempfile
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from horolog.projections.fold import Batch, Fold, Source
from horolog.projections.known import RETENTION_US
from horolog.projections.queries import Place, Queries
from horolog.projections.rebuild import digest, rebuild
from horolog.projections.schema import TABLES
from horolog.projections.store import Checkpoints, Store
from horolog.projections.stores.memory import MemoryHistory
from horolog.projections.stores.sqlite import SqliteHistory
from horolog.projections.tables import FlatRow
from horolog.schemas.records import JobId
from tests.builders.ledger import Ledger

History = MemoryHistory | SqliteHistory
Opener = Callable[[], AbstractContextManager[History]]


@contextlib.contextmanager
def memory() -> Generator[History]:
    """In memory."""
    yield MemoryHistory()


@contextlib.contextmanager
def sqlite() -> Generator[History]:
    """On a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        history = SqliteHistory(Path(folder) / "history.db")
        try:
            yield history
        finally:
            history.close()


OPENERS: dict[str, Opener] = {"memory": memory, "sqlite": sqlite}


def both(history: History) -> tuple[Store, Queries]:
    """Each store is the queries on it too; the checker is made to see it."""
    return history, history


def fold_all(
    source: Source, store: Store, batches: Iterable[Batch], *, retention_us: int = RETENTION_US
) -> Fold:
    """Fold these batches and write them in one transaction."""
    fold = Fold(source, store, retention_us=retention_us)
    for batch in batches:
        fold.fold(batch)
    fold.write()
    return fold


def content(store: Store) -> dict[str, list[FlatRow]]:
    """All rows that are there."""
    with store.snapshot() as snapshot:
        return {table.name: list(snapshot.rows(table)) for table in TABLES}


def digests(store: Store) -> dict[str, str]:
    """Digest of each table."""
    with store.snapshot() as snapshot:
        return digest(snapshot)


class ForgetfulMemory(MemoryHistory):
    """Says that nothing is folded yet: its rows were written, its checkpoints lost."""

    def checkpoints(self) -> Checkpoints:
        """None."""
        return {}


class ForgetfulSqlite(SqliteHistory):
    """Says that nothing is folded yet: its rows were written, its checkpoints lost."""

    def checkpoints(self) -> Checkpoints:
        """None."""
        return {}


def interleaved(batches: Sequence[Sequence[Batch]], picks: Sequence[int]) -> list[Batch]:
    """The batches of the partitions in some order that keeps that of each partition."""
    left = [list(each) for each in batches]
    order: list[Batch] = []
    for number in range(sum(map(len, batches))):
        present = [each for each in left if each]
        pick = picks[number % len(picks)] if picks else 0
        order.append(present[pick % len(present)].pop(0))
    return order


def shown(ledger: Ledger, store: History) -> History:
    """The store with all of the ledger in it."""
    ledger.commit()
    rebuild(ledger.log, store)
    return store


def pages(
    history: Queries,
    limit: int,
    *,
    job_id: JobId,
    statuses: Collection[str] = (),
    newest_first: bool = True,
    from_us: int | None = None,
    to_us: int | None = None,
) -> list[list[str]]:
    """IDs of a whole walk, page by page."""
    walked: list[list[str]] = []
    after: Place | None = None
    while True:
        page = history.runs(
            job_id,
            statuses=statuses,
            from_us=from_us,
            to_us=to_us,
            after=after,
            limit=limit,
            newest_first=newest_first,
        )
        walked.append([row.run_id for row in page.rows])
        after = page.after
        if after is None:
            return walked
