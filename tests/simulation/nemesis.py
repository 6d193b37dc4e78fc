"""What makes a scenario's faults happen, and ends them all."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from horolog.schemas.ids import job_id_of
from horolog.schemas.records import TriggerJob
from horolog.streams.host.ports import Undecodable
from horolog.streams.host.topics import ANSWERS, COMMANDS, INBOX, REPORTS, RUN_STATES
from tests.simulation.kafka import Endings, Rates
from tests.simulation.nodes import INBOXES, FleetNode
from tests.simulation.scenario import Fault
from tests.simulation.workers import READY_PLACES
from tests.simulation.world import SECOND_US, Node

if TYPE_CHECKING:
    from tests.simulation.simulate import Simulation


class Nemesis:
    """Does harm to one simulation."""

    def __init__(self, simulation: "Simulation") -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._broker = simulation.broker
        self._chance = simulation.world.chance("nemesis")
        self._is_over = False
        self._floods = 0
        self._acts: Mapping[str, Callable[[Fault], None]] = {
            "kill scheduler": lambda fault: self._kill(simulation.schedulers, fault),
            "pause scheduler": lambda fault: self._pause(simulation.schedulers, fault),
            "cut scheduler": lambda fault: self._cut(simulation.schedulers, fault),
            "kill dispatcher": lambda fault: self._kill(simulation.dispatchers, fault),
            "pause dispatcher": lambda fault: self._pause(simulation.dispatchers, fault),
            "cut dispatcher": lambda fault: self._cut(simulation.dispatchers, fault),
            "lose epochs": lambda _fault: simulation.fleet.epochs.clear(),
            "kill worker": lambda fault: self._kill(simulation.workers, fault),
            "pause worker": lambda fault: self._pause(simulation.workers, fault),
            "lose messages": self._lose,
            "double messages": self._double,
            "delay messages": self._delay,
            "abort transactions": self._abort,
            "doubt transactions": self._doubt,
            "ghost transactions": self._ghost,
            "stall broker": self._stall,
            "wipe ready": lambda _fault: self._wipe(READY_PLACES),
            "wipe inbox": lambda _fault: self._wipe([(INBOX, each) for each in range(INBOXES)]),
            "wipe states": lambda _fault: self._wipe(
                [(RUN_STATES, each) for each in range(simulation.scenario.dispatchers)]
            ),
            "poison": self._poison,
            "step clock": self._step,
            "drift clock": self._drift,
            "hang targets": self._hang,
            "flood": self._flood,
            "outage": self._outage,
        }

    def strike(self, fault: Fault) -> None:
        """Make a fault happen."""
        self._world.note("fault", fault.kind, fault.node)
        self._acts[fault.kind](fault)

    def heal(self) -> None:
        """End every fault: all is up and well from now on."""
        self._is_over = True
        simulation = self._simulation
        self._broker.rates = Rates()
        self._broker.endings = Endings()
        self._broker.stalled_until_us = 0
        simulation.targets.hanging = 0.0
        simulation.targets.failing = 0.0
        simulation.targets.long = 0.0
        nodes: list[FleetNode] = [
            *simulation.schedulers,
            *simulation.dispatchers,
            *simulation.workers,
        ]
        for node in nodes:
            node.clock.offset_us = 0
            node.clock.drift_ppm = 0
            if node.is_paused:
                node.resume()
            if not node.is_up:
                node.boot()
            node.member.is_cut = False
        self._world.note("healed")

    def _end(self, after_us: int, act: Callable[[], None]) -> None:
        def end() -> None:
            if not self._is_over:
                act()

        self._world.after(after_us, end)

    # --- nodes

    def _kill(self, nodes: Sequence[FleetNode], fault: Fault) -> None:
        node = nodes[fault.node % len(nodes)]
        if node.is_up:
            node.kill()
            self._end(fault.lasts_us, lambda: None if node.is_up else node.boot())

    def _outage(self, fault: Fault) -> None:
        """Every scheduler is down at once: slots are missed."""
        for number in range(len(self._simulation.schedulers)):
            self._kill(self._simulation.schedulers, msgspec.structs.replace(fault, node=number))

    def _pause(self, nodes: Sequence[FleetNode], fault: Fault) -> None:
        node = nodes[fault.node % len(nodes)]
        if node.is_up and not node.is_paused:
            node.pause()
            life = node.life
            self._end(fault.lasts_us, lambda: self._resume(node, life))

    def _resume(self, node: Node, life: int) -> None:
        if node.life == life and node.is_paused:
            node.resume()

    def _cut(self, nodes: Sequence[FleetNode], fault: Fault) -> None:
        node = nodes[fault.node % len(nodes)]
        if node.is_up:
            member = node.member
            member.is_cut = True

            def mend() -> None:
                member.is_cut = False

            self._end(fault.lasts_us, mend)

    # --- messages and transactions

    def _lose(self, fault: Fault) -> None:
        rates = self._broker.rates
        rates.lost = rates.lost_unnoticed = fault.amount / 2

        def mend() -> None:
            rates.lost = rates.lost_unnoticed = 0.0

        self._end(fault.lasts_us, mend)

    def _double(self, fault: Fault) -> None:
        rates = self._broker.rates
        rates.doubled = fault.amount

        def mend() -> None:
            rates.doubled = 0.0

        self._end(fault.lasts_us, mend)

    def _delay(self, fault: Fault) -> None:
        rates = self._broker.rates
        rates.late = fault.amount
        rates.late_us = (fault.node % 20 + 1) * SECOND_US // 2

        def mend() -> None:
            rates.late = 0.0

        self._end(fault.lasts_us, mend)

    def _abort(self, fault: Fault) -> None:
        endings = self._broker.endings
        endings.aborted = fault.amount

        def mend() -> None:
            endings.aborted = 0.0

        self._end(fault.lasts_us, mend)

    def _doubt(self, fault: Fault) -> None:
        endings = self._broker.endings
        endings.request_lost = endings.answer_lost = endings.request_late = fault.amount / 3

        def mend() -> None:
            endings.request_lost = endings.answer_lost = endings.request_late = 0.0

        self._end(fault.lasts_us, mend)

    def _ghost(self, fault: Fault) -> None:
        endings = self._broker.endings
        endings.ghost = fault.amount

        def mend() -> None:
            endings.ghost = 0.0

        self._end(fault.lasts_us, mend)

    def _stall(self, fault: Fault) -> None:
        self._broker.stalled_until_us = self._world.now_us + fault.lasts_us

    def _wipe(self, places: Sequence[tuple[str, int]]) -> None:
        for place in places:
            self._broker.wipe(place)

    def _poison(self, fault: Fault) -> None:
        topic = (COMMANDS, REPORTS, ANSWERS, RUN_STATES)[fault.node % 4]
        data = self._chance.randbytes(self._chance.randrange(64))
        self._broker.append((topic, 0), Undecodable(data=data, why="poison"))

    # --- clocks, targets, tenants

    def _step(self, fault: Fault) -> None:
        simulation = self._simulation
        nodes = [*simulation.schedulers, *simulation.dispatchers, *simulation.workers]
        clock = nodes[fault.node % len(nodes)].clock
        clock.offset_us = int(fault.amount * SECOND_US)

        def mend() -> None:
            clock.offset_us = 0

        self._end(fault.lasts_us, mend)

    def _drift(self, fault: Fault) -> None:
        simulation = self._simulation
        nodes = [*simulation.schedulers, *simulation.dispatchers, *simulation.workers]
        clock = nodes[fault.node % len(nodes)].clock
        clock.drift_ppm = int(fault.amount)

        def mend() -> None:
            clock.drift_ppm = 0

        self._end(fault.lasts_us, mend)

    def _hang(self, fault: Fault) -> None:
        targets = self._simulation.targets
        targets.hanging = fault.amount

        def mend() -> None:
            targets.hanging = 0.0

        self._end(fault.lasts_us, mend)

    def _flood(self, fault: Fault) -> None:
        """One client asks for many runs of a job at once."""
        simulation = self._simulation
        plan = simulation.scenario.jobs[fault.node % len(simulation.scenario.jobs)]
        self._floods += 1
        for number in range(int(fault.amount)):
            command_id = f"flood {self._floods} {number}"
            simulation.clients.submit(
                TriggerJob(
                    command_id=command_id,
                    reply_to="clients",
                    job_id=job_id_of(plan.tenant, plan.name),
                    key=command_id.replace(" ", "-"),
                )
            )
