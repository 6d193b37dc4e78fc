"""Output of a run: byte for byte, bounded, with exact numbers."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from horolog.schemas.records import Target
from horolog.workers.capture import Capture
from tests.builders.grants import Printed, grant


def captured(writes: list[bytes], limit: int) -> Printed:
    """What comes of some writes."""
    printed = Printed()
    capture = Capture(grant(Target(handler="x")), printed.emit, limit)
    for data in writes:
        capture.write(data)
    capture.close()
    return printed


def test_a09_bytes_that_are_no_text_come_back_as_they_were() -> None:
    data = bytes.fromhex("6f6b0a80ff006d69640d0a1b5b33316d7265641b5b306d0a656e640a")
    digest = hashlib.sha256(captured([data], 1 << 20).data).hexdigest()
    assert digest == "c24162d35cc5dc0d813c2df77f6016defbc57699a85962a5b610ee28b5097bdc"


@given(st.lists(st.binary(max_size=50)), st.integers(2, 120))
def test_head_and_tail_are_kept_and_what_is_left_out_is_counted(
    writes: list[bytes], limit: int
) -> None:
    whole = b"".join(writes)
    printed = captured(writes, limit)
    half = limit // 2
    if len(whole) <= 2 * half:
        assert printed.data == whole
    else:
        assert printed.data == whole[:half] + whole[-half:]
    assert len(printed.data) + printed.dropped == len(whole)
    reached = 0
    for chunk in printed.chunks:
        assert chunk.offset == reached + chunk.dropped
        reached = chunk.offset + len(chunk.data)
    assert [chunk.last for chunk in printed.chunks[-1:]] == ([True] if whole else [])


def test_a11_huge_output_keeps_its_last_line_and_little_memory() -> None:
    line = b"x" * 79 + b"\n"
    printed = captured([line * 800] * 400 + [b"the end\n"], 1 << 20)
    assert printed.data.endswith(b"the end\n")
    assert len(printed.data) <= 1 << 20
    assert printed.dropped == 80 * 800 * 400 + 8 - len(printed.data)


def test_what_is_printed_can_be_followed_before_the_end() -> None:
    printed = Printed()
    capture = Capture(grant(Target(handler="x")), printed.emit)
    capture.write(b"first\n")
    capture.flush()
    assert printed.data == b"first\n"
