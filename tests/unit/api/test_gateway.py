"""The gateway against a scheduler in the test's hand: what it reports is a queue to await, what
it is told is `deliver`.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from horolog.api.gateway import Gateway, Report
from horolog.schemas.records import (
    ClaimRefused,
    ClaimRun,
    CompleteRun,
    Grant,
    Heartbeat,
    Hint,
    JobId,
    LogChunk,
    RefusalReason,
    ReleaseRun,
    ReportAnswered,
    ReportKind,
    RunId,
    RunResult,
    Target,
    Verdict,
)

T = TypeVar("T")
S = 1_000_000
RUN = RunId("acme.a@20240506T120000Z")


class Pool:
    """A pool's exchange: hints that the test puts in, reports that the test takes out."""

    def __init__(self) -> None:
        self.offered: list[Hint] = []
        self.arrived = asyncio.Event()
        self.reports: asyncio.Queue[Report] = asyncio.Queue()

    def offer(self, *run_ids: str) -> None:
        self.offered += [hint(RunId(run_id)) for run_id in run_ids]
        self.arrived.set()

    def hints(self, free: int) -> Sequence[Hint]:
        taken, self.offered = self.offered[:free], self.offered[free:]
        return taken

    async def wait_for_hints(self) -> None:
        await self.arrived.wait()
        self.arrived.clear()

    def report(self, partition: int, report: Report) -> None:
        assert partition == 0
        self.reports.put_nowait(report)

    def log(self, chunk: LogChunk) -> None:
        raise AssertionError(chunk)


def hint(run_id: RunId) -> Hint:
    return Hint(run_id=run_id, partition=0, plan=7, dispatcher=0, epoch=1, valid_until_us=0)


def granted(claim: Report, token: int = 8) -> Grant:
    assert isinstance(claim, ClaimRun)
    return Grant(
        run_id=claim.run_id,
        job_id=JobId("acme.a"),
        partition=0,
        attempt=1,
        token=token,
        claim_id=claim.claim_id,
        inbox=claim.inbox,
        term_us=30 * S,
        due_us=0,
        target=Target(handler="a"),
        timeout_us=S,
        kill_grace_us=S,
    )


def refused(claim: Report, reason: RefusalReason) -> ClaimRefused:
    assert isinstance(claim, ClaimRun)
    return ClaimRefused(
        run_id=claim.run_id, claim_id=claim.claim_id, inbox=claim.inbox, reason=reason
    )


class World:
    """A gateway, its pools and its clock."""

    def __init__(self) -> None:
        self.now_us = 1_714_996_800 * S
        self.pools = {"default": Pool(), "batch": Pool()}
        self.pool = self.pools["default"]
        self.gateway = Gateway(
            self.pools.__getitem__, partitions=1, now_us=lambda: self.now_us, inbox="gw"
        )
        self.gateway.attach()

    def lease(
        self,
        *,
        max_runs: int = 1,
        request_id: str | None = None,
        pools: Sequence[str] = ("default",),
        wait_s: float = 60,
    ) -> asyncio.Task[list[Grant]]:
        async def grants() -> list[Grant]:
            leases = await self.gateway.lease(
                "w1", pools=pools, max_runs=max_runs, wait_s=wait_s, request_id=request_id
            )
            return [lease.grant for lease in leases]

        return asyncio.create_task(grants())

    async def grant_next(self, token: int = 8, pool: str = "default") -> Grant:
        grant = granted(await self.pools[pool].reports.get(), token)
        self.gateway.deliver(grant)
        return grant


def run(test: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(test, 30))


def test_lease_with_runs_offered_claims_each_and_gives_the_grants() -> None:
    async def test() -> None:
        world = World()
        world.pool.offer("acme.a@1", "acme.a@2", "acme.a@3")
        call = world.lease(max_runs=2)
        grants = [await world.grant_next(1), await world.grant_next(2)]
        assert await call == grants
        assert len(world.pool.offered) == 1

    run(test())


def test_lease_without_runs_waits_until_one_is_offered() -> None:
    async def test() -> None:
        world = World()
        call = world.lease(pools=["batch", "default"])
        await asyncio.sleep(0)
        assert not call.done()
        world.pools["batch"].offer(RUN)
        grant = await world.grant_next(pool="batch")
        assert await call == [grant]

    run(test())


def test_lease_without_runs_and_without_waiting_gives_none() -> None:
    async def test() -> None:
        assert await World().lease(wait_s=0) == []

    run(test())


def test_lease_that_is_refused_goes_on_to_the_next_run() -> None:
    async def test() -> None:
        world = World()
        world.pool.offer("acme.a@1")
        call = world.lease()
        world.gateway.deliver(refused(await world.pool.reports.get(), RefusalReason.TAKEN))
        world.pool.offer("acme.a@2")
        grant = await world.grant_next()
        assert await call == [grant]

    run(test())


def test_claim_too_early_is_made_again_when_told() -> None:
    async def test() -> None:
        world = World()
        world.pool.offer(RUN)
        call = world.lease()
        claim = await world.pool.reports.get()
        assert isinstance(claim, ClaimRun)
        world.gateway.deliver(
            ClaimRefused(
                run_id=claim.run_id,
                claim_id=claim.claim_id,
                inbox="gw",
                reason=RefusalReason.NOT_YET,
                retry_at_us=world.now_us,
            )
        )
        grant = await world.grant_next()
        assert await call == [grant]

    run(test())


def test_claim_without_an_answer_is_repeated_unchanged() -> None:
    async def test() -> None:
        world = World()
        world.pool.offer(RUN)
        call = world.lease()
        first = await world.pool.reports.get()
        second = await world.pool.reports.get()
        assert second == first
        world.gateway.deliver(granted(second))
        assert len(await call) == 1

    run(test())


def test_lease_asked_again_with_the_same_request_id_gives_the_same_runs_and_tokens() -> None:
    """Case L15: the answer to a batch of ten was lost on the way."""

    async def test() -> None:
        world = World()
        world.pool.offer(*(f"acme.a@{i}" for i in range(20)))
        lost = world.lease(max_runs=10, request_id="r1")
        grants = [await world.grant_next(token) for token in range(10)]
        assert await lost == grants
        assert await world.lease(max_runs=10, request_id="r1") == grants
        assert world.pool.reports.empty()
        assert len(world.pool.offered) == 10

    run(test())


def test_lease_asked_again_while_the_first_waits_attaches_to_it() -> None:
    async def test() -> None:
        world = World()
        first, second = world.lease(request_id="r1"), world.lease(request_id="r1")
        await asyncio.sleep(0)
        first.cancel()
        world.pool.offer(RUN)
        grant = await world.grant_next()
        assert await second == [grant]
        assert await world.lease(request_id="r1") == [grant]

    run(test())


def test_lease_asked_again_after_its_term_takes_other_runs() -> None:
    async def test() -> None:
        world = World()
        world.pool.offer("acme.a@1")
        first = world.lease(request_id="r1")
        await world.grant_next(1)
        assert len(await first) == 1
        world.now_us += 30 * S
        world.pool.offer("acme.a@2")
        second = world.lease(request_id="r1")
        grant = await world.grant_next(2)
        assert await second == [grant]

    run(test())


def test_request_that_got_nothing_is_not_remembered() -> None:
    async def test() -> None:
        world = World()
        assert await world.lease(request_id="r1", wait_s=0) == []
        world.pool.offer(RUN)
        call = world.lease(request_id="r1", wait_s=0)
        grant = await world.grant_next()
        assert await call == [grant]

    run(test())


def test_grant_of_a_claim_that_is_out_no_more_is_given_back() -> None:
    async def test() -> None:
        world = World()
        late = granted(
            ClaimRun(
                run_id=RUN, plan=1, dispatcher=0, epoch=1, worker_id="w", inbox="gw", claim_id="x"
            )
        )
        world.gateway.deliver(late)
        assert await world.pool.reports.get() == ReleaseRun(
            run_id=RUN, token=8, claim_id="x", inbox="gw"
        )

    run(test())


def test_grant_that_comes_twice_is_not_given_back() -> None:
    async def test() -> None:
        world = World()
        world.pool.offer(RUN)
        call = world.lease()
        grant = await world.grant_next()
        assert await call == [grant]
        world.gateway.deliver(grant)
        world.pool.offer("acme.a@2")
        other = world.lease()
        assert isinstance(await world.pool.reports.get(), ClaimRun)
        other.cancel()

    run(test())


def test_grant_older_than_a_third_of_its_term_is_given_back() -> None:
    async def test() -> None:
        world = World()
        world.pool.offer(RUN)
        call = world.lease(wait_s=0)
        claim = await world.pool.reports.get()
        world.now_us += 11 * S
        world.gateway.deliver(granted(claim))
        assert await call == []
        assert isinstance(await world.pool.reports.get(), ReleaseRun)

    run(test())


def test_heartbeat_waits_for_the_schedulers_verdict_on_its_own_token() -> None:
    async def test() -> None:
        world = World()
        call = asyncio.create_task(world.gateway.heartbeat(RUN, 8, "c"))
        report = await world.pool.reports.get()
        assert report == Heartbeat(run_id=RUN, token=8, claim_id="c", inbox="gw")
        for token, verdict in ((7, Verdict.STALE), (8, Verdict.CANCEL)):
            world.gateway.deliver(
                ReportAnswered(
                    run_id=RUN,
                    token=token,
                    claim_id="c",
                    inbox="gw",
                    kind=ReportKind.HEARTBEAT,
                    verdict=verdict,
                )
            )
        assert await call is Verdict.CANCEL

    run(test())


def test_completion_that_is_stale_is_told_so() -> None:
    async def test() -> None:
        world = World()
        report = CompleteRun(
            run_id=RUN, token=9, claim_id="c", inbox="gw", result=RunResult.SUCCEEDED
        )
        call = asyncio.create_task(world.gateway.complete(report))
        assert await world.pool.reports.get() == report
        world.gateway.deliver(
            ReportAnswered(
                run_id=RUN,
                token=9,
                claim_id="c",
                inbox="gw",
                kind=ReportKind.COMPLETE,
                verdict=Verdict.STALE,
            )
        )
        assert await call is Verdict.STALE

    run(test())
