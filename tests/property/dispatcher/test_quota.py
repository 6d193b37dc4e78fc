"""The quota holds at every instant, whatever is lost, doubled or late, and through takeovers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.schemas.records import DispatchStatus, RunId, RunState
from horolog.streams.limits import SECOND_US
from tests.builders.dispatch import TICK_US, Desk, moved, waiting

QUOTA = 3


class World:
    """Runs as they truly are, and a dispatcher that is told of them with losses."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.desk.limit("acme", concurrency=QUOTA)
        self.true: dict[RunId, RunState] = {}
        self.hinted: set[RunId] = set()
        self.count = 0

    def act(self, choice: int) -> None:
        """One thing happens."""
        kind, pick = choice % 8, choice // 8
        if kind in (0, 1):
            self.count += 1
            state = waiting(f"r{self.count:04}", due_us=self.desk.now_us, plan=self.count)
            self.become(state, lost=pick % 5 == 0)
        elif kind in (2, 3):
            self._claim(pick)
        elif kind == 4:
            self._end(pick)
        elif kind == 5:
            self.desk.tell(list(self.true.values())[: pick % 4], seq=None)
        elif kind == 6 and pick % 4 == 0:
            self.take_over()
        self._tick()

    def become(self, state: RunState, *, lost: bool) -> None:
        """A run is in this state from now on."""
        if state.status is DispatchStatus.CLOSED:
            self.true.pop(state.run_id, None)
        else:
            self.true[state.run_id] = state
        if not lost:
            self.desk.tell([state])

    def _claim(self, pick: int) -> None:
        ready = sorted(
            run_id
            for run_id in self.hinted
            if run_id in self.true and self.true[run_id].status is DispatchStatus.WAITING
        )
        if ready:
            run = self.true[ready[pick % len(ready)]]
            self.become(moved(run, DispatchStatus.STARTED), lost=pick % 3 == 0)

    def _end(self, pick: int) -> None:
        running = self.running()
        if running:
            run = self.true[running[pick % len(running)]]
            self.become(moved(run, DispatchStatus.CLOSED), lost=pick % 3 == 0)

    def take_over(self) -> None:
        """A dispatcher of the next epoch, told all."""
        old, self.desk = self.desk, Desk(self.desk.dispatcher.epoch + 1)
        self.desk.now_us = old.now_us
        self.desk.seq = old.seq
        self.desk.limit("acme", concurrency=QUOTA)
        # Hints of the older epoch no longer lead to a grant.
        self.hinted.clear()
        self.desk.inventory(list(self.true.values()))

    def _tick(self) -> None:
        for hint in self.desk.tick(TICK_US):
            self.hinted.add(hint.run_id)

    def running(self) -> list[RunId]:
        """Runs that truly run."""
        return [
            run_id for run_id, state in self.true.items() if state.status is DispatchStatus.STARTED
        ]


@given(st.lists(st.integers(0, 800), max_size=120))
@settings(max_examples=200, deadline=None)
def test_runs_that_truly_run_never_exceed_the_quota(choices: list[int]) -> None:
    world = World()
    for choice in choices:
        world.act(choice)
        assert len(world.running()) <= QUOTA


@given(st.lists(st.integers(0, 800), max_size=80))
@settings(max_examples=100, deadline=None)
def test_after_an_inventory_every_waiting_run_is_released_as_others_end(
    choices: list[int],
) -> None:
    world = World()
    for choice in choices:
        world.act(choice)
    world.take_over()
    released: set[RunId] = set()
    wanted = {
        run_id for run_id, state in world.true.items() if state.status is DispatchStatus.WAITING
    }
    for _ in range(4 * len(world.true) + 4):
        released |= {hint.run_id for hint in world.desk.tick(SECOND_US)}
        for run_id in list(world.true):
            state = world.true[run_id]
            if run_id in released and state.status is DispatchStatus.WAITING:
                world.desk.tell([moved(state, DispatchStatus.STARTED)])
                world.true[run_id] = moved(state, DispatchStatus.STARTED)
            elif state.status is DispatchStatus.STARTED:
                world.become(moved(state, DispatchStatus.CLOSED), lost=False)
    assert wanted <= released
