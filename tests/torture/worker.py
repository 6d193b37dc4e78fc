"""A worker of its own process: `python -m tests.torture.worker URL WITNESS SECONDS`.

Executes the function `remote` over HTTP through the SDK; TERM drains it.
"""

import signal
import sys
from pathlib import Path
from types import FrameType

from horolog.workers import Worker
from tests.torture.witness import Witness

CONCURRENCY = 4


def main() -> None:
    """Work until TERM, or a kill."""
    url, witness, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    worker = Worker(url, concurrency=CONCURRENCY)
    worker.job("remote")(Witness(witness).handler(seconds))

    def stop(_number: int, _frame: FrameType | None) -> None:
        worker.stop()

    signal.signal(signal.SIGTERM, stop)
    worker.work()


if __name__ == "__main__":
    main()
