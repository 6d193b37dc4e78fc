"""The writer of output when its store cannot take any."""

import threading
from collections.abc import Sequence

from horolog.schemas.errors import DISK_FULL, Unavailable
from horolog.schemas.records import JobId, LogChunk, RunId
from horolog.workers.logs import WAITING_BYTES_MAX, LogWriter

RUN = RunId("acme.report@20270101T000000Z")


def chunk(offset: int, data: bytes = b"x") -> LogChunk:
    return LogChunk(
        job_id=JobId("acme.report"), run_id=RUN, attempt=1, token=7, offset=offset, data=data
    )


class Disk:
    """A store that has no room until it is told."""

    def __init__(self) -> None:
        self.stored: list[LogChunk] = []
        self.refused = threading.Event()
        self.came = threading.Event()
        self.has_room = False

    def append(self, chunks: Sequence[LogChunk]) -> None:
        if not self.has_room:
            self.refused.set()
            raise Unavailable(DISK_FULL, "no room")
        self.stored += chunks
        self.came.set()


def test_log_writer_whose_store_was_full_writes_everything_in_order_once_there_is_room() -> None:
    disk = Disk()
    writer = LogWriter(disk.append, retry_s=0.01)
    writer.start()
    writer.write(chunk(0))
    assert disk.refused.wait(30)
    writer.write(chunk(1))
    disk.has_room = True
    assert disk.came.wait(30)
    writer.write(chunk(2))
    writer.stop()
    assert [each.offset for each in disk.stored] == [0, 1, 2]


def test_log_writer_whose_store_stays_full_keeps_no_more_than_its_limit_and_can_stop() -> None:
    disk = Disk()
    writer = LogWriter(disk.append, retry_s=0.01)
    writer.start()
    piece = bytes(WAITING_BYTES_MAX // 4)
    for number in range(10):
        writer.write(chunk(number * len(piece), piece))
    assert writer.waiting_bytes <= WAITING_BYTES_MAX
    assert disk.refused.wait(30)
    writer.stop()
    assert not disk.stored
