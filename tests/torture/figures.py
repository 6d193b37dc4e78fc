"""What a scenario found, as one JSON line; docs/faults.md keeps those of full runs."""

import json
import os
import platform
import sys
from collections.abc import Sequence

import msgspec

from tests.torture.checker import Checked


class Figures(msgspec.Struct, kw_only=True):
    """A row of the table."""

    fault: str
    how: str
    """How it was injected."""
    count: int
    """Faults injected."""
    seed: int
    checked: Checked
    recovery_s: list[float] = msgspec.field(default_factory=list[float])
    more: dict[str, object] = msgspec.field(default_factory=dict[str, object])

    def line(self) -> str:
        """The JSON line."""
        recovery = sorted(self.recovery_s)
        row = {
            "fault": self.fault,
            "how": self.how,
            "count": self.count,
            "seed": self.seed,
            **msgspec.to_builtins(self.checked),
            **{f"recovery_p{share}_s": percentile(recovery, share) for share in (50, 99)},
            **self.more,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load_1m": round(os.getloadavg()[0], 2),
        }
        return json.dumps(row)

    def say(self) -> None:
        """Print the line."""
        sys.stdout.write(f"{self.line()}\n")
        sys.stdout.flush()


def percentile(values: Sequence[float], share: int) -> float | None:
    """Nearest rank of sorted values; None of none."""
    if not values:
        return None
    return round(values[min(len(values) - 1, share * len(values) // 100)], 3)
