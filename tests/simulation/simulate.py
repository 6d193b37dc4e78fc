"""One simulation: a scenario lived to its end, and what was seen."""

import traceback
from functools import partial

import msgspec

from horolog.schemas.ids import job_id_of
from horolog.schemas.records import CreateJob, Event, TenantId, TenantSettings
from horolog.streams.audit import audit
from horolog.streams.host.replay import verify
from tests.simulation.clients import Clients
from tests.simulation.groups import Group
from tests.simulation.kafka import Broker, LedgerView
from tests.simulation.nemesis import Nemesis
from tests.simulation.nodes import READY, DispatcherNode, Fleet, SchedulerNode
from tests.simulation.oracle.check import judge
from tests.simulation.oracle.observation import Ack, Observation, Seen
from tests.simulation.scenario import END_US, HEALED_US, LIMITED, Scenario
from tests.simulation.workers import Targets, WorkerNode
from tests.simulation.world import SECOND_US, World


class Ended(msgspec.Struct, kw_only=True):
    """What a simulation left."""

    digest: str
    steps: int
    ledgers: list[list[Event]]
    seen: list[Seen]
    acks: list[Ack]
    violations: list[str]


class Simulation:
    """A cluster in virtual time."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.world = world = World(scenario.seed, scenario.start_us)
        self.broker = Broker(world, scenario.ledger_partitions)
        tenant = TenantId(LIMITED)
        self.fleet = Fleet(
            world=world,
            broker=self.broker,
            ledger_partitions=scenario.ledger_partitions,
            dispatchers=scenario.dispatchers,
            schedulers=Group(world, scenario.ledger_partitions),
            dispatching=Group(world, scenario.dispatchers),
            working=Group(world, READY),
            settings={tenant: TenantSettings(tenant=tenant, concurrency=scenario.quota)},
            epochs={},
            dispatch_producers={},
        )
        self.targets = Targets(seen=[], pauses=[], failing=scenario.failing, long=scenario.long)
        self.schedulers = [
            SchedulerNode(self.fleet, f"s{number}") for number in range(scenario.schedulers)
        ]
        self.dispatchers = [DispatcherNode(self.fleet, f"d{number}") for number in range(2)]
        self.workers = [
            WorkerNode(self.fleet, f"w{number}", self.targets, scenario.slots)
            for number in range(scenario.workers)
        ]
        self.clients = Clients(self.fleet, scenario.jobs)
        self.nemesis = Nemesis(self)

    def live(self) -> None:
        """Boot, register, do all that the scenario says, heal, and go on to the end."""
        world, start_us = self.world, self.scenario.start_us
        for node in (*self.schedulers, *self.dispatchers, *self.workers, self.clients):
            node.boot()
        for number, plan in enumerate(self.scenario.jobs):
            command = CreateJob(
                command_id=f"register {number}",
                reply_to="clients",
                job_id=job_id_of(plan.tenant, plan.name),
                definition=plan.definitions[0],
            )
            world.after(10 * SECOND_US, partial(self.clients.submit, command))
        for number, wish in enumerate(self.scenario.wishes):
            world.at(start_us + wish.at_us, partial(self.clients.wish, wish, number))
        for fault in self.scenario.faults:
            world.at(start_us + fault.at_us, partial(self.nemesis.strike, fault))
        world.at(start_us + HEALED_US, self.nemesis.heal)
        world.run(start_us + END_US)


def simulate(scenario: Scenario) -> Ended:
    """Live a scenario, then check it."""
    simulation = Simulation(scenario)
    violations: list[str] = []
    try:
        simulation.live()
        violations = check(simulation)
    except Exception as error:  # noqa: BLE001 - whatever a product's part raises is a finding
        frames = "".join(traceback.format_tb(error.__traceback__)[-4:])
        violations.append(f"{type(error).__name__}: {error}\n{frames}")
    return Ended(
        digest=simulation.world.digest,
        steps=simulation.world.events,
        ledgers=[ledger.settled for ledger in simulation.broker.ledgers],
        seen=simulation.targets.seen,
        acks=simulation.clients.acks,
        violations=violations,
    )


def observed(simulation: Simulation) -> Observation:
    """What a simulation left, seen from outside."""
    scenario = simulation.scenario
    told = [each for ledger in simulation.broker.ledgers for each in ledger.told()]
    return Observation(
        events=sorted(told, key=lambda each: (each.us, each.partition, each.event.seq)),
        seen=simulation.targets.seen,
        acks=simulation.clients.acks,
        sent=simulation.clients.sent,
        pauses=simulation.targets.pauses,
        quotas={TenantId(LIMITED): scenario.quota},
        capacity=scenario.workers * scenario.slots,
        start_us=scenario.start_us,
        healed_us=scenario.start_us + HEALED_US,
        end_us=simulation.world.now_us,
    )


def check(simulation: Simulation) -> list[str]:
    """What is wrong with what a simulation left: by the oracle, by the audit, by a replay."""
    found = [str(violation) for violation in judge(observed(simulation))]
    view = LedgerView(simulation.broker.ledgers)
    report = audit(view)
    found += [f"audit: {violation}" for violation in report.violations]
    found += [f"audit: doubled {slot}" for slot in report.doubled]
    found += [f"audit: unexplained {slot}" for slot in report.unexplained]
    for partition in range(view.partitions):
        difference = verify(view, partition).difference
        if difference:
            found.append(f"replay: {difference}")
    return found
