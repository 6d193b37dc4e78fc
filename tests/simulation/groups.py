"""A model of consumer groups: they say who should own what, and fence nothing.

Members send heartbeats; one that is silent for the session time-out is put out, without knowing.
A partition moves from a live member when that member has let it go, from a lost one at once.
"""

from collections.abc import Callable
from typing import Final

from tests.simulation.world import SECOND_US, Node, World

HEARTBEAT_US: Final = 2 * SECOND_US
SESSION_US: Final = 6 * SECOND_US


class Group:
    """The coordinator of one group."""

    def __init__(self, world: World, partitions: int) -> None:
        self._world = world
        self._heard: dict[str, int] = {}
        self._owner: dict[int, str | None] = dict.fromkeys(range(partitions))
        """Who is told that it owns a partition."""
        self._members: tuple[str, ...] = ()
        self._plan: dict[int, str] = {}

    def heartbeat(self, name: str, owned: set[int]) -> set[int]:
        """A member lives and owns these: what it should own."""
        self._expire()
        self._heard[name] = self._world.now_us
        wanted = self._wanted()
        for partition, owner in self._owner.items():
            if owner == name and wanted[partition] != name and partition not in owned:
                self._owner[partition] = None
            if self._owner[partition] is None and wanted[partition] == name:
                self._owner[partition] = name
        return {
            partition
            for partition, owner in self._owner.items()
            if owner == name and wanted[partition] == name
        }

    def leave(self, name: str) -> None:
        """A member goes, and says so."""
        self._heard.pop(name, None)
        for partition, owner in self._owner.items():
            if owner == name:
                self._owner[partition] = None

    def _expire(self) -> None:
        for name, heard_us in list(self._heard.items()):
            if self._world.now_us - heard_us > SESSION_US:
                self.leave(name)

    def _wanted(self) -> dict[int, str]:
        """Partitions spread over the members, each staying where it is if that is even enough."""
        names = sorted(self._heard)
        if tuple(names) == self._members:
            return self._plan
        self._members = tuple(names)
        most = -(-len(self._owner) // len(names))
        load = dict.fromkeys(names, 0)
        wanted: dict[int, str] = {}
        for partition, owner in self._owner.items():
            if owner is not None and load[owner] < most:
                wanted[partition] = owner
                load[owner] += 1
        for partition in self._owner:
            if partition not in wanted:
                name = min(names, key=lambda each: (load[each], each))
                wanted[partition] = name
                load[name] += 1
        self._plan = wanted
        return wanted


class Member:
    """One process's side of a group."""

    def __init__(self, group: Group, node: Node, changed: Callable[[], None]) -> None:
        """`changed`: what should be owned is not what was."""
        self._group = group
        self._node = node
        self._name = f"{node.name}.{node.life}"
        self._changed = changed
        self.assigned: set[int] = set()
        """What the process believes that it should own."""
        self.held: set[int] = set()
        """What it has not let go yet."""
        self._aside_until_us = 0
        self.is_cut = False
        """The coordinator is out of reach: nothing is heard, what is owned is kept."""

    def start(self) -> None:
        """Join, and go on living."""
        if not self.is_cut and self._node.world.now_us >= self._aside_until_us:
            before = self.assigned
            self.assigned = self._group.heartbeat(self._name, set(self.held))
            if self.assigned != before:
                self._changed()
        self._node.after(HEARTBEAT_US, self.start)

    def leave(self, for_us: int) -> None:
        """Go with a word, and come back after some time."""
        self._aside_until_us = self._node.world.now_us + for_us
        self.assigned = set()
        self._group.leave(self._name)
