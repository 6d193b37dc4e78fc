"""The whole torture: `python -m tests.torture --faults 300 --seed 0 [--only NAME]`.

Prints a JSON line a scenario; exit 1 if anything was lost, doubled or otherwise wrong.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.torture.processes import removed
from tests.torture.scenarios import SCENARIOS


def main() -> int:
    """Run the scenarios one after another."""
    parser = argparse.ArgumentParser(prog="make torture")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(SCENARIOS), action="append")
    asked = parser.parse_args()
    wrong = 0
    # What failed stays in it, to be looked at.
    folder = Path(tempfile.mkdtemp(prefix="horolog-torture-"))
    for name in asked.only or SCENARIOS:
        found = SCENARIOS[name](folder, asked.faults, asked.seed)
        found.say()
        wrong += bool(found.checked.wrong)
    if not wrong:
        removed(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
