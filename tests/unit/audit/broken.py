"""Stories that break a rule, by the rule's name."""

from collections.abc import Callable

from horolog.schemas.records import Overlap
from tests.builders.core import definition
from tests.builders.stories import SECOND, Story

Tell = Callable[[], Story]
NEVER = definition(None)
ONE_RETRY = definition("* * * * *", retries=1)
NO_OVERLAP = definition("* * * * *", overlap=Overlap.SKIP)
IN_TIME = definition("* * * * *", starting_deadline_us=20 * SECOND)
BROKEN: list[tuple[str, Tell]] = []


def breaks(rule: str) -> Callable[[Tell], Tell]:
    """A story in which this rule is broken, and no other."""

    def keep(tell: Tell) -> Tell:
        BROKEN.append((rule, tell))
        return tell

    return keep
