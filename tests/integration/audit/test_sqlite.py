"""The audit of real files, written by a real owner."""

import contextlib
import sqlite3
from pathlib import Path
from typing import cast

from horolog.schemas.records import RunStarted, RunStatus
from horolog.streams.audit import Report, audit
from horolog.streams.host.replay import verify
from horolog.streams.log.memory import MemoryLog
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.log.sqlite_file import FILE
from tests.builders.core import Core, definition, only

SECOND = 1_000_000


def core_on(folder: Path) -> Core:
    """An owner whose ledger is in a folder."""
    folder.mkdir(exist_ok=True)
    log = SqliteLog(folder, partitions=1)
    return Core(log=cast("MemoryLog", log))  # what it needs of a log, every log has


def work(core: Core, minutes: int) -> None:
    """Time in which whatever waits is started and succeeds."""
    for _ in range(minutes * 6):
        core.pass_time(10 * SECOND, step_us=10 * SECOND)
        for job in list(core.state.jobs.values()):
            for run in list(job.runs.values()):
                if run.status is not RunStatus.RUNNING and run.due_us <= core.now_us:
                    core.claim(run.run_id)
                    core.complete(run.run_id)


def audited(folder: Path) -> Report:
    """The audit of a folder, as another process would make it."""
    log = SqliteLog(folder, readonly=True)
    with contextlib.closing(log):
        return audit(log)


def test_log_that_is_being_written_is_proven_to_where_it_is(tmp_path: Path) -> None:
    core = core_on(tmp_path)
    core.create(definition("* * * * *"))
    work(core, 10)
    first = audited(tmp_path)
    assert first.ok, first.violations
    assert first.outcomes == {"run": 10}
    work(core, 10)
    core.restart(down_us=200 * SECOND)
    work(core, 1)
    second = audited(tmp_path)
    assert second.ok, second.violations
    assert second.outcomes == {"coalesced": 2, "run": 22}


def test_copy_that_goes_on_gives_tokens_above_all_of_the_original(tmp_path: Path) -> None:
    core = core_on(tmp_path / "a")
    core.create(definition("* * * * *"))
    work(core, 2)
    cast("SqliteLog", core.log).backup(tmp_path / "b")
    work(core, 60)
    original = only(core.events, RunStarted)[-1]

    copy = Core(core.now_us, log=cast("MemoryLog", SqliteLog(tmp_path / "b")))
    work(copy, 2)
    grant = only(copy.events, RunStarted)[-1]
    assert (original.generation, grant.generation) == (1, 2)
    assert grant.seq < original.seq
    report = audited(tmp_path / "b")
    assert report.ok, report.violations
    assert audited(tmp_path / "a").ok
    assert verify(copy.log, 0).difference == ""


def test_file_with_a_changed_row_is_proven_up_to_it(tmp_path: Path) -> None:
    core = core_on(tmp_path)
    core.create(definition("* * * * *"))
    work(core, 10)
    whole = audited(tmp_path)
    core.log.close()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file:
        file.execute(
            "UPDATE batches SET data = zeroblob(length(data)) "
            "WHERE last_seq = (SELECT last_seq FROM batches LIMIT 1 OFFSET 40)"
        )
        file.commit()
    part = audited(tmp_path)
    assert [found.rule for found in part.violations] == ["log-sequence"]
    assert part.violations_count == 1
    assert 0 < part.events_count < whole.events_count
    assert part.proven_to_us < whole.proven_to_us
