"""A server to be tortured: `python -m tests.torture.victim DATA PORT WITNESS`.

`horolog up`, with a function that leaves its marks in the witness file, and with one failpoint if
the environment asks for it.
"""

import faulthandler
import os
import signal
import sys
from pathlib import Path

from horolog.cli.exits import Stop
from horolog.cli.up import serve
from tests.torture import failpoints
from tests.torture.witness import Witness

SLOTS = 16
PARTITIONS = 2
RETENTION_US = 90 * 86_400 * 1_000_000


def main() -> None:
    """Serve until TERM, a failpoint, or a kill."""
    data, port, witness = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    # For whoever wonders where it hangs.
    faulthandler.register(signal.SIGUSR1)
    failpoints.install(os.environ.get(failpoints.VARIABLE, ""))
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
