"""Instants in tests, as text."""

from datetime import datetime


def us(text: str) -> int:
    """Microseconds since the epoch of an ISO 8601 instant with an offset or `Z`."""
    instant = datetime.fromisoformat(text)
    assert instant.tzinfo is not None, f"{text} names no offset"
    return round(instant.timestamp() * 1_000_000)
