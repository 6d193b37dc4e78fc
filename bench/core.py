"""`core`: whole lives of runs through decide, evolve, react and the codec, without any I/O.

    python -m bench.core [RUNS]

A life is planned, started and succeeded: three events, the share of its batches' `InputsRead`, the
claim and the completion read, the grant and the states made. Encoding is that of the ledger's
events; decoding is what a reader of them pays, and given beside it.
"""

import sys
import time

from bench.report import median, report
from horolog.schemas.codec import decode, encode
from horolog.schemas.records import ClaimRun, CompleteRun, Event, JobId, RunId, RunResult
from horolog.streams.limits import SECOND_US
from tests.builders.core import EPOCH, Core, definition

ROUNDS = 5
STEP = 500


def one_round(runs_count: int) -> tuple[float, float, float, int]:
    """Seconds of logic, of encoding and of decoding, and the number of events."""
    core = Core()
    for number in range(runs_count):
        core.create(definition("0 13 * * *"), JobId(f"acme.job{number}"))
    core.clock.advance(3600 * SECOND_US - 25 * SECOND_US)
    core.events.clear()
    core.messages.clear()
    begun = time.perf_counter()
    while sum(len(job.runs) for job in core.state.jobs.values()) < runs_count:
        core.step()
    core.clock.advance(25 * SECOND_US)
    runs = [run for job in core.state.jobs.values() for run in job.runs.values()]
    claims = [claim_of(run.run_id, run.plan) for run in runs]
    for first in range(0, runs_count, STEP):
        core.step(*claims[first : first + STEP])
    completions = [completion_of(run.run_id, core.token(run.run_id)) for run in runs]
    for first in range(0, runs_count, STEP):
        core.step(*completions[first : first + STEP])
    logic_s = time.perf_counter() - begun
    events: list[Event] = list(core.events)
    begun = time.perf_counter()
    encoded = [encode(event) for event in events]
    encode_s = time.perf_counter() - begun
    kinds = [type(event) for event in events]
    begun = time.perf_counter()
    for kind, data in zip(kinds, encoded, strict=True):
        decode(kind, data)
    return logic_s, encode_s, time.perf_counter() - begun, len(events)


def claim_of(run_id: RunId, plan: int) -> ClaimRun:
    """A claim of the run."""
    return ClaimRun(
        run_id=run_id,
        plan=plan,
        dispatcher=0,
        epoch=EPOCH,
        worker_id="worker-1",
        inbox="inbox-1",
        claim_id="Zm9vYmFyYmF6cXV4MTIzNA",
    )


def completion_of(run_id: RunId, token: int) -> CompleteRun:
    """A completion of the run."""
    return CompleteRun(
        run_id=run_id,
        token=token,
        claim_id="Zm9vYmFyYmF6cXV4MTIzNA",
        inbox="inbox-1",
        result=RunResult.SUCCEEDED,
        exit_code=0,
    )


def main() -> None:
    """Print the figures."""
    runs_count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    rounds = [one_round(runs_count) for _ in range(ROUNDS)]
    events = rounds[0][3]
    logic_us, encode_us, decode_us = (
        median([each[part] for each in rounds]) / events * 1e6 for part in range(3)
    )
    report(
        "core",
        "decide, evolve, react, timers and encoding of whole run lives (planned, started, "
        "succeeded); no I/O, no dispatcher, no executor; steps of up to 500 inputs",
        runs=runs_count,
        events=events,
        logic_us_per_event=round(logic_us, 1),
        encode_us_per_event=round(encode_us, 1),
        decode_us_per_event=round(decode_us, 1),
        us_per_event=round(logic_us + encode_us, 1),
        lives_per_s=round(runs_count / events / (logic_us + encode_us) * 1e6),
    )


if __name__ == "__main__":
    main()
