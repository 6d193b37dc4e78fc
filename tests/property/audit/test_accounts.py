"""The account of slots against a set of minutes."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from horolog.schemas.records import Schedule
from horolog.streams.audit.accounts import Given, SlotAccount, Stretch
from horolog.streams.calendar import Zones
from tests.builders.core import JOB, T0
from tests.builders.stories import minute

EACH_MINUTE = Schedule(every_us=60_000_000, anchor_us=T0)
ZONES = Zones()
LAST = 30
slots = st.integers(1, LAST)


class Account(RuleBasedStateMachine):
    """Takes and frees slots 1 to 30 in both."""

    def __init__(self) -> None:
        super().__init__()
        self.account = SlotAccount(JOB)
        self.account.settle(T0, ZONES)
        self.account.change(EACH_MINUTE, T0)
        self.taken: set[int] = set()
        self.frontier = 0

    @rule(slot=slots)
    def one_is_taken(self, slot: int) -> None:
        expected = Given.DECIDED if slot in self.taken else Given.FRESH
        assert self.account.give(minute(slot), ZONES) is expected
        self.taken.add(slot)
        self.frontier = max(self.frontier, slot)

    @rule(slot=slots)
    def one_between_two_is_none(self, slot: int) -> None:
        if minute(slot) + 1 > self.account.frontier_us:
            assert self.account.give(minute(slot) + 1, ZONES) is Given.NO_SLOT

    @rule(after=slots, count=st.integers(1, LAST))
    def a_range_is_taken(self, after: int, count: int) -> None:
        wanted = set(range(after + 1, min(after + count, LAST) + 1))
        end = max(wanted, default=after)
        found = self.account.take(minute(after), minute(end), ZONES)
        assert minutes(found.fresh) == wanted - self.taken
        assert minutes(found.decided) == wanted & self.taken
        self.taken |= wanted
        self.frontier = max(self.frontier, end)

    @rule(data=st.data())
    def one_is_given_back(self, data: st.DataObject) -> None:
        if self.taken:
            slot = data.draw(st.sampled_from(sorted(self.taken)))
            self.account.give_back(minute(slot))
            self.taken.discard(slot)

    @rule(slot=slots)
    def a_change_frees_what_comes_after(self, slot: int) -> None:
        self.account.settle(minute(slot), ZONES)
        self.taken = {each for each in self.taken if each <= slot}
        self.frontier = slot

    @rule(slot=slots)
    def a_change_leaves_what_comes_after(self, slot: int) -> None:
        self.account.go_on(minute(slot), ZONES)
        self.frontier = max(self.frontier, slot)

    @invariant()
    def the_free_ones_are_the_same(self) -> None:
        free = minutes(list(self.account.free(minute(LAST), ZONES)))
        assert free == set(range(1, LAST + 1)) - self.taken
        passed_over = minutes(list(self.account.free(T0, ZONES)))
        assert passed_over == set(range(1, self.frontier + 1)) - self.taken


def minutes(stretches: list[Stretch]) -> set[int]:
    """The slots of some stretches, each of them once."""
    found = [
        (slot_us - T0) // 60_000_000
        for stretch in stretches
        for slot_us in stretch.slots(JOB, ZONES)
    ]
    assert len(found) == len(set(found))
    return set(found)


TestAccount = Account.TestCase
