"""The list of workers over HTTP, on a clock in the test's hand."""

from horolog.api.limits import WORKER_KEPT_US, WORKERS_MAX
from horolog.api.workers import HttpWorker, HttpWorkers
from horolog.schemas.records import RunId, TenantId

RUN = RunId("acme.a@20240506T120000Z")
S = 1_000_000


class Rig:
    """Workers, and a clock."""

    def __init__(self) -> None:
        self.now_us = 1_000 * S
        self.workers = HttpWorkers(lambda: self.now_us)

    def asks(self, name: str, owner: str | None = None) -> HttpWorker:
        """A worker asks for runs."""
        tenant = None if owner is None else TenantId(owner)
        return self.workers.asks(
            tenant, name, kind="http", pools=["default"], handlers=["x"], slots=2
        )

    def holds(self, worker: HttpWorker, claim_id: str) -> None:
        """A worker gets a lease of 30 s."""
        self.workers.granted(worker, claim_id, RUN, 30 * S, self.now_us + 30 * S)

    def held(self) -> dict[str, int]:
        """Number of runs by worker."""
        return {one.worker_id: len(one.runs) for one in self.workers.states()}


def test_worker_holds_its_runs_until_they_end_or_are_not_renewed() -> None:
    rig = Rig()
    worker = rig.asks("w")
    rig.holds(worker, "a")
    rig.holds(worker, "b")
    assert rig.held() == {"w": 2}
    rig.now_us += 20 * S
    assert rig.workers.renewed("a") is worker
    rig.now_us += 20 * S
    assert rig.held() == {"w": 1}
    rig.workers.ended("a")
    rig.workers.ended("a")
    assert rig.held() == {"w": 0}
    assert rig.workers.renewed("a") is None
    # What was never reported is forgotten with the next lease.
    rig.holds(worker, "c")
    assert list(worker.held) == ["c"]
    assert rig.workers.renewed("b") is None


def test_worker_that_is_not_seen_for_long_is_forgotten_with_its_leases() -> None:
    rig = Rig()
    rig.holds(rig.asks("old"), "a")
    rig.now_us += WORKER_KEPT_US
    rig.asks("new")
    assert list(rig.held()) == ["new", "old"]
    rig.now_us += 1
    assert list(rig.held()) == ["new"]
    assert rig.workers.renewed("a") is None


def test_workers_beyond_the_limit_push_out_the_longest_unseen() -> None:
    rig = Rig()
    rig.asks("first")
    for number in range(WORKERS_MAX):
        rig.asks(f"w{number}")
    names = rig.held()
    assert len(names) == WORKERS_MAX
    assert "first" not in names


def test_worker_of_one_tenant_drains_and_its_namesake_does_not() -> None:
    rig = Rig()
    acme, other = rig.asks("w", "acme"), rig.asks("w", "other")
    state = next(one for one in rig.workers.states() if one.tenant == "acme")
    rig.workers.drain(state)
    assert (acme.draining.is_set(), other.draining.is_set()) == (True, False)
    # Asking again does not end it.
    assert rig.asks("w", "acme").draining.is_set()
