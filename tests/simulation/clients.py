"""Clients: send commands, repeat each until it is answered, keep every answer they got."""

from typing import Final

from horolog.schemas.ids import job_id_of, job_of, partition_of
from horolog.schemas.records import (
    BackfillJob,
    CancelRun,
    Command,
    CreateJob,
    DeleteJob,
    DiscardRun,
    JobId,
    PauseJob,
    RedriveRun,
    Reply,
    ResumeJob,
    RunDeadLettered,
    RunId,
    RunStarted,
    Tier,
    TriggerJob,
    UpdateJob,
)
from horolog.streams.host.ports import Undecodable
from horolog.streams.host.topics import COMMANDS
from tests.simulation.kafka import Cursor
from tests.simulation.nodes import REPLY_PLACES, Fleet
from tests.simulation.oracle.observation import Ack
from tests.simulation.scenario import MINUTE_US, JobPlan, Wish
from tests.simulation.world import SECOND_US, Gate, Node

TRIES: Final = 60
LOOKED_AT: Final = 400


class Clients(Node):
    """All clients, as one process that never fails."""

    def __init__(self, fleet: Fleet, jobs: tuple[JobPlan, ...]) -> None:
        super().__init__(fleet.world, "clients")
        self.fleet = fleet
        self.jobs = jobs
        self.acks: list[Ack] = []
        self.sent: list[tuple[int, Command]] = []
        self._waiting: dict[str, tuple[Command, Gate]] = {}
        self._answered: dict[str, Reply] = {}
        self._keys: list[tuple[JobId, str]] = []
        self._cursor = Cursor(fleet.broker)
        self._chance = fleet.world.chance("clients")

    def boot(self) -> None:
        """Listen for replies."""
        super().boot()
        for place in REPLY_PLACES:
            self._cursor.follow(place)
        self.spawn(self._listen())

    async def _listen(self) -> None:
        while True:
            for item in self._cursor.take():
                reply = item.value
                if isinstance(reply, Reply) and reply.command_id in self._waiting:
                    command, gate = self._waiting[reply.command_id]
                    self.acks.append(Ack(at_us=self.world.now_us, command=command, reply=reply))
                    self.world.note("ack", reply.command_id, reply.code, reply.seq)
                    self._answered[reply.command_id] = reply
                    gate.open()
            await self._cursor.gate.wait(60 * SECOND_US)

    def submit(self, command: Command) -> None:
        """Send a command until it is answered."""
        self.sent.append((self.world.now_us, command))
        self.spawn(self._submit(command))

    async def _submit(self, command: Command) -> None:
        gate = Gate()
        self._waiting[command.command_id] = command, gate
        for _ in range(TRIES):
            self._send(command)
            await gate.wait(SECOND_US)
            if command.command_id in self._answered:
                break
        if self._chance.random() < 0.1:
            # A client that did not see the answer asks again.
            self._send(command)

    def _send(self, command: Command) -> None:
        partition = partition_of(command.job_id, self.fleet.ledger_partitions)
        self.fleet.broker.send((COMMANDS, partition), command, lambda _place: None)

    # --- wishes

    def wish(self, wish: Wish, number: int) -> None:
        """Do what a scenario says."""
        if wish.kind == "poison":
            data = bytes(self._chance.randrange(256) for _ in range(40))
            partition = wish.pick % self.fleet.ledger_partitions
            self.fleet.broker.append((COMMANDS, partition), Undecodable(data=data, why="poison"))
            return
        command = self._command(wish, f"{wish.kind} {number}")
        if command is not None:
            self.submit(command)

    def _command(self, wish: Wish, command_id: str) -> Command | None:
        plan = self.jobs[wish.job]
        job_id = job_id_of(plan.tenant, plan.name)
        reply_to = "clients"
        definition = plan.definitions[wish.pick % len(plan.definitions)]
        match wish.kind:
            case "create":
                return CreateJob(
                    command_id=command_id, reply_to=reply_to, job_id=job_id, definition=definition
                )
            case "update":
                return UpdateJob(
                    command_id=command_id, reply_to=reply_to, job_id=job_id, definition=definition
                )
            case "delete":
                return DeleteJob(
                    command_id=command_id,
                    reply_to=reply_to,
                    job_id=job_id,
                    cancel_running=wish.pick % 2 == 0,
                )
            case "pause":
                until_us = self.world.now_us + wish.pick % 600 * SECOND_US
                return PauseJob(
                    command_id=command_id,
                    reply_to=reply_to,
                    job_id=job_id,
                    until_us=until_us if wish.pick % 3 else None,
                )
            case "resume":
                return ResumeJob(command_id=command_id, reply_to=reply_to, job_id=job_id)
            case "backfill":
                to_us = self.world.now_us - wish.pick % 20 * MINUTE_US
                return BackfillJob(
                    command_id=command_id,
                    reply_to=reply_to,
                    job_id=job_id,
                    from_us=to_us - 20 * MINUTE_US,
                    to_us=to_us,
                    tier=Tier.LOW,
                )
            case "trigger" | "again":
                return self._trigger(wish, job_id, command_id)
            case _:
                return self._on_run(wish, command_id)

    def _trigger(self, wish: Wish, job_id: JobId, command_id: str) -> Command:
        key = command_id.replace(" ", "-")
        if wish.kind == "again" and self._keys:
            job_id, key = self._keys[wish.pick % len(self._keys)]
        else:
            self._keys.append((job_id, key))
        return TriggerJob(command_id=command_id, reply_to="clients", job_id=job_id, key=key)

    def _on_run(self, wish: Wish, command_id: str) -> Command | None:
        kind = RunStarted if wish.kind == "cancel" else RunDeadLettered
        run_id = self._some_run(kind, wish.pick)
        if run_id is None:
            return None
        job_id = job_of(run_id)
        if wish.kind == "cancel":
            return CancelRun(
                command_id=command_id, reply_to="clients", job_id=job_id, run_id=run_id
            )
        if wish.kind == "redrive":
            return RedriveRun(
                command_id=command_id, reply_to="clients", job_id=job_id, run_id=run_id
            )
        return DiscardRun(command_id=command_id, reply_to="clients", job_id=job_id, run_id=run_id)

    def _some_run(self, kind: type[RunStarted | RunDeadLettered], pick: int) -> RunId | None:
        found = [
            event.run_id
            for ledger in self.fleet.broker.ledgers
            for event in ledger.settled[-LOOKED_AT:]
            if isinstance(event, kind)
        ]
        return found[pick % len(found)] if found else None
