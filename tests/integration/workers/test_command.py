"""Programs: process groups, exit status, environment, output."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from horolog.schemas.records import RunResult, Target
from horolog.workers.capture import Capture
from horolog.workers.executors import StopSignal
from horolog.workers.executors.command import CommandExecutor, told_of
from horolog.workers.leases import Outcome, Why
from tests.builders.grants import Printed, grant, shell
from tests.waiting import until


def execute(
    target: Target, *, payload: bytes = b"", stop_at: bytes | None = None, why: Why = Why.CANCELLED
) -> tuple[Outcome, bytes]:
    """Run a program to its end; stop it once it has printed `stop_at`."""
    printed = Printed()
    given = grant(target, payload=payload, kill_grace_us=300_000)

    async def run() -> Outcome:
        capture = Capture(given, printed.emit)
        stop = StopSignal()
        task = asyncio.create_task(CommandExecutor().execute(given, capture, stop))
        if stop_at is not None:
            while stop_at not in printed.data:
                await asyncio.sleep(0.005)
                capture.flush()
            stop.ask(why)
        outcome = await task
        capture.close()
        return outcome

    return asyncio.run(run()), printed.data


def test_program_is_told_its_run_and_sees_none_of_the_servers_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOROLOG_API_KEY", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    _, data = execute(Target(command=("env",)))
    told = dict(line.split("=", 1) for line in data.decode().splitlines())
    assert told["HOROLOG_RUN_ID"] == "acme.job@20240506T120000Z"
    assert told["HOROLOG_IDEMPOTENCY_KEY"] == told["HOROLOG_RUN_ID"]
    assert told["HOROLOG_ATTEMPT"] == "1"
    assert told["HOROLOG_FENCING_TOKEN"] == "7"
    assert told["HOROLOG_SLOT"] == "20240506T120000Z"
    assert "secret" not in data.decode()


def test_stop_reaches_grandchildren_that_ignore_term(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = (
        f"(trap '' TERM; echo $$ > {pid_file}.tmp; sh -c 'echo $PPID' > {pid_file}; echo begun;"
        " while :; do sleep 0.05; done) & wait"
    )
    outcome, _ = execute(shell(script), stop_at=b"begun")
    assert outcome.result is RunResult.CANCELLED
    pid = int(pid_file.read_text())
    until(lambda: True if not is_alive(pid) else None, "the grandchild has ended", within_s=10)


def is_alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_background_helper_that_holds_the_output_open_does_not_hold_the_run(
    tmp_path: Path,
) -> None:
    place = tmp_path / "pid"
    outcome, data = execute(shell(f"sleep 600 & echo $! > {place}; echo done"))
    assert outcome.result is RunResult.SUCCEEDED
    assert data == b"done\n"
    os.kill(int(place.read_text()), signal.SIGKILL)


def test_program_that_reads_no_input_is_not_held_by_a_large_payload() -> None:
    outcome, _ = execute(shell("exit 0"), payload=b"x" * 250_000)
    assert outcome.result is RunResult.SUCCEEDED


def test_output_of_both_streams_comes_in_order() -> None:
    _, data = execute(shell("echo a; echo b >&2; echo c; echo d >&2"))
    assert data == b"a\nb\nc\nd\n"


def test_missing_program_is_named() -> None:
    outcome, _ = execute(Target(command=("no-such-program-here",)))
    assert outcome.result is RunResult.FAILED
    assert "no-such-program-here" in outcome.error


@pytest.mark.parametrize(
    "script, error, code",
    [
        ("kill -9 $$", "killed (signal 9, SIGKILL)", 137),
        ("kill -15 $$", "terminated (signal 15, SIGTERM)", 143),
        ("exit 137", "killed (signal 9, SIGKILL)", 137),
        ("exit 143", "terminated (signal 15, SIGTERM)", 143),
        ("exit 1", "exit status 1", 1),
    ],
)
def test_x05_exit_status_is_told_in_words(script: str, error: str, code: int) -> None:
    outcome, _ = execute(shell(script))
    assert (outcome.result, outcome.error, outcome.exit_code) == (RunResult.FAILED, error, code)


@pytest.mark.parametrize(
    "why, result",
    [(Why.TIMED_OUT, RunResult.TIMED_OUT), (Why.CANCELLED, RunResult.CANCELLED)],
)
def test_x05_what_we_sent_tells_a_time_out_from_a_cancel(why: Why, result: RunResult) -> None:
    outcome, _ = execute(
        shell("trap 'exit 0' TERM; echo begun; while :; do sleep 0.02; done"),
        stop_at=b"begun",
        why=why,
    )
    assert outcome.result is result


def test_exit_status_beyond_the_signals_is_a_plain_number() -> None:
    assert told_of(255) == "exit status 255"


def test_huge_output_in_one_line_never_blocks_the_program() -> None:
    outcome, data = execute(shell("head -c 30000000 /dev/zero; printf end"))
    assert outcome.result is RunResult.SUCCEEDED
    assert data.endswith(b"end")
    assert len(data) <= 10 * 1024 * 1024
