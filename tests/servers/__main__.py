"""Keeps servers for as long as its standard input is open: `python -m tests.servers [BROKERS]`.

Whoever started it holds the other end, so the servers end with it, also when it is killed. Prints
one line of JSON when they are ready.
"""

import signal
import sys
import tempfile
from pathlib import Path

import msgspec

from tests.servers.jars import ServerMissing
from tests.servers.kafka import Kafka
from tests.servers.kept import Ready


def _stop(*_: object) -> None:
    sys.exit(0)


def main() -> int:
    """Start, say so, keep, end."""
    brokers = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    signal.signal(signal.SIGTERM, _stop)
    with tempfile.TemporaryDirectory(prefix="horolog-servers-") as folder:
        try:
            kafka = Kafka(Path(folder), brokers)
        except ServerMissing as error:
            sys.stderr.write(f"{error}\n")
            return 1
        try:
            kafka.wait()
            ready = Ready(kafka=kafka.servers, pids=kafka.pids)
            sys.stdout.write(msgspec.json.encode(ready).decode() + "\n")
            sys.stdout.flush()
            sys.stdin.read()
        except KeyboardInterrupt:
            pass
        except ServerMissing as error:
            sys.stderr.write(f"{error}\n")
            return 1
        finally:
            kafka.end()
    return 0


sys.exit(main())
