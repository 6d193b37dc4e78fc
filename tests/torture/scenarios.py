"""All scenarios, by the name that `--only` takes. Each scales its own counts to `faults`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.torture.clocks import clocks
from tests.torture.disks import disks
from tests.torture.figures import Figures
from tests.torture.mutations import files
from tests.torture.pauses import pauses, worker_kills
from tests.torture.poison import dead_letters, poison
from tests.torture.repeats import repeats
from tests.torture.rounds import killed

Scenario = Callable[[Path, int, int], Figures]
"""Folder, faults, seed."""

SCENARIOS: Final[Mapping[str, Scenario]] = {
    "kills": killed,
    "disks": disks,
    "clocks": clocks,
    "pauses": pauses,
    "workers": worker_kills,
    "repeats": repeats,
    "files": files,
    "poison": poison,
    "dead": dead_letters,
}
