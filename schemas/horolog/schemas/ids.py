"""Identifiers: how tenant, job, slot and run name one another, and which partition a key lives in.

    tenant      acme
    job ID      acme.billing-close
    run ID      acme.billing-close@20261201T000000Z     the run of a slot
                acme.billing-close@manual-Zx81          a manual run, named by its idempotency key

No ID holds `/` or `:`, so each can stand in a path before a custom verb without escaping.
"""

import base64
import hashlib
import re
from typing import Final

from horolog.schemas.records import JobId, RunId, TenantId

TENANT_PATTERN: Final = r"[a-z0-9][a-z0-9-]{0,62}"
JOB_NAME_PATTERN: Final = r"[a-z0-9][a-z0-9._-]{0,127}"
KEY_PATTERN: Final = r"[A-Za-z0-9_-]{1,64}"

_TENANT = re.compile(TENANT_PATTERN)
_JOB_NAME = re.compile(JOB_NAME_PATTERN)
_KEY = re.compile(KEY_PATTERN)
_MANUAL: Final = "@manual-"
_SLOT_TEXT = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")
_US_PER_S: Final = 1_000_000
_S_PER_DAY: Final = 86_400


def is_tenant(text: str) -> bool:
    """Whether `text` may name a tenant."""
    return _TENANT.fullmatch(text) is not None


def is_job_name(text: str) -> bool:
    """Whether `text` may name a job within its tenant."""
    return _JOB_NAME.fullmatch(text) is not None


def is_job_id(text: str) -> bool:
    """Whether `text` is `<tenant>.<name>` with both parts well formed."""
    tenant, dot, name = text.partition(".")
    return dot == "." and is_tenant(tenant) and is_job_name(name)


def job_id_of(tenant: str, name: str) -> JobId:
    """Job ID of a job name within a tenant; both parts must be well formed."""
    return JobId(f"{tenant}.{name}")


def tenant_of(job_id: JobId | RunId) -> TenantId:
    """Tenant of a job or run ID."""
    return TenantId(job_id.partition(".")[0])


def name_of(job_id: JobId) -> str:
    """Name of a job within its tenant."""
    return job_id.partition(".")[2]


def job_of(run_id: RunId) -> JobId:
    """Job of a run ID."""
    return JobId(run_id.rpartition("@")[0])


def run_id_of_slot(job_id: JobId, slot_us: int) -> RunId:
    """Run ID of a slot, given in microseconds UTC; slots are whole seconds."""
    return RunId(f"{job_id}@{slot_text(slot_us)}")


def run_id_of_key(job_id: JobId, key: str) -> RunId:
    """Run ID of a manual run. A key that could not stand in an ID is replaced by its digest:
    SHA-256 in base32, lower case, first 26 characters (130 bits).
    """
    if _KEY.fullmatch(key) is None:
        digest = hashlib.sha256(key.encode()).digest()
        key = base64.b32encode(digest).decode().lower()[:26]
    return RunId(f"{job_id}{_MANUAL}{key}")


def is_manual(run_id: RunId) -> bool:
    """Whether the run ID is that of a manual run."""
    return _MANUAL in run_id


def slot_text(slot_us: int) -> str:
    """ISO 8601 basic form in UTC, `20261201T000000Z`; years 1 to 9999, proleptic Gregorian."""
    days, second = divmod(slot_us // _US_PER_S, _S_PER_DAY)
    year, month, day = _civil_from_days(days)
    return (
        f"{year:04d}{month:02d}{day:02d}"
        f"T{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}Z"
    )


def slot_of(run_id: RunId) -> int | None:
    """Slot in microseconds UTC that a run ID names; None for a manual run or another text."""
    match = _SLOT_TEXT.fullmatch(run_id.rpartition("@")[2])
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups())
    days = _days_from_civil(year, month, day)
    return (days * _S_PER_DAY + hour * 3600 + minute * 60 + second) * _US_PER_S


# Records may not import datetime (import rules), and 30 lines of civil calendar are cheaper than
# an exception to the rule. Algorithm: Howard Hinnant, "chrono-Compatible Low-Level Date
# Algorithms", days_from_civil and civil_from_days.
def _civil_from_days(days: int) -> tuple[int, int, int]:
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (1 if month <= 2 else 0), month, day


def _days_from_civil(year: int, month: int, day: int) -> int:
    year -= 1 if month <= 2 else 0
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


_MASK32: Final = 0xFFFFFFFF
_M: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C


def partition_of(key: str, partitions: int) -> int:
    """Partition of a key, as Kafka's Java client chooses it by default, so that a producer in any
    language reaches the right one: murmur2 over the UTF-8 bytes, sign bit cleared, modulo.

    Source: `org.apache.kafka.common.utils.Utils.murmur2` and `toPositive`.
    """
    if partitions == 1:
        return 0
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Murmur2 of some bytes with Kafka's seed, unsigned 32 bits."""
    length = len(data)
    h = (_SEED ^ length) & _MASK32
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK32
        k = (k ^ k >> 24) * _M & _MASK32
        h = h * _M & _MASK32 ^ k
    rest = data[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _MASK32
    h = (h ^ h >> 13) * _M & _MASK32
    return h ^ h >> 15
