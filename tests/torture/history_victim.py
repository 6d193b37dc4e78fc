"""The history's process of a victim: `python -m tests.torture.history_victim DATA RETENTION_US`.

At its failpoint the server ends with it, as when the machine does.
"""

import os

from horolog.cli import history_writer
from tests.torture import failpoints


def main() -> None:
    """Write the history until the server is gone, or until the failpoint."""
    failpoints.install(os.environ[failpoints.VARIABLE], (os.getppid(), os.getpid()))
    history_writer.main()


if __name__ == "__main__":
    main()
