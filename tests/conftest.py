"""What holds for every test: how Hypothesis searches, and the servers they share."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.servers.jars import ServerMissing
from tests.servers.kept import brokers, given

# No deadline: the machine is shared, and a slow example is no wrong one.
settings.register_profile("local", deadline=None, print_blob=True)
# CI decides whether a change lands, so the same change must meet the same examples.
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """Address of a broker, one for all tests of the session. In CI it has to be there."""
    found = given()
    if found is not None:
        yield found.kafka
        return
    try:
        with brokers(1) as ready:
            yield ready.kafka
    except ServerMissing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
