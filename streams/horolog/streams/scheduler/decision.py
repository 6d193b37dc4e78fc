"""How the pure core is stepped.

`decide` is a generator over events and messages. The driver stamps and evolves each event *before*
it asks for the next item, so a later part of one decision reads what an earlier part did, and no
part needs to foretell `evolve`. The core stays free of effects: the generator only reads.
"""

from horolog.schemas.records import Event
from horolog.streams.scheduler.messages import Message

Step = Event | Message
"""An event to append, or an answer to give once the batch is committed."""
