"""Runs a program: success is exit status 0.

It gets a process group of its own, so TERM and KILL reach whatever it started. Standard output and
standard error are one stream, as they come. A program that leaves something running in the
background has ended when it has ended itself, as with cron: output is read for one more second, so
that a helper that holds the pipe open does not hold the run open.
"""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Final

from horolog.schemas.records import Grant, RunResult
from horolog.workers.capture import Capture
from horolog.workers.executors.protocol import StopSignal, variables
from horolog.workers.leases import Outcome

READ_BYTES: Final = 64 * 1024
LEFTOVER_S: Final = 1.0
STATUS_S: Final = 0.001
PASSED_ON: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR")
"""What a program sees of the server's environment, with `LC_*`; nothing else, so no secret."""
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class CommandExecutor:
    """Runs programs on this machine, as this process's user."""

    def __init__(self, directory: str | None = None) -> None:
        """`directory`: working directory of the programs; None = the user's home, as with cron."""
        self._directory = directory or str(Path.home())

    async def execute(self, grant: Grant, capture: Capture, stop: StopSignal) -> Outcome:
        """See `Executor`."""
        command = grant.target.command
        assert command, "a grant for a command names one"
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                env=environment(grant),
                cwd=self._directory,
            )
        except (OSError, ValueError) as error:
            return _not_started(command[0], error)
        return await _Process(process, grant, capture, stop).run()


def environment(grant: Grant) -> dict[str, str]:
    """The environment of a program."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith("LC_")
    }
    return {"PATH": DEFAULT_PATH, **passed, **variables(grant)}


def _not_started(program: str, error: OSError | ValueError) -> Outcome:
    if isinstance(error, FileNotFoundError):
        reason = f"{program}: there is no such program on the worker"
    else:
        reason = f"{program} cannot be started: {error}"
    return Outcome(result=RunResult.FAILED, error=reason)


class _Process:
    """One program from its start to its end."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        grant: Grant,
        capture: Capture,
        stop: StopSignal,
    ) -> None:
        self._process = process
        self._grant = grant
        self._capture = capture
        self._stop = stop

    async def run(self) -> Outcome:
        feeding = asyncio.create_task(self._feed())
        reading = asyncio.create_task(self._read())
        stopping = asyncio.create_task(self._stop_when_asked())
        try:
            status = await self._exited()
            await asyncio.wait((reading,), timeout=LEFTOVER_S)
        finally:
            for task in (feeding, reading, stopping):
                task.cancel()
            await asyncio.gather(feeding, reading, stopping, return_exceptions=True)
            self._close_pipe()
        if self._stop.why is not None:
            # Whatever is left of a stopped run's group goes with it.
            self._signal(signal.SIGKILL)
        return self._outcome(status)

    async def _exited(self) -> int:
        """Wait for the program itself. asyncio's own wait also waits for the pipe to close, which a
        helper left in the background holds open.
        """
        with contextlib.suppress(ProcessLookupError):
            await _ended(os.pidfd_open(self._process.pid))
        # The child watcher's thread is about to say the status.
        while self._process.returncode is None:  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(STATUS_S)
        return self._process.returncode

    async def _feed(self) -> None:
        """Payload to standard input; a program that does not read it is free to."""
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pipe.write(self._grant.payload)
            await pipe.drain()
            pipe.close()

    async def _read(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        while data := await pipe.read(READ_BYTES):
            self._capture.write(data)

    async def _stop_when_asked(self) -> None:
        await self._stop.wait()
        self._signal(signal.SIGTERM)
        await asyncio.sleep(self._grant.kill_grace_us / 1_000_000)
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # The group outlives its leader as long as anything of it runs.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _close_pipe(self) -> None:
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    def _outcome(self, status: int) -> Outcome:
        if self._stop.why is not None:
            return self._stop.outcome()
        if status == 0:
            return Outcome(result=RunResult.SUCCEEDED, exit_code=0)
        return Outcome(
            result=RunResult.FAILED,
            exit_code=status if status > 0 else 128 - status,
            error=told_of(status),
        )


async def _ended(pidfd: int) -> None:
    """Wait until a process has ended, and close its descriptor."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(pidfd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


def told_of(status: int) -> str:
    """An exit status in words; below zero, or above 128 as shells tell it, a signal ended it."""
    number = -status if status < 0 else status - 128
    if number > 0:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = ""
        if name:
            verb = {"SIGKILL": "killed", "SIGTERM": "terminated"}.get(name, "ended")
            return f"{verb} (signal {number}, {name})"
    return f"exit status {status}"
