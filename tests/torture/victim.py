"""A server to be tortured: `python -m tests.torture.victim DATA PORT WITNESS`.

`horolog up`, with a function that leaves its marks in the witness file, and with one failpoint if
the environment asks for it.
"""

import faulthandler
import os
import signal
import sys
from pathlib import Path

from horolog.cli import history_process
from horolog.cli.exits import Stop
from horolog.cli.up import serve
from tests.torture import failpoints
from tests.torture.witness import Witness

SLOTS = 16
PARTITIONS = 2
RETENTION_US = 90 * 86_400 * 1_000_000


def history_of_a_victim(directory: Path, retention_us: int) -> list[str]:
    """What begins a history's process with a failpoint."""
    module = "tests.torture.history_victim"
    return [sys.executable, "-m", module, str(directory), str(retention_us)]


def main() -> None:
    """Serve until TERM, a failpoint, or a kill."""
    data, port, witness = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    # For whoever wonders where it hangs.
    faulthandler.register(signal.SIGUSR1)
    asked = os.environ.get(failpoints.VARIABLE, "")
    if failpoints.is_of_history(asked):
        history_process.command_of = history_of_a_victim
    else:
        failpoints.install(asked)
    try:
        serve(
            data=data,
            host="127.0.0.1",
            port=port,
            partitions=PARTITIONS,
            slots=SLOTS,
            handlers={"inline": Witness(witness).handler(seconds=0.05)},
            retention_us=RETENTION_US,
        )
    except Stop as stop:
        sys.stderr.write(f"{stop.message}; {stop.hint}\n")
        sys.exit(stop.status)


if __name__ == "__main__":
    main()
