"""A copy that goes on as a log of its own, or a log cut back, gets the next generation.

Fencing tokens are `seq + generation * 2^40`, so its tokens are above all that the log it comes
from ever gave, or will give, however far that one had got.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from horolog.schemas.records import InputsRead, LogCreated, TzdataChanged
from horolog.streams.log.protocol import Batch


def next_generation(batches: Iterable[Batch], generation: int) -> Batch | None:
    """The batch that opens a generation, to follow all batches of a partition; None: it has none
    yet, and its first batch will name the generation.

    It decides nothing: it repeats the first record, with the generation and the zone rules' version
    now in force.
    """
    created: LogCreated | None = None
    end: InputsRead | None = None
    for batch in batches:
        for event in batch.events:
            if isinstance(event, LogCreated):
                created = event
            elif isinstance(event, TzdataChanged) and created is not None:
                created = replace(created, tzdata=event.version)
            elif isinstance(event, InputsRead):
                end = event
    if created is None or end is None:
        return None
    begun = replace(
        created,
        seq=end.seq + 1,
        writer_epoch=end.writer_epoch,
        at_us=end.at_us + 1,
        batch=end.seq + 1,
        generation=generation,
    )
    sealed = replace(
        end,
        seq=begun.seq + 1,
        at_us=begun.at_us + 1,
        batch=begun.seq,
        positions={},
        records=2,
    )
    return Batch(partition=created.partition, events=(begun, sealed))


def place_of(path: Path) -> str:
    """Which file this is, whatever its name: a file that was moved is the same one; a copy, or one
    that was put back from a backup, is another. A disk set back as a whole is not noticed.
    """
    return f"{os.statvfs(path).f_fsid}:{path.stat().st_ino}"
