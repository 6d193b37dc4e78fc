"""Kafka brokers as processes of this one: KRaft, each broker also a voter, all data in one folder.

Settings are those that the design pins for a broker (`docs/operations` of a fleet), with internal
topics small enough for a quick start.
"""

import ctypes
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Final

from tests.servers.jars import ServerMissing, jars
from tests.waiting import until

HEAP: Final = "-Xmx512m"
LOGGING: Final = Path(__file__).with_name("log4j2.properties")
STARTED: Final = "Kafka Server started"
CLUSTER_ID: Final = "aG9yb2xvZy10ZXN0cy0wMQ"
"""16 bytes in URL-safe base64: brokers of one cluster must agree on it."""
PR_SET_PDEATHSIG: Final = 1


def _settings(number: int, ports: list[tuple[int, int]], folder: Path) -> str:
    port, voting_port = ports[number]
    voters = ",".join(f"{one + 1}@127.0.0.1:{ports[one][1]}" for one in range(len(ports)))
    copies, least = (3, 2) if len(ports) >= 3 else (1, 1)
    return f"""
process.roles=broker,controller
node.id={number + 1}
controller.quorum.voters={voters}
listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{voting_port}
advertised.listeners=BROKER://127.0.0.1:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs={folder}
auto.create.topics.enable=false
unclean.leader.election.enable=false
default.replication.factor={copies}
min.insync.replicas={least}
offsets.topic.replication.factor={copies}
offsets.topic.num.partitions=4
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={least}
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr={least}
group.initial.rebalance.delay.ms=0
group.consumer.min.session.timeout.ms=3000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=500
group.consumer.heartbeat.interval.ms=1000
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
"""


class Kafka:
    """A cluster of some brokers."""

    def __init__(self, folder: Path, brokers: int) -> None:
        """Start it; it may not be ready. Raises ServerMissing."""
        self._folder = folder
        self._jars = jars()
        self._ports = _free_ports(brokers)
        self._processes: list[subprocess.Popen[bytes]] = []
        for number in range(brokers):
            self._settings_of(number).write_text(
                _settings(number, self._ports, folder / f"data-{number}"), encoding="utf-8"
            )
        formatting = [self._format(number) for number in range(brokers)]
        for process in formatting:
            said, _ = process.communicate()
            if process.returncode:
                raise ServerMissing(f"no folder for a broker: {said.decode()[-2_000:]}")
        self._processes = [self._start(number) for number in range(brokers)]

    @property
    def servers(self) -> str:
        """Addresses for a client, as `bootstrap.servers` has them."""
        return ",".join(f"127.0.0.1:{port}" for port, _ in self._ports)

    @property
    def pids(self) -> list[int]:
        """The brokers' processes."""
        return [process.pid for process in self._processes]

    def wait(self) -> None:
        """Until each broker takes requests. Raises ServerMissing with what one said last."""
        for number, process in enumerate(self._processes):
            said = self._folder / f"out-{number}"

            def started(
                said: Path = said, process: subprocess.Popen[bytes] = process
            ) -> bool | None:
                text = said.read_text(encoding="utf-8", errors="replace")
                if process.poll() is not None:
                    raise ServerMissing(f"a broker ended: {text[-4_000:]}")
                return True if STARTED in text else None

            until(started, f"a broker to start ({said})", within_s=120)

    def end(self) -> None:
        """Kill what still runs. What it held is of no use to anybody."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _settings_of(self, number: int) -> Path:
        return self._folder / f"broker-{number}.properties"

    def _format(self, number: int) -> subprocess.Popen[bytes]:
        # The quick compiler only: this one lives for a second.
        return subprocess.Popen(
            [
                *self._java("-XX:TieredStopAtLevel=1"),
                *("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID),
                *("-c", self._settings_of(number)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - the keeper has one thread
        )

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with (self._folder / f"out-{number}").open("wb") as out:
            return subprocess.Popen(
                [*self._java(), "kafka.Kafka", self._settings_of(number)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - as above: one thread
            )

    def _java(self, *options: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={LOGGING}"
        return ["java", HEAP, *options, logging, "-cp", f"{self._jars}/*"]


def _end_with_parent() -> None:
    """Linux kills this process when the one that started it dies, however it died."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def _free_ports(brokers: int) -> list[tuple[int, int]]:
    """Two ports a broker that nobody has at this moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2 * brokers)]
    numbers = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return list(zip(numbers[::2], numbers[1::2], strict=True))
