"""One JSON line a benchmark: what was measured, what it includes, and under which load."""

import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile of sorted values."""
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def median(values: Sequence[float]) -> float:
    """Median of some runs."""
    return statistics.median(values)


def report(name: str, includes: str, **figures: object) -> None:
    """Print the line. `includes`: what the figure contains, in words."""
    line = {
        "benchmark": name,
        **figures,
        "includes": includes,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
