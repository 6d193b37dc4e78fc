"""Grants and what they need, for tests of workers."""

from horolog.schemas.records import Grant, HttpTarget, JobId, LogChunk, RunId, Target

JOB = JobId("acme.job")
RUN = RunId("acme.job@20240506T120000Z")


def grant(
    target: Target,
    *,
    payload: bytes = b"",
    token: int = 7,
    claim_id: str = "c1",
    attempt: int = 1,
    timeout_us: int = 60_000_000,
    kill_grace_us: int = 5_000_000,
    term_us: int = 30_000_000,
) -> Grant:
    """A grant of one attempt."""
    return Grant(
        run_id=RUN,
        job_id=JOB,
        partition=0,
        attempt=attempt,
        token=token,
        claim_id=claim_id,
        inbox="w1",
        term_us=term_us,
        slot_us=1_714_996_800_000_000,
        due_us=1_714_996_800_000_000,
        target=target,
        payload=payload,
        timeout_us=timeout_us,
        kill_grace_us=kill_grace_us,
    )


def shell(script: str) -> Target:
    """A target that runs a shell script."""
    return Target(command=("/bin/sh", "-c", script))


def url(address: str, method: str = "POST") -> Target:
    """A target that makes a request."""
    return Target(http=HttpTarget(url=address, method=method))


class Printed:
    """What a run printed, put together again."""

    def __init__(self) -> None:
        self.chunks: list[LogChunk] = []

    def emit(self, chunk: LogChunk) -> None:
        """Take a piece."""
        self.chunks.append(chunk)

    @property
    def data(self) -> bytes:
        """All that was kept."""
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def dropped(self) -> int:
        """Bytes left out."""
        return sum(chunk.dropped for chunk in self.chunks)
