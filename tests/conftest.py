"""What holds for every test: how Hypothesis searches."""

import os

from hypothesis import settings

# No deadline: the machine is shared, and a slow example is no wrong one.
settings.register_profile("local", deadline=None, print_blob=True)
# CI decides whether a change lands, so the same change must meet the same examples.
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
