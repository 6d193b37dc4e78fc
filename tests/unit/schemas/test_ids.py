"""Identifiers, and the partition of a key as Kafka's Java client finds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.schemas.ids import (
    is_job_id,
    job_of,
    murmur2,
    partition_of,
    run_id_of_key,
    run_id_of_slot,
    slot_of,
    slot_text,
    tenant_of,
)
from horolog.schemas.records import JobId
from tests.builders.times import us

JOB = JobId("acme.billing-close")


@pytest.mark.parametrize(
    "data, value",
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_the_values_of_kafkas_own_test(data: bytes, value: int) -> None:
    # org.apache.kafka.common.utils.UtilsTest.testMurmur2
    assert murmur2(data) == value & 0xFFFFFFFF


@given(st.text(min_size=1), st.integers(1, 64))
def test_partition_of_a_key_is_one_of_them(key: str, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions


@given(st.integers(us("1970-01-01T00:00:00Z") // 10**6, us("2200-01-01T00:00:00Z") // 10**6))
def test_slot_is_found_again_in_its_run_id(second: int) -> None:
    run_id = run_id_of_slot(JOB, second * 10**6)
    assert slot_of(run_id) == second * 10**6
    assert (job_of(run_id), tenant_of(run_id)) == (JOB, "acme")


def test_slot_is_written_as_iso_basic_utc() -> None:
    assert slot_text(us("2026-12-01T00:00:00Z")) == "20261201T000000Z"


def test_key_that_cannot_stand_in_an_id_is_replaced_by_its_digest() -> None:
    assert run_id_of_key(JOB, "Zx-8_1") == f"{JOB}@manual-Zx-8_1"
    other = run_id_of_key(JOB, "with space / and : colon")
    assert len(other.rpartition("@manual-")[2]) == 26
    assert slot_of(other) is None


@pytest.mark.parametrize("text", ["acme", ".x", "acme.", "Acme.x", "a/b.c", "acme.UPPER", "a:b.c"])
def test_text_that_is_no_job_id_is_told(text: str) -> None:
    assert not is_job_id(text)
