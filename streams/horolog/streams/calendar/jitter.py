"""Numbers that depend on a job's ID alone: its jitter, and the values `H` stands for.

They are part of the contract: a job keeps its place in the hour for ever, and a program in any
language can work it out. The rule, stable for good: take SHA-256 of the UTF-8 text
`"horolog." + purpose + ":" + job_id`, read its first 8 bytes as a big-endian integer `x`, and the
share of `n` is `x * n / 2**64`, rounded down.
"""

import hashlib

from horolog.schemas.records import JobId

_DIGEST_BYTES_USED = 8
_DIGEST_BITS_USED = 8 * _DIGEST_BYTES_USED


def share_of(job_id: JobId, purpose: str, n: int) -> int:
    """A number from 0 to n - 1, uniform over job IDs and independent between purposes; n >= 1."""
    digest = hashlib.sha256(f"horolog.{purpose}:{job_id}".encode()).digest()
    return int.from_bytes(digest[:_DIGEST_BYTES_USED], "big") * n >> _DIGEST_BITS_USED


def jitter_of(job_id: JobId, jitter_us: int) -> int:
    """How long after each slot the job's run is due: 0 <= result < max(jitter_us, 1), in µs.

    The same for every slot of a job, so consecutive runs keep their distance and their order.
    """
    return share_of(job_id, "jitter", jitter_us) if jitter_us > 0 else 0
