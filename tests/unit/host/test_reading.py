"""What an owner takes from its topics, and how far that moves its positions."""

import msgspec

from horolog.schemas.ids import partition_of
from horolog.schemas.records import (
    CancelRun,
    ClaimRun,
    ClaimRuns,
    JobId,
    Mark,
    PauseJob,
    RunId,
    TenantId,
    TenantSettings,
)
from horolog.streams.host.inbox import MarkRead
from horolog.streams.host.ports import Item, Undecodable
from horolog.streams.host.reading import Reading
from horolog.streams.host.topics import ANSWERS, COMMANDS, REPORTS
from horolog.streams.limits import COMMANDS_PER_STEP

PARTITIONS = 3
JOB = JobId("acme.a")
HOME = partition_of(JOB, PARTITIONS)


def item(topic: str, offset: int, value: msgspec.Struct | Undecodable) -> Item:
    """A record as a consumer gives it."""
    return Item(topic=topic, partition=HOME, offset=offset, append_us=7, value=value)


def pause(number: int = 0, job_id: JobId = JOB) -> PauseJob:
    """A command."""
    return PauseJob(command_id=f"c{number}", job_id=job_id)


def reading(**positions: int) -> Reading:
    """An owner's reading, from some positions on."""
    return Reading(HOME, PARTITIONS, {COMMANDS: positions.get("commands", 0)})


def test_position_moves_when_a_step_takes_the_record_and_not_when_it_is_read() -> None:
    inputs = reading()
    assert inputs.offer(item(COMMANDS, 4, pause())) is None
    assert inputs.positions[COMMANDS] == 0
    assert list(inputs.take()) == [pause()]
    assert inputs.positions[COMMANDS] == 5


def test_record_below_the_position_is_a_copy_and_dropped() -> None:
    inputs = reading(commands=5)
    assert inputs.offer(item(COMMANDS, 4, pause())) is None
    assert not inputs
    inputs.offer(item(COMMANDS, 5, pause(1)))
    inputs.offer(item(COMMANDS, 5, pause(2)))
    assert list(inputs.take()) == [pause(1)]


def test_commands_of_one_step_are_capped_and_their_position_with_them() -> None:
    inputs = reading()
    for offset in range(COMMANDS_PER_STEP + 3):
        inputs.offer(item(COMMANDS, offset, pause(offset)))
    assert len(list(inputs.take())) == COMMANDS_PER_STEP
    assert inputs.positions[COMMANDS] == COMMANDS_PER_STEP
    assert len(list(inputs.take())) == 3


def test_marks_and_claims_keep_the_order_of_their_topic() -> None:
    inputs = reading()
    claim = ClaimRun(
        run_id=RunId(f"{JOB}@manual-x"),
        plan=1,
        dispatcher=0,
        epoch=1,
        worker_id="w",
        inbox="w",
        claim_id="c",
    )
    inputs.offer(item(REPORTS, 0, Mark(writer_epoch=1)))
    inputs.offer(item(REPORTS, 1, ClaimRuns(claims=(claim,))))
    inputs.offer(item(REPORTS, 2, Mark(writer_epoch=1)))
    assert list(inputs.take()) == [MarkRead(append_us=7), claim, MarkRead(append_us=7)]


def test_record_that_is_no_input_is_named_and_moves_the_position() -> None:
    stranger = next(
        JobId(f"acme.j{number}")
        for number in range(100)
        if partition_of(f"acme.j{number}", PARTITIONS) != HOME
    )
    crossed = CancelRun(command_id="c", job_id=JOB, run_id=RunId(f"{stranger}@manual-x"))
    foreign = {
        "0 bytes": Undecodable(data=b"", why="0 bytes"),
        "has no place in job-commands": TenantSettings(tenant=TenantId("acme")),
        "belongs in partition": pause(job_id=stranger),
        "belongs in partition -1": crossed,
    }
    inputs = reading()
    for offset, (why, value) in enumerate(foreign.items()):
        assert why in (inputs.offer(item(COMMANDS, offset, value)) or "")
    assert list(inputs.take()) == []
    assert inputs.positions == {COMMANDS: len(foreign), REPORTS: 0, ANSWERS: 0}
