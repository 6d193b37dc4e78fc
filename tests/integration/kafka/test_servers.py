"""The brokers that tests start: they do what the design needs of a broker, and leave nothing."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol, cast

import msgspec
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.servers.kept import ROOT, Ready, brokers
from tests.waiting import until

CONFIG = {"socket.timeout.ms": 10_000}


class Admin(Protocol):
    """As much of AdminClient as its stubs leave untyped."""

    def create_topics(self, new_topics: list[NewTopic]) -> dict[str, Future[None]]: ...


def make_topic(servers: str, name: str, copies: int) -> None:
    admin = cast("Admin", AdminClient({**CONFIG, "bootstrap.servers": servers}))
    made = admin.create_topics([NewTopic(name, 1, replication_factor=copies)])
    for one in made.values():
        one.result(30)


def write(servers: str, topic: str, values: list[bytes]) -> None:
    """One transaction."""
    producer = Producer(
        {**CONFIG, "bootstrap.servers": servers, "transactional.id": f"test.{topic}"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.commit_transaction()


def read(servers: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {
            **CONFIG,
            "bootstrap.servers": servers,
            "group.id": f"test.{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    try:
        return [message.value() for message in consumer.consume(count, timeout=60)]
    finally:
        consumer.close()


def test_broker_after_a_transaction_gives_its_records_to_a_group(kafka: str) -> None:
    make_topic(kafka, "servers-one", 1)
    write(kafka, "servers-one", [b"a", b"b"])
    assert read(kafka, "servers-one", 2) == [b"a", b"b"]


def test_cluster_that_loses_a_broker_goes_on() -> None:
    with brokers(3) as ready:
        make_topic(ready.kafka, "servers-three", 3)
        write(ready.kafka, "servers-three", [b"a"])
        os.kill(ready.pids[0], signal.SIGKILL)
        write(ready.kafka, "servers-three", [b"b"])
        assert read(ready.kafka, "servers-three", 2) == [b"a", b"b"]


def test_broker_whose_tests_were_killed_ends_and_leaves_no_folder(tmp_path: Path) -> None:
    holder = (
        "import sys; from tests.servers.kept import brokers\n"
        "with brokers(1) as ready: print(ready.kafka, *ready.pids, flush=True); sys.stdin.read()"
    )
    tests = subprocess.Popen(
        [sys.executable, "-c", holder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment_in(tmp_path),
    )
    assert tests.stdin is not None
    assert tests.stdout is not None
    _, pid = tests.stdout.readline().split()
    tests.kill()
    tests.wait()
    tests.stdin.close()
    tests.stdout.close()
    broker = Path("/proc") / pid.decode()
    until(lambda: None if broker.exists() else True, "the broker to end")
    until(lambda: None if list(tmp_path.iterdir()) else True, "its folder to go")


def environment_in(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder)}


def test_keeper_that_was_killed_takes_its_broker_with_it(tmp_path: Path) -> None:
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.servers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment_in(tmp_path),
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    ready = msgspec.json.decode(keeper.stdout.readline(), type=Ready)
    keeper.kill()
    keeper.wait()
    keeper.stdin.close()
    keeper.stdout.close()
    broker = Path("/proc") / str(ready.pids[0])
    until(lambda: None if broker.exists() else True, "the broker to end")
