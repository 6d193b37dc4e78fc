"""`codec`: the 12 records of a run's life, encoded and decoded, beside fastavro in the same run.

    python -m bench.codec

Both codecs see the same records and give the same bytes. fastavro is handed the dicts it takes and
leaves dicts; ours starts from the records and ends with them, which is what the rest works on.
"""

import io
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypedDict, cast

import fastavro
import msgspec

from bench.report import report
from horolog.schemas.catalog import avro_root
from horolog.schemas.codec import decode, encode
from horolog.schemas.index import INDEX
from horolog.schemas.records import (
    ClaimRun,
    ClaimRuns,
    CompleteRun,
    CompleteRuns,
    DispatchStatus,
    Grant,
    Heartbeat,
    Heartbeats,
    Hint,
    Hints,
    InboxBatch,
    InputsRead,
    JobId,
    Record,
    ReportAnswered,
    ReportKind,
    RunId,
    RunPlanned,
    RunResult,
    RunStarted,
    RunState,
    RunStates,
    RunSucceeded,
    Target,
    TenantId,
    Verdict,
)

ROUNDS: Final = 25
LIVES: Final = 100

AT_US = 1_796_083_200_000_000
JOB = JobId("acme.billing-close")
RUN = RunId("acme.billing-close@20261201T000000Z")
CLAIM = "f81d4fae7dec11d0a76500a0c91e6bf6"
SEQ = 81_723
TOKEN = SEQ + (1 << 40)


class Stamps(TypedDict):
    """What the host stamps on an event."""

    seq: int
    writer_epoch: int
    at_us: int
    batch: int


def stamps(seq: int) -> Stamps:
    """The stamps of a step's event."""
    return {"seq": seq, "writer_epoch": 17, "at_us": AT_US + seq, "batch": SEQ}


def state(status: DispatchStatus) -> RunStates:
    """A step's run states with one run in it."""
    one = RunState(
        run_id=RUN,
        tenant=TenantId("acme"),
        plan=SEQ,
        attempt=1,
        status=status,
        not_before_us=AT_US,
        due_us=AT_US,
        pool="default",
    )
    return RunStates(partition=3, writer_epoch=17, seq=SEQ, runs=(one,))


def inbox_batch(**parts: Any) -> InboxBatch:
    """A step's answers to one inbox."""
    return InboxBatch(partition=3, writer_epoch=17, seq=SEQ, **parts)


def a_grant() -> Grant:
    """The lease of a run's first attempt."""
    return Grant(
        run_id=RUN,
        job_id=JOB,
        partition=3,
        attempt=1,
        token=TOKEN,
        claim_id=CLAIM,
        inbox="w-17",
        term_us=30_000_000,
        slot_us=AT_US,
        due_us=AT_US,
        target=Target(handler="billing.close"),
        payload=b'{"region": "eu"}',
        timeout_us=3_600_000_000,
        kill_grace_us=10_000_000,
    )


def a_life() -> tuple[Record, ...]:
    """The records that planning, starting and finishing a run writes, a step for each."""
    grant = a_grant()
    hint = Hint(
        run_id=RUN, partition=3, plan=SEQ, dispatcher=1, epoch=5, valid_until_us=AT_US + 1_500_000
    )
    claim = ClaimRun(
        run_id=RUN, plan=SEQ, dispatcher=1, epoch=5, worker_id="w-17", inbox="w-17", claim_id=CLAIM
    )
    answer = ReportAnswered(
        run_id=RUN,
        token=TOKEN,
        claim_id=CLAIM,
        inbox="w-17",
        kind=ReportKind.COMPLETE,
        verdict=Verdict.ACCEPTED,
    )
    beat = Heartbeat(run_id=RUN, token=TOKEN, claim_id=CLAIM, inbox="w-17")
    done = CompleteRun(
        run_id=RUN,
        token=TOKEN,
        claim_id=CLAIM,
        inbox="w-17",
        result=RunResult.SUCCEEDED,
        exit_code=0,
    )
    positions = {"job-reports:3": 991_337, "job-commands:3": 4_711, "job-answers:3": 12}
    return (
        RunPlanned(**stamps(SEQ), job_id=JOB, run_id=RUN, slot_us=AT_US, due_us=AT_US),
        state(DispatchStatus.WAITING),
        Hints(hints=(hint,)),
        ClaimRuns(claims=(claim,)),
        RunStarted(
            **stamps(SEQ + 1),
            job_id=JOB,
            run_id=RUN,
            attempt=1,
            generation=1,
            worker_id="w-17",
            inbox="w-17",
            claim_id=CLAIM,
            term_us=30_000_000,
            version=1,
            lease_time_us=2_592_000_000_000,
        ),
        inbox_batch(grants=(grant,)),
        Heartbeats(heartbeats=(beat,)),
        CompleteRuns(completions=(done,)),
        RunSucceeded(
            **stamps(SEQ + 2), job_id=JOB, run_id=RUN, attempt=1, token=TOKEN, exit_code=0
        ),
        inbox_batch(answers=(answer,)),
        state(DispatchStatus.CLOSED),
        InputsRead(
            **stamps(SEQ + 3), positions=positions, lease_time_us=2_592_000_000_000, records=4
        ),
    )


def microseconds_a_life(works: Sequence[Callable[[], object]]) -> list[float]:
    """Best of the rounds, each of which takes every work in turn, so that all meet one load."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            begun = time.perf_counter()
            for _ in range(LIVES):
                work()
            taken = (time.perf_counter() - begun) / LIVES * 1e6
            best[number] = min(best[number], taken)
    return best


def without_logical(raw: Any) -> Any:
    """The schema with bare longs: fastavro would make datetimes, at a cost we do not have."""
    if isinstance(raw, dict):
        entries = cast("dict[str, Any]", raw)
        return {k: without_logical(v) for k, v in entries.items() if k != "logicalType"}
    items: list[Any] = [*raw] if isinstance(raw, list) else []
    return [without_logical(item) for item in items] if isinstance(raw, list) else raw


def parsed_schema(record: Record) -> Any:
    """The record's schema as fastavro takes it."""
    path = INDEX[type(record).__name__][0]
    text = (avro_root() / f"{path}.avsc").read_text(encoding="utf-8")
    return fastavro.parse_schema(without_logical(msgspec.json.decode(text)))


# fastavro types its file argument as IO without saying of what.
_avro: Any = fastavro
oracle_write: Callable[..., None] = _avro.schemaless_writer
oracle_read: Callable[..., Any] = _avro.schemaless_reader


def oracle_bytes(schema: Any, value: Any) -> bytes:
    """What fastavro makes of a value."""
    out = io.BytesIO()
    oracle_write(out, schema, value)
    return out.getvalue()


def main() -> None:
    """Measure and print."""
    life = a_life()
    written = [encode(record) for record in life]
    pairs = [(type(record), data) for record, data in zip(life, written, strict=True)]
    parsed = [parsed_schema(record) for record in life]
    plain = [oracle_read(io.BytesIO(d), p, None) for d, p in zip(written, parsed, strict=True)]
    assert written == [oracle_bytes(p, v) for p, v in zip(parsed, plain, strict=True)]
    ours_out, ours_in, theirs_out, theirs_in = microseconds_a_life(
        (
            lambda: [encode(record) for record in life],
            lambda: [decode(cls, data) for cls, data in pairs],
            lambda: [oracle_bytes(p, v) for p, v in zip(parsed, plain, strict=True)],
            lambda: [
                oracle_read(io.BytesIO(d), p, None) for d, p in zip(written, parsed, strict=True)
            ],
        )
    )
    report(
        "codec",
        "12 records of a run's life, one run a message; no framing; best of rounds",
        records=len(life),
        bytes=sum(map(len, written)),
        encode_us=round(ours_out, 1),
        decode_us=round(ours_in, 1),
        fastavro_encode_us=round(theirs_out, 1),
        fastavro_decode_us=round(theirs_in, 1),
        encode_ratio=round(theirs_out / ours_out, 2),
        decode_ratio=round(theirs_in / ours_in, 2),
    )


if __name__ == "__main__":
    main()
