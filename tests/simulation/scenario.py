"""What happens in a simulation, drawn from its seed before it begins: jobs, wishes of clients, and
faults. As data, so that a shrunk one can be kept as a test.
"""

import random
from typing import Final

import msgspec

from horolog.schemas.ids import slot_text
from horolog.schemas.records import (
    CatchUp,
    Gap,
    JobDefinition,
    Overlap,
    OverlapHour,
    RetryPolicy,
    Schedule,
    Target,
    Tier,
)
from tests.simulation.world import SECOND_US

MINUTE_US: Final = 60 * SECOND_US
WARM_UP_US: Final = 2 * MINUTE_US
HEALED_US: Final = 48 * MINUTE_US
END_US: Final = 61 * MINUTE_US

STARTS_US: Final = (
    1_792_888_200_000_000,  # 2026-10-25T00:30Z: Europe/Paris goes back at 01:00Z
    1_774_744_200_000_000,  # 2026-03-29T00:30Z: Europe/Paris goes forward at 01:00Z
    1_793_511_000_000_000,  # 2026-11-01T05:30Z: America/New_York goes back at 06:00Z
    1_772_951_400_000_000,  # 2026-03-08T06:30Z: America/New_York goes forward at 07:00Z
    1_775_313_000_000_000,  # 2026-04-04T14:30Z: Australia/Lord_Howe goes back 30 min, 15:00Z
    1_796_083_200_000_000,  # 2026-12-01T00:00Z
)
ZONES: Final = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe")
TENANTS: Final = ("acme", "bolt", "crab")
LIMITED: Final = "bolt"


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is created at the beginning, and the definitions it may be given later."""

    tenant: str
    name: str
    definitions: tuple[JobDefinition, ...]


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A command that a client will send."""

    at_us: int
    """Since the start."""
    kind: str
    job: int
    pick: int
    """Which definition, run or key."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something that goes wrong, and for how long."""

    at_us: int
    """Since the start."""
    kind: str
    node: int
    lasts_us: int
    amount: float


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """All that a simulation does by itself."""

    seed: int
    start_us: int
    ledger_partitions: int
    dispatchers: int
    schedulers: int
    workers: int
    slots: int
    quota: int
    failing: float
    long: float
    jobs: tuple[JobPlan, ...]
    wishes: tuple[Wish, ...]
    faults: tuple[Fault, ...]


def draw(seed: int) -> Scenario:
    """The scenario of a seed."""
    shape = random.Random(f"{seed}/shape")
    start_us = shape.choice(STARTS_US)
    jobs = tuple(_job(seed, number, start_us) for number in range(shape.randint(4, 8)))
    return Scenario(
        seed=seed,
        start_us=start_us,
        ledger_partitions=shape.choice((1, 2, 2, 3)),
        dispatchers=shape.choice((1, 1, 2)),
        schedulers=shape.randint(1, 3),
        workers=shape.randint(2, 3),
        slots=shape.choice((2, 4, 8)),
        quota=shape.randint(1, 3),
        failing=shape.choice((0.0, 0.1, 0.5)),
        long=shape.choice((0.0, 0.02, 0.1)),
        jobs=jobs,
        wishes=_wishes(seed, len(jobs)),
        faults=_faults(seed),
    )


def _job(seed: int, number: int, start_us: int) -> JobPlan:
    chance = random.Random(f"{seed}/job/{number}")
    return JobPlan(
        tenant=TENANTS[number % len(TENANTS)],
        name=f"job{number}",
        definitions=tuple(_definition(chance, start_us) for _ in range(3)),
    )


def _definition(chance: random.Random, start_us: int) -> JobDefinition:
    return JobDefinition(
        schedule=_schedule(chance, start_us),
        target=Target(handler="noop"),
        retry=RetryPolicy(
            max=chance.choice((0, 1, 3)),
            backoff_us=chance.choice((1, 5, 20)) * SECOND_US,
            max_backoff_us=60 * SECOND_US,
            lost_max=chance.choice((0, 1, 3)),
        ),
        timeout_us=chance.choice((20, 60, 600)) * SECOND_US,
        kill_grace_us=chance.choice((1, 5)) * SECOND_US,
        priority=chance.choice((Tier.HIGH, Tier.NORMAL, Tier.LOW)),
        pool=chance.choice(("default", "default", "batch")),
        catch_up=chance.choice((CatchUp.ONE, CatchUp.ALL, CatchUp.SKIP)),
        overlap=chance.choice(
            (Overlap.ALLOW, Overlap.ALLOW, Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE)
        ),
        starting_deadline_us=chance.choice((None, None, None, 30 * SECOND_US, 180 * SECOND_US)),
        lease_term_us=chance.choice((30, 30, 60)) * SECOND_US,
    )


def _schedule(chance: random.Random, start_us: int) -> Schedule:
    kind = chance.random()
    jitter_us = chance.choice((0, 0, 0, 5, 40)) * SECOND_US
    if kind < 0.1:
        return Schedule()
    if kind < 0.2:
        return Schedule(at=_local(start_us + chance.randrange(5, 45) * MINUTE_US))
    if kind < 0.45:
        every_us = chance.choice((10, 17, 45, 90, 300)) * SECOND_US
        return Schedule(every_us=every_us, jitter_us=min(jitter_us, every_us // 2))
    cron = chance.choice(
        ("* * * * *", "*/2 * * * *", "*/5 * * * *", "7,21,35,50 * * * *", "0,30 0-23 * * *",
         "15 1 * * *", "30 2 * * *", "45 0-6 * * *")
    )  # fmt: skip
    start = start_us + 10 * MINUTE_US if chance.random() < 0.1 else None
    end = start_us + 40 * MINUTE_US if chance.random() < 0.1 else None
    return Schedule(
        cron=cron,
        timezone=chance.choice(ZONES),
        gap=chance.choice((Gap.SHIFT, Gap.SKIP)),
        overlap_hour=chance.choice((OverlapHour.FIRST, OverlapHour.SECOND, OverlapHour.BOTH)),
        jitter_us=jitter_us,
        start_us=start,
        end_us=end,
    )


def _local(at_us: int) -> str:
    text = slot_text(at_us)
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}T{text[9:11]}:{text[11:13]}:{text[13:15]}"


_WISHES: Final = (
    ("trigger", 40), ("again", 12), ("update", 12), ("pause", 6), ("resume", 9), ("delete", 3),
    ("create", 6), ("backfill", 5), ("cancel", 10), ("redrive", 8), ("discard", 2), ("poison", 3),
)  # fmt: skip


def _wishes(seed: int, jobs: int) -> tuple[Wish, ...]:
    chance = random.Random(f"{seed}/wishes")
    kinds = [kind for kind, _ in _WISHES]
    weights = [weight for _, weight in _WISHES]
    wishes: list[Wish] = []
    for _ in range(chance.choice((40, 120, 240))):
        at_us = chance.randrange(WARM_UP_US, HEALED_US)
        if chance.random() < 0.3:
            # At a slot boundary, where edits and slots meet.
            at_us += chance.randrange(-60_000, 60_000) - at_us % MINUTE_US
        wishes.append(
            Wish(
                at_us=at_us,
                kind=chance.choices(kinds, weights)[0],
                job=chance.randrange(jobs),
                pick=chance.randrange(1 << 30),
            )
        )
    return tuple(sorted(wishes, key=lambda wish: wish.at_us))


class _Kind(msgspec.Struct, frozen=True):
    name: str
    most: int
    """Times within one simulation."""
    lasts_s: tuple[float, float]
    amount: tuple[float, float] = (0.0, 0.0)


KINDS: Final = (
    _Kind("kill scheduler", 20, (0.2, 15)),
    _Kind("pause scheduler", 12, (0.5, 40)),
    _Kind("cut scheduler", 6, (5, 40)),
    _Kind("kill dispatcher", 12, (0.2, 15)),
    _Kind("pause dispatcher", 8, (0.5, 40)),
    _Kind("cut dispatcher", 4, (5, 40)),
    _Kind("lose epochs", 2, (0, 0)),
    _Kind("kill worker", 15, (0.2, 20)),
    _Kind("pause worker", 15, (0.5, 90)),
    _Kind("lose messages", 6, (5, 120), (0.01, 0.4)),
    _Kind("double messages", 6, (5, 120), (0.01, 0.4)),
    _Kind("delay messages", 6, (5, 120), (0.01, 0.5)),
    _Kind("abort transactions", 6, (5, 60), (0.02, 0.4)),
    _Kind("doubt transactions", 6, (5, 60), (0.02, 0.4)),
    _Kind("ghost transactions", 6, (5, 120), (0.05, 0.8)),
    _Kind("stall broker", 5, (0.5, 20)),
    _Kind("wipe ready", 5, (0, 0)),
    _Kind("wipe inbox", 5, (0, 0)),
    _Kind("wipe states", 5, (0, 0)),
    _Kind("poison", 10, (0, 0)),
    _Kind("step clock", 4, (1, 300), (-7_200, 7_200)),
    _Kind("drift clock", 2, (60, 2_000), (-400, 400)),
    _Kind("hang targets", 3, (10, 200), (0.2, 1.0)),
    _Kind("flood", 3, (1, 10), (20, 150)),
    _Kind("outage", 3, (30, 400)),
)


def _faults(seed: int) -> tuple[Fault, ...]:
    """A swarm: some kinds, each with a rate of its own; every kind from its own substream."""
    swarm = random.Random(f"{seed}/swarm")
    faults: list[Fault] = []
    for kind in KINDS:
        wanted = swarm.random() < 0.4
        share = 10 ** swarm.uniform(-1.5, 0)
        if wanted:
            faults += _of_kind(random.Random(f"{seed}/fault/{kind.name}"), kind, share)
    return tuple(sorted(faults, key=lambda fault: fault.at_us))


def _of_kind(chance: random.Random, kind: _Kind, share: float) -> list[Fault]:
    return [
        Fault(
            at_us=chance.randrange(WARM_UP_US, HEALED_US - MINUTE_US),
            kind=kind.name,
            node=chance.randrange(1 << 20),
            lasts_us=int(chance.uniform(*kind.lasts_s) * SECOND_US),
            amount=chance.uniform(*kind.amount),
        )
        for _ in range(max(round(kind.most * share), 1))
    ]
