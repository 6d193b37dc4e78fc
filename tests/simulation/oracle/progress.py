"""Rules of quotas and of progress.

quota     a tenant's runs that are started never exceed its quota, in the order of commits
prompt    once all is well, a run that is due and free to go starts within 5 s, workers free
alive     at the end each lease is that of a worker that executes it
"""

from collections.abc import Iterator
from typing import Final

from horolog.schemas.ids import job_of, slot_text, tenant_of
from horolog.schemas.records import (
    AttemptEnded,
    JobCreated,
    JobDefinition,
    JobDeleted,
    JobId,
    JobPaused,
    JobResumed,
    JobUpdated,
    Overlap,
    RunAdmitted,
    RunCancelled,
    RunId,
    RunOrigin,
    RunPlanned,
    RunRevoked,
    RunSkipped,
    RunStarted,
    RunSucceeded,
    TenantId,
)
from horolog.streams.limits import FENCING_GENERATION
from tests.simulation.oracle.executions import executions_of
from tests.simulation.oracle.observation import Observation, Told, Violation

SETTLED_US: Final = 180_000_000
"""After the faults: hints that were lost are offered again, clocks are believed again."""
PROMPT_US: Final = 5_000_000
NOTICED_US: Final = 15_000_000
"""After a lease's term: marks, a step, and 5 s."""


def check(seen: Observation) -> Iterator[Violation]:
    """See the module."""
    yield from _check_quota(seen)
    yield from _check_prompt(seen)
    yield from _check_alive(seen)


def _check_quota(seen: Observation) -> Iterator[Violation]:
    running: dict[TenantId, set[RunId]] = {tenant: set() for tenant in seen.quotas}
    for told in seen.events:
        event = told.event
        if isinstance(event, RunStarted):
            held = running.get(tenant_of(event.job_id))
            if held is not None:
                held.add(event.run_id)
                most = seen.quotas[tenant_of(event.job_id)]
                if len(held) > most:
                    yield Violation(
                        "quota",
                        f"{len(held)} runs of {tenant_of(event.job_id)} at "
                        f"{slot_text(told.us)}, {most} are allowed",
                    )
        elif isinstance(event, RunSucceeded | AttemptEnded):
            held = running.get(tenant_of(event.job_id))
            if held is not None:
                held.discard(event.run_id)


class _Waiting:
    """Runs that may start, and since when."""

    def __init__(self) -> None:
        self.since_us: dict[RunId, int] = {}
        self.definitions: dict[JobId, JobDefinition] = {}
        self.paused: set[JobId] = set()

    def take(self, told: Told) -> None:
        event = told.event
        match event:
            case JobCreated() | JobUpdated():
                self.definitions[event.job_id] = event.definition
                if isinstance(event, JobUpdated):
                    self._forget(event.job_id)
            case JobPaused():
                self.paused.add(event.job_id)
                self._forget(event.job_id)
            case JobResumed():
                self.paused.discard(event.job_id)
            case JobDeleted():
                self._forget(event.job_id)
            case RunPlanned():
                # What is made up comes after what is fresh, at half the rate.
                if not event.gated and event.origin is RunOrigin.SCHEDULE:
                    self.since_us[event.run_id] = max(event.due_us, told.us)
            case RunAdmitted():
                if event.job_id not in self.paused:
                    self.since_us[event.run_id] = told.us
            case RunStarted() | RunRevoked() | RunSkipped() | RunCancelled():
                self.since_us.pop(event.run_id, None)
            case AttemptEnded():
                if event.retry_at_us is not None and event.job_id not in self.paused:
                    self.since_us[event.run_id] = max(event.retry_at_us, told.us)
            case _:
                pass

    def _forget(self, job_id: JobId) -> None:
        """A change of a job makes its waiting runs wait in another way: they are not watched."""
        for run_id in [each for each in self.since_us if job_of(each) == job_id]:
            del self.since_us[run_id]

    def is_free(self, run_id: RunId, seen: Observation) -> bool:
        """Whether nothing but workers may hold it up."""
        job_id = job_of(run_id)
        definition = self.definitions.get(job_id)
        return (
            definition is not None
            and definition.overlap is Overlap.ALLOW
            and job_id not in self.paused
            and tenant_of(job_id) not in seen.quotas
        )


def _check_prompt(seen: Observation) -> Iterator[Violation]:
    waiting = _Waiting()
    late: list[tuple[RunId, int, int]] = []
    settled_us = seen.healed_us + SETTLED_US
    for told in seen.events:
        event = told.event
        if isinstance(event, RunStarted):
            since_us = waiting.since_us.get(event.run_id)
            if since_us is not None and waiting.is_free(event.run_id, seen):
                from_us = max(since_us, settled_us)
                if told.us > from_us + PROMPT_US:
                    late.append((event.run_id, from_us, told.us))
        waiting.take(told)
    for run_id, since_us in waiting.since_us.items():
        from_us = max(since_us, settled_us)
        if seen.end_us > from_us + PROMPT_US and waiting.is_free(run_id, seen):
            late.append((run_id, from_us, seen.end_us))
    for run_id, from_us, to_us in late:
        free_us = _longest_free_us(seen, from_us, to_us)
        if free_us > PROMPT_US:
            yield Violation(
                "prompt",
                f"{run_id} could start at {slot_text(from_us)} and did {to_us - from_us} us later; "
                f"workers were free for {free_us} us of it",
            )


def _longest_free_us(seen: Observation, from_us: int, to_us: int) -> int:
    """The longest stretch in which fewer runs were executed than workers can."""
    changes: list[tuple[int, int]] = []
    for found in executions_of(seen.seen).values():
        for execution in found:
            changes.append((execution.start.at_us, 1))
            if execution.end is not None:
                changes.append((execution.end.at_us, -1))
    changes.sort()
    busy, longest_us, since_us = 0, 0, from_us
    for at_us, change in changes:
        if at_us > to_us:
            break
        if at_us >= from_us:
            if busy < seen.capacity // 2:
                longest_us = max(longest_us, at_us - since_us)
            since_us = at_us
        busy += change
    if busy < seen.capacity // 2:
        longest_us = max(longest_us, to_us - since_us)
    return longest_us


def _check_alive(seen: Observation) -> Iterator[Violation]:
    leases: dict[RunId, tuple[int, int, int]] = {}
    for told in seen.events:
        event = told.event
        if isinstance(event, RunStarted):
            token = event.generation * FENCING_GENERATION + event.seq
            leases[event.run_id] = token, told.us, event.term_us
        elif isinstance(event, RunSucceeded | AttemptEnded):
            leases.pop(event.run_id, None)
    executions = executions_of(seen.seen)
    for run_id, (token, granted_us, term_us) in leases.items():
        is_new = max(granted_us, seen.healed_us) > seen.end_us - term_us - NOTICED_US
        is_executed = any(each.end is None for each in executions.get((run_id, token), ()))
        if not is_new and not is_executed:
            yield Violation(
                "alive", f"{run_id} is leased since {slot_text(granted_us)}, and nobody executes it"
            )
