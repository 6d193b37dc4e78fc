"""The deliberate bugs. Each is one that a scheduler like this has had, or could."""

from typing import Final

from tests.simulation.mutants.mutate import Mutant


def _bug(name: str, target: str, old: str, new: str) -> Mutant:
    return Mutant(name=name, target=target, old=old, new=new)


_OWNER: Final = "streams.host.owner:Owner."
_LOOP: Final = "streams.host.partition:PartitionLoop."
_LEASES: Final = "streams.scheduler.decide_leases:"
_JOBS: Final = "streams.scheduler.decide_jobs:"
_SLOTS: Final = "streams.scheduler.decide_slots:"
_RUNS: Final = "streams.scheduler.decide_runs:"
_WORKER: Final = "workers.leases:Leases."
_INDEX: Final = "streams.dispatcher.index:Dispatcher."

BUGS: Final = (
    # --- slots
    _bug("a new owner forgets when jobs wake", _OWNER + "take_over",
         "self.timers.set(job.job_id, wake_us(state, job, 0))", "pass"),
    _bug("slots after a skipped range are dropped without an event",
         "streams.scheduler.evolve_slots:_slots_skipped",
         "job.planned_to_us = max(job.planned_to_us, event.to_us)",
         "job.planned_to_us = max(job.planned_to_us, event.to_us + 90_000_000)"),
    _bug("an edit leaves slots that have come to the new schedule", _JOBS + "update",
         "yield from decide_slots.settle(state, job, now_us)", "pass"),
    _bug("an edit leaves planned runs of the old schedule", _JOBS + "update",
         "yield from _revoke(job, edge_us)", "pass"),
    _bug("a pause leaves planned runs", _JOBS + "pause",
         "yield from _withdraw(state, job, now_us, SkipReason.PAUSED)", "pass"),
    _bug("slots that pass in a pause are forgotten", _JOBS + "resume",
         "yield from decide_slots.settle(state, job, now_us)", "pass"),
    _bug("a deletion leaves runs that wait", _JOBS + "delete",
         "yield from _withdraw(state, job, now_us, SkipReason.DELETED)", "pass"),
    _bug("missed slots run as if they were fresh", _SLOTS + "_decide_missed",
         "first_us + jitter_us >= now_us - MISSED_AFTER_US", "True"),
    _bug("a catch-up drops a slot in the middle", _SLOTS + "_advance",
         "yield _planned(job, slot_us, slot_us + jitter_us, cursor.origin, cursor.tier)",
         "yield _planned(job, next_slot(schedule, job.job_id, slot_us, state.zones) or slot_us, "
         "slot_us + jitter_us, cursor.origin, cursor.tier)"),
    _bug("a skipped range ends one slot too early", _SLOTS + "_coalesce",
         "yield from _skip(state, job, job.planned_to_us, last_us - 1, SkipReason.COALESCED, into)",
         "pass"),
    _bug("jitter is taken for a part of the slot", _SLOTS + "_plan_up_to",
         "yield _planned(job, slot_us, slot_us + jitter_us, RunOrigin.SCHEDULE)",
         "yield _planned(job, slot_us + jitter_us, slot_us + jitter_us, RunOrigin.SCHEDULE)"),
    # --- leases
    _bug("a stale token is accepted", _LEASES + "_leased",
         "if run.lease.token != report.token or run.lease.claim_id != report.claim_id:",
         "if False:"),
    _bug("a leased run is granted again", _LEASES + "claim",
         "yield _refused(report, RefusalReason.TAKEN)",
         "yield _started(state, soft, job, run, report); return"),
    _bug("a run starts before it is due", _LEASES + "claim",
         "elif run.not_before_us > now_us:", "elif False:"),
    _bug("leases end by the wall clock", _LEASES + "check_leases",
         "outcome = _overdue(job, run, beat, soft.lease_time_us)",
         "outcome = _overdue(job, run, beat, now_us - run.due_us)"),
    _bug("a new owner gives leases no full term", "streams.scheduler.state:Soft.take_over",
         "self.begin(run.run_id, run.lease.inbox)",
         "self.beats[run.run_id] = Beat(run.lease.granted_us - run.lease.term_us + 5_000_000, "
         "run.lease.inbox)"),
    _bug("lease time jumps while the owner is away", "streams.scheduler.state:Soft.mark",
         "self.lease_time_us += min(max(append_us - self.mark_us, 0), step_max_us)",
         "self.lease_time_us += max(append_us - self.mark_us, 0)"),
    _bug("heartbeats do not count", _OWNER + "_note_beat",
         "answer.verdict is not Verdict.STALE", "answer.verdict is Verdict.STALE"),
    _bug("back-off is ignored", _LEASES + "_retry_at",
         "return now_us + backoff_us(policy.backoff_us, policy.max_backoff_us, run.failures + 1)",
         "return now_us"),
    _bug("one retry too many", _LEASES + "_retry_at",
         "if run.failures >= policy.max:", "if run.failures > policy.max:"),
    _bug("a cancel is forgotten", "streams.scheduler.evolve_runs:_cancel_requested",
         "run.cancel_asked = True", "run.cancel_asked = False"),
    _bug("a run that used up its attempts is left as it is", _LEASES + "_end",
         "yield RunDeadLettered(", "_ = RunDeadLettered("),
    _bug("a redriven run counts its attempts on",
         "streams.scheduler.evolve_runs:_run_redriven",
         "run.attempt = run.failures = run.losses = run.version = 0", "run.version = 0"),
    _bug("a worker does not stop itself", _WORKER + "_keep",
         "if boot_us >= run.fence_us:", "if False:"),
    _bug("a worker executes a copied grant", _WORKER + "_granted",
         "claim = self._claims.pop(grant.claim_id, None)",
         "claim = self._claims.get(grant.claim_id)"),
    # --- quotas and the dispatcher
    _bug("a started run holds no place", _INDEX + "_start",
         "self._pool(state.pool).started += 1",
         "self._pool(state.pool).started += 1; tenant.holding.discard(state.run_id)"),
    _bug("a new dispatcher does not wait for all partitions",
         "streams.dispatcher.tenants:Tenant.has_room",
         "(known and len(self.holding) < quota)", "len(self.holding) < quota"),
    _bug("hints are not offered again", "streams.dispatcher.queues:ReadyQueue.offer_again",
         "again: list[tuple[Entry, int]] = []", "return []"),
    _bug("a new owner sends no digests", "streams.host.outbox:Outbox.digests",
         "for dispatcher in self._state.dispatcher_epochs:", "for dispatcher in ():"),
    _bug("a worker never rests while a lost run is being killed", _WORKER + "_first_us",
         "elif run.stopping is not Why.LEASE_LOST:", "else:"),
    _bug("overlap is not judged", "streams.scheduler.state:Run.occupies",
         "return self.status is RunStatus.RUNNING or", "return False and"),
    # --- the log
    _bug("answers leave before their commit", _LOOP + "_serve",
         "if batch is not None and not await self._commit(batch):",
         "self._tell(owner, owner.committed(), now_us)\n"
         "        if batch is not None and not await self._commit(batch):"),
    _bug("a doubted producer goes on", _LOOP + "_commit",
         "self._doubted = outcome is Outcome.DOUBTED", "self._doubted = False"),
    _bug("an unknown outcome is taken for written", _LOOP + "_commit",
         "case Outcome.UNKNOWN:\n                pass",
         "case Outcome.UNKNOWN:\n                return True"),
    _bug("an unknown outcome is taken for not written", _LOOP + "_commit",
         "written = await self._open_again(batch)",
         "await self._port.open(); written = None"),
    _bug("inputs are read again after a takeover", _OWNER + "_seal",
         "positions=dict(self._inputs.positions)", "positions={}"),
    _bug("snapshots forget idempotency keys", "streams.scheduler.snapshot:job_from",
         "job.keys.update((key.key, key) for key in part.keys)", "pass"),
    _bug("snapshots forget answered commands", "streams.scheduler.snapshot:job_from",
         "commands={memory.command_id: memory for memory in record.commands}", "commands={}"),
    _bug("a clock that disagrees decides", "streams.host.clock:BrokerTime.agrees",
         "return self._low_us - STEP_US <= offset_us <= self._high_us + STEP_US", "return True"),
)  # fmt: skip
