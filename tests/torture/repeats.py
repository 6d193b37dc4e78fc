"""F16: the same trigger sent again and again, over restarts, is one run with one answer."""

import random
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Final

from tests.torture.acks import Acks
from tests.torture.api import Api
from tests.torture.checker import Checked
from tests.torture.figures import Figures
from tests.torture.processes import Place, placed, removed
from tests.torture.rounds import definition, drained
from tests.waiting import until

TRIGGERS_OF_FAULTS: Final = 100_000 / 300
SHARE: Final = 0.3
"""Of the triggers that repeat an earlier one."""
JOBS: Final = 100
THREADS: Final = 8
RESTARTS: Final = 5


class Sender(threading.Thread):
    """Sends triggers, some of them again at once or much later; each until it is answered."""

    def __init__(self, port: int, acks: Acks, number: int, count: int) -> None:
        super().__init__(name=f"sender{number}", daemon=True)
        self._api = Api(port)
        self._acks = acks
        self._count = count
        self._chance = random.Random(f"repeats {number}")
        self.sent = 0
        self.repeated = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        keys: list[str] = []
        try:
            for number in range(self._count):
                if keys and self._chance.random() < SHARE:
                    key = self._chance.choice(keys[-200:])
                    self.repeated += 1
                else:
                    key = f"{self.name}-{number}"
                    keys.append(key)
                self._trigger(key)
                self.sent += 1
        except BaseException as failure:
            self.failure = failure
            raise
        finally:
            self._api.close()

    def _trigger(self, key: str) -> None:
        # The same key always goes to the same job.
        job = f"manual{hash_of(key) % JOBS}"
        path, body = f"/v1/jobs/default.{job}:trigger", {"idempotencyKey": key}
        answer = self._api.until_answered("POST", path, body, stop=threading.Event())
        assert answer is not None
        assert answer.status == 202, answer
        self._acks.triggered(key, answer.body["runId"])


def hash_of(text: str) -> int:
    """The same in every process."""
    return random.Random(text).getrandbits(32)


def repeat_round(folder: Path, triggers: int, restarts: int) -> tuple[Checked, dict[str, object]]:
    """So many triggers, some of them repeats, while the server is killed and started again."""
    acks = Acks()
    with placed(folder) as place:
        place.start()
        _register(place)
        senders = [Sender(place.port, acks, n, triggers // THREADS) for n in range(THREADS)]
        began_s = time.monotonic()
        for sender in senders:
            sender.start()
        for number in range(restarts):
            wanted = triggers * (number + 1) // (restarts + 1)
            until(partial(_have_sent, senders, wanted), f"{wanted} triggers are answered", 900)
            assert place.server is not None
            place.server.end(signal.SIGKILL if number % 2 == 0 else signal.SIGTERM)
            place.start()
        for sender in senders:
            sender.join()
            assert sender.failure is None, sender.failure
        took_s = time.monotonic() - began_s
        checked = drained(place, acks)
    sent = sum(sender.sent for sender in senders)
    repeated = sum(sender.repeated for sender in senders)
    if checked.acked != sent - repeated:
        checked.wrong.append(f"{sent} sent, {repeated} of them repeats, {checked.acked} runs")
    more: dict[str, object] = {
        "sent": sent,
        "repeated": repeated,
        "runs": len(acks.runs),
        "restarts": restarts,
        "per_s": round(sent / took_s),
    }
    return checked, more


def _have_sent(senders: list[Sender], wanted: int) -> bool | None:
    return sum(sender.sent for sender in senders) >= wanted or None


def _register(place: Place) -> None:
    for number in range(JOBS):
        spec = {**definition({"handler": "inline"}), "pool": "default"}
        place.register(f"manual{number}", spec)


def repeats(folder: Path, faults: int, seed: int) -> Figures:
    """100,000 triggers of 300 faults."""
    place = folder / f"repeats-{seed}"
    checked, more = repeat_round(place, round(faults * TRIGGERS_OF_FAULTS), RESTARTS)
    if not checked.wrong:
        removed(place)
    return Figures(
        fault="F16: triggers repeated",
        how="30 % under an idempotency key sent before, over kills and restarts of the server",
        count=round(faults * TRIGGERS_OF_FAULTS),
        seed=seed,
        checked=checked,
        more=more,
    )
