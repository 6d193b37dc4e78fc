"""A copy that goes on as a log of its own, or a log cut back, gets the next generation.

Fencing tokens are `seq + generation * 2^40`, so its tokens are above all that the log it comes
from ever gave, or will give, however far that one had got.
"""

from collections.abc import Iterable

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
