"""Virtual time, nodes that may be paused and killed, and coroutines that run on them.

One thread, one heap. Everything that happens has an instant (microseconds) and, at equal instants,
an order drawn from the seed. Chance comes from named substreams, so that taking one fault away
leaves every other draw as it was.
"""

import hashlib
import heapq
import random
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final

SECOND_US: Final = 1_000_000
MOMENT_US: Final = 2_000
"""How long a thread takes to notice that something came."""


STILL_MOST: Final = 20_000
"""Things that may happen at one instant; more is a loop that never waits."""


class Stuck(Exception):
    """Something goes on for ever without time passing."""


class World:
    """The heap, the seed and the trace of one simulation."""

    def __init__(self, seed: int, start_us: int) -> None:
        self.seed = seed
        self.start_us = start_us
        self.now_us = start_us
        self._heap: list[_Event] = []
        self._count = 0
        self._order = self.chance("order").random
        self._still = 0
        self._trace = hashlib.sha256()
        self.events = 0

    def chance(self, name: str) -> random.Random:
        """A substream of its own, the same for the same seed and name."""
        return random.Random(f"{self.seed}/{name}")

    def at(self, at_us: int, act: Callable[[], None], node: "Node | None" = None) -> None:
        """Have something happen at an instant; with a node: in this life of it, unless paused."""
        self._count = count = self._count + 1
        life = 0 if node is None else node.life
        heapq.heappush(self._heap, (at_us, self._order(), count, act, node, life))

    def after(self, us: int, act: Callable[[], None]) -> None:
        """Have something happen some time from now."""
        self.at(self.now_us + us, act)

    def run(self, until_us: int) -> None:
        """Let everything happen up to an instant. Raises Stuck."""
        heap = self._heap
        pop = heapq.heappop
        while heap and heap[0][0] <= until_us:
            at_us, _, _, act, node, life = pop(heap)
            if at_us > self.now_us:
                self.now_us = at_us
                self._still = 0
            self._still += 1
            if self._still > STILL_MOST:
                raise Stuck(f"time stands still: {act}, {'' if node is None else node.name}")
            self.events += 1
            if node is None:
                act()
            elif node.life == life:
                if node.is_paused:
                    node.parked.append(act)
                else:
                    act()
        self.now_us = until_us

    def note(self, *what: object) -> None:
        """Put something into the trace, of which equal runs have the same digest."""
        self._trace.update(f"{self.now_us} {what}\n".encode())

    @property
    def digest(self) -> str:
        """SHA-256 of all that was noted."""
        return self._trace.hexdigest()


class Clock:
    """A node's clocks (`host.clock.Clock`): its wall clock may be wrong, its boot clock is not."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.offset_us = 0
        """What the wall clock shows beyond true time."""
        self.drift_ppm = 0
        self._booted_us = world.now_us - 1_000 * SECOND_US

    def wall_us(self) -> int:
        """True time, plus what is wrong with it."""
        now_us = self._world.now_us
        return (
            now_us + self.offset_us + (now_us - self._world.start_us) * self.drift_ppm // 1_000_000
        )

    def boot_us(self) -> int:
        """Microseconds since the node started."""
        return self._world.now_us - self._booted_us


class Node:
    """A process: it has tasks and timers, can be paused (SIGSTOP) and killed (SIGKILL)."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.clock = Clock(world)
        self.life = 0
        """Goes up with each death: what belongs to an earlier life never happens."""
        self.is_paused = False
        self.is_up = False
        self.parked: list[Callable[[], None]] = []
        """What should have happened while it was paused."""
        self._tasks: set[Task] = set()

    def boot(self) -> None:
        """Start; a subclass starts its tasks."""
        self.is_up = True

    def kill(self) -> None:
        """End at once, whatever is going on."""
        self.life += 1
        self.is_up = False
        self.is_paused = False
        self.parked.clear()
        for task in list(self._tasks):
            task.drop()
        self._tasks.clear()

    def pause(self) -> None:
        """Nothing of it happens until `resume`."""
        self.is_paused = True

    def resume(self) -> None:
        """What should have happened meanwhile happens now, in its order."""
        self.is_paused = False
        parked, self.parked = self.parked, []
        for act in parked:
            self.after(0, act)

    def after(self, us: int, act: Callable[[], None]) -> None:
        """A timer of this life of the node."""
        self.world.at(self.world.now_us + us, act, self)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> "Task":
        """Run a coroutine on this node."""
        task = Task(self, coroutine)
        self._tasks.add(task)
        self.after(0, task.start)
        return task

    def forget(self, task: "Task") -> None:
        """A task has ended."""
        self._tasks.discard(task)


class Task:
    """A coroutine on a node. It suspends in `sleep` and `Gate.wait` only."""

    def __init__(self, node: Node, coroutine: Coroutine[Any, Any, None]) -> None:
        self.node = node
        self._coroutine = coroutine
        self._suspension = 0
        self.is_over = False

    def start(self) -> None:
        """Run to the first suspension."""
        self._go_on(self._suspension)

    def drop(self) -> None:
        """Never go on."""
        self.is_over = True
        self._suspension += 1
        self._coroutine.close()

    def waker(self) -> Callable[[], None]:
        """What lets the task go on from its present suspension; later it does nothing."""
        suspension = self._suspension
        return lambda: self._go_on(suspension)

    def wake_after(self, us: int) -> None:
        """Go on from the present suspension after some time, if nothing wakes it before."""
        self.node.after(us, self.waker())

    def _go_on(self, suspension: int) -> None:
        if self.is_over or suspension != self._suspension:
            return
        self._suspension += 1
        try:
            armed = self._coroutine.send(None)
        except StopIteration:
            self.is_over = True
            self.node.forget(self)
            return
        armed(self)


class _Suspend:
    """What a coroutine awaits: `arm` is told the task to wake."""

    def __init__(self, arm: Callable[[Task], None]) -> None:
        self._arm = arm

    def __await__(self) -> Generator[Callable[[Task], None], None, None]:
        yield self._arm


def sleep(us: int) -> _Suspend:
    """Let virtual time pass."""
    return _Suspend(lambda task: task.wake_after(us))


class Gate:
    """Something one task waits for."""

    def __init__(self) -> None:
        self._wake: Callable[[], None] | None = None
        self._is_open = False

    def open(self) -> None:
        """Let the task go on, now or when it comes; a moment later, as a thread would."""
        self._is_open = True
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def wait(self, us: int) -> _Suspend:
        """Go on when it is opened, or after some time."""

        def arm(task: Task) -> None:
            was_open, self._is_open = self._is_open, False
            if was_open:
                task.wake_after(0)
                return
            waker = task.waker()
            task.node.after(max(us, 0), waker)
            self._wake = lambda: task.node.after(MOMENT_US, waker)

        return _Suspend(arm)


_Event = tuple[int, float, int, Callable[[], None], Node | None, int]
