"""A user of another language: nothing but Avro and the `.avsc` file."""

import io
import json
from importlib.resources import files
from typing import Any

import fastavro

from horolog.schemas.framing import decode_any
from horolog.schemas.records import CreateJob

EMPTY = 0xC15D213AA4D7A795


def crc64_avro(data: bytes) -> int:
    """CRC-64-AVRO, written from the specification (Avro 1.12, "Schema Fingerprints")."""
    table: list[int] = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = (value >> 1) ^ (EMPTY & -(value & 1))
        table.append(value)
    crc = EMPTY
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc


def test_create_job_written_with_fastavro_and_the_avsc_alone_is_read() -> None:
    avro: Any = fastavro
    text = (files("horolog.schemas") / "avro" / "commands" / "CreateJob.avsc").read_text()
    schema = avro.parse_schema(json.loads(text))
    command = {
        "command_id": "from elsewhere",
        "job_id": "acme.nightly",
        "definition": {
            "schedule": {"cron": "0 6 * * *", "timezone": "Europe/Paris"},
            "target": {"command": ["/bin/true"]},
            # fastavro does not turn the text of a bytes default into bytes when it writes one.
            "payload": b"",
        },
    }
    body = io.BytesIO()
    avro.schemaless_writer(body, schema, command)
    canonical = avro.schema.to_parsing_canonical_form(json.loads(text))
    header = b"\xc3\x01" + crc64_avro(canonical.encode()).to_bytes(8, "little")
    record = decode_any(header + body.getvalue())
    assert isinstance(record, CreateJob)
    assert record.job_id == "acme.nightly"
    assert record.definition.schedule.cron == "0 6 * * *"
    assert record.definition.target.command == ("/bin/true",)
    assert record.definition.retry.lost_max == 3
