"""Keeps the tables up with the ledger, in a thread of its own.

The host offers each committed batch; what the projector missed (it was behind, or restarted) it
reads from the log. It lingers a moment before it writes, so that a run which is planned, started
and finished meanwhile is one write; while much is offered, up to two seconds, so that starts that
wait go before their history. Whoever waits for a position ends that at once.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from horolog.projections.fold import Batch, Fold, Source
from horolog.projections.known import RETENTION_US
from horolog.projections.rebuild import Progress, follow
from horolog.projections.store import Beside, Store
from horolog.schemas.errors import UNAVAILABLE, Unavailable

EVENTS_AT_ONCE: Final = 5_000
"""Folded before a write."""
EVENTS_LINGER_MAX: Final = 25_000
"""Offered before lingering ends by itself."""
EVENTS_OFFERED_MAX: Final = 50_000
"""Kept in memory; beyond it the projector reads the log instead."""
LINGER_S: Final = 0.05
LINGER_MOST_S: Final = 2.0
MUCH_PER_S: Final = 2_000
"""Events a second at which history has time."""
PAUSE_S: Final = 0.0001
"""After each batch: the host waits for the interpreter for no longer than one takes to fold."""
RETRY_S: Final = 0.5


class Projector:
    """Folds the batches of a log into a store."""

    def __init__(
        self,
        source: Source,
        store: Store,
        *,
        retention_us: int = RETENTION_US,
        linger_s: float = LINGER_S,
    ) -> None:
        """Begins where the store ends. `retention_us`: how long after its end a run is kept."""
        self._source = source
        self._store = store
        self._retention_us = retention_us
        self._linger_s = linger_s
        self._fold = self._new_fold()
        # One lock for all below. Cost: the host offers hundreds of times a second, and each wake of
        # this thread takes the interpreter from it; so it is woken only from idleness, or when
        # there is enough to write.
        lock = threading.Lock()
        self._todo = threading.Condition(lock)
        self._moved = threading.Condition(lock)
        self._pause = threading.Event()
        """Never set."""
        self._is_idle = False
        self._offered: deque[Batch] = deque()
        self._offered_events = 0
        self._is_behind = True
        self._is_stopping = False
        self._has_ended = False
        self._waiters = 0
        self._swap: _Swap | None = None
        self._thread = threading.Thread(target=self._run, name="horolog-projector", daemon=True)
        self.unavailable: Unavailable | None = None
        """Why nothing is written at present; None: all is well."""
        self.failure: BaseException | None = None
        """What ended the thread, if it did not end by `stop`."""
        self.on_failure: Callable[[], None] = lambda: None
        self.on_moved: Callable[[Mapping[int, int]], None] = lambda _: None
        """Told the positions after each write, in the projector's thread; must not block."""
        self.on_resting: Callable[[Unavailable], None] = lambda _: None
        """Told why nothing is written, before each rest; in the projector's thread."""
        self.promoting: Callable[[], AbstractContextManager[None]] = nullcontext
        """Around the moment in which new tables take the place of the old ones."""

    # --- called from other threads

    def start(self) -> None:
        """Begin to follow the log."""
        self._thread.start()

    def stop(self) -> None:
        """Fold what was offered, write it and end."""
        with self._todo:
            self._is_stopping = True
            self._todo.notify()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def offer(self, batches: Sequence[Batch]) -> None:
        """Batches were committed. Does not block."""
        with self._todo:
            if self._has_ended:
                return
            self._offered.extend(batches)
            self._offered_events += sum(len(batch.events) for batch in batches)
            if self._offered_events > EVENTS_OFFERED_MAX:
                self._offered.clear()
                self._offered_events = 0
                self._is_behind = True
            if self._is_idle or self._is_urgent():
                self._todo.notify()

    def look(self) -> None:
        """The log has more, whatever was offered."""
        with self._todo:
            self._is_behind = True
            self._todo.notify()

    def positions(self) -> Mapping[int, int]:
        """`seq` up to which each partition is in the tables."""
        return self._fold.written

    def position(self, partition: int) -> int:
        """`seq` up to which a partition is in the tables."""
        return self._fold.written.get(partition, 0)

    def wait_for(self, partition: int, seq: int, timeout_s: float) -> bool:
        """Wait until a partition has got to `seq`; False if it has not in time, or never will."""
        with self._moved:
            self._waiters += 1
            self._todo.notify()
            try:
                self._moved.wait_for(
                    lambda: self.position(partition) >= seq or self._has_ended, timeout_s
                )
            finally:
                self._waiters -= 1
            return self.position(partition) >= seq

    def rebuild(self, progress: Callable[[Progress], None] = lambda _: None) -> None:
        """Build the tables anew from the log, beside those in use, and swap them in; reads go on.
        Takes as long as the log is; call it from a thread that may wait, while the projector runs.
        Raises Unavailable or Corrupt; then the old ones stay.
        """
        if not self._thread.is_alive():
            raise Unavailable(UNAVAILABLE, "the projector does not run; the old tables stay")
        beside = self._store.beside()
        try:
            fold = self._new_fold(beside)
            follow(fold, self._source, progress=progress)
            swap = _Swap(beside, fold)
            with self._moved:
                self._swap = swap
                self._todo.notify()
                self._moved.wait_for(lambda: swap.is_done or self._has_ended)
            if swap.failure is not None:
                raise swap.failure
            if not swap.is_done:
                raise Unavailable(UNAVAILABLE, "the projector has stopped; the old tables stay")
        finally:
            beside.abandon()

    # --- the projector's thread

    def _new_fold(self, store: Store | None = None) -> Fold:
        return Fold(self._source, store or self._store, retention_us=self._retention_us)

    def _run(self) -> None:
        try:
            while self._await_work():
                try:
                    self._work()
                except Unavailable as reason:
                    if not self._rest(reason):
                        return
        except BaseException as failure:
            # Whatever it is, the tables stay where they are; who waits for more is told so.
            self.failure = failure
            raise
        finally:
            with self._moved:
                self._has_ended = True
                self._moved.notify_all()
            if self.failure is not None:
                self.on_failure()

    def _rest(self, reason: Unavailable) -> bool:
        """Wait before the next try. False: to stop; what is not written is in the log."""
        self.unavailable = reason
        self.on_resting(reason)
        with self._todo:
            # What was taken from the offers is folded or in the log.
            self._is_behind = True
            self._todo.wait_for(lambda: self._is_stopping, RETRY_S)
            return not self._is_stopping

    def _await_work(self) -> bool:
        """Wait until there is something to do, then a little longer. False: to stop, all done."""
        with self._todo:
            self._is_idle = True
            self._todo.wait_for(lambda: self._has_work() or self._is_stopping)
            self._is_idle = False
            until_s = time.monotonic() + LINGER_MOST_S
            while not self._is_urgent() and time.monotonic() < until_s:
                before = self._offered_events
                self._todo.wait_for(self._is_urgent, self._linger_s)
                if self._offered_events - before < MUCH_PER_S * self._linger_s:
                    break
            return self._has_work()

    def _has_work(self) -> bool:
        return bool(self._is_behind or self._offered or self._swap)

    def _is_urgent(self) -> bool:
        return bool(
            self._is_behind
            or self._is_stopping
            or self._swap
            or self._waiters
            or self._offered_events >= EVENTS_LINGER_MAX
        )

    def _work(self) -> None:
        if self._is_behind:
            with self._todo:
                self._is_behind = False
            follow(self._fold, self._source, write=self._write)
        while self._fold_offered():
            self._write()
        if self._swap is not None:
            self._swap_in(self._swap)

    def _fold_offered(self) -> bool:
        """Fold some of what was offered. False: there was nothing."""
        while self._fold.events_pending < EVENTS_AT_ONCE:
            with self._todo:
                if not self._offered:
                    break
                batch = self._offered.popleft()
                self._offered_events -= len(batch.events)
            if self._fold.follows(batch):
                self._fold.fold(batch)
                self._pause.wait(PAUSE_S)
            else:
                # What is missing was not offered; the log has it, or is corrupt.
                follow(self._fold, self._source, write=self._write)
        return self._fold.events_pending > 0

    def _write(self) -> None:
        self._fold.write()
        self.unavailable = None
        with self._moved:
            self._moved.notify_all()
        self.on_moved(self._fold.written)

    def _swap_in(self, swap: "_Swap") -> None:
        """No position goes back: what was built beside first catches up with what is in use."""
        try:
            follow(swap.fold, self._source)
            with self.promoting():
                swap.beside.promote()
            self._fold = self._new_fold()
        except Unavailable as reason:
            swap.failure = reason
        with self._moved:
            swap.is_done = True
            self._swap = None
            self._moved.notify_all()


class _Swap:
    """Tables that were built beside those in use and are ready to take their place."""

    def __init__(self, beside: Beside, fold: Fold) -> None:
        self.beside = beside
        self.fold = fold
        self.is_done = False
        self.failure: Unavailable | None = None
