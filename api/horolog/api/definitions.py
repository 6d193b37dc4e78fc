"""Between a job as users write it and `JobDefinition`, in both directions.

JSON ── short_form.canonical ──► JobSpec ── definition_of ──► JobDefinition
spec_of ◄──────────────────
"""

import base64
import json
import re
from typing import Final, cast

from horolog.api.definition_models import (
    JobSpec,
    ScheduleSpec,
    TargetSpec,
)
from horolog.api.faults import Fault, Refused, shown
from horolog.api.json_values import Json
from horolog.api.short_form import canonical
from horolog.api.validation import read
from horolog.api.values import (
    duration_text,
    has_offset,
    instant_text,
    parse_duration,
    parse_instant,
)
from horolog.api.zone_table import ZoneTable
from horolog.schemas.errors import CONTRADICTION
from horolog.schemas.records import (
    CatchUp,
    ContainerTarget,
    Gap,
    HttpTarget,
    JobDefinition,
    Overlap,
    OverlapHour,
    Owner,
    RetryPolicy,
    Schedule,
    Target,
    Tier,
)
from horolog.streams.calendar import resolve_at

_JSON_TYPE: Final = re.compile(r"application/(?:[\w.-]+\+)?json(?:\s*;.*)?", re.IGNORECASE)
_CPU: Final = re.compile(r"(\d{1,6})m|(\d{1,3}(?:\.\d{1,3})?)")
_MEMORY: Final = re.compile(r"(\d{1,15})(Ki|Mi|Gi|Ti|k|M|G|T)?")
_MEMORY_UNITS: Final = {
    None: 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip
_INT32_MAX: Final = 2**31 - 1
_MILLI: Final = 1_000


def read_spec(raw: Json) -> JobSpec:
    """A job in either form; raises Refused with pointers into what was sent."""
    spec, pointers = canonical(raw)
    return read(JobSpec, spec, pointers)


def definition_of(spec: JobSpec, zones: ZoneTable) -> JobDefinition:
    """The definition a job file's entry means; raises Refused. `checks.faults_of` comes after."""
    faults: list[Fault] = []
    made = JobDefinition(
        schedule=_schedule_of(spec.schedule, zones, faults),
        target=_target_of(spec.target, faults),
        payload=_payload_of(spec, faults),
        content_type=spec.content_type,
        timeout_us=parse_duration(spec.timeout),
        kill_grace_us=parse_duration(spec.kill_grace),
        retry=RetryPolicy(
            max=spec.retry.max,
            backoff_us=parse_duration(spec.retry.backoff),
            max_backoff_us=parse_duration(spec.retry.max_backoff),
            lost_max=spec.retry.lost_max,
            on_timeout=spec.retry.on_timeout,
        ),
        priority=Tier(spec.priority),
        pool=spec.pool,
        catch_up=CatchUp(spec.catch_up),
        overlap=Overlap(spec.overlap),
        starting_deadline_us=_optional_duration(spec.starting_deadline),
        lease_term_us=parse_duration(spec.lease_term),
        owner=Owner(name=spec.owner.name, notify=spec.owner.notify),
        labels=dict(spec.labels),
        description=spec.description,
    )
    if faults:
        raise Refused(faults)
    return made


def _optional_duration(text: str | None) -> int | None:
    return None if text is None else parse_duration(text)


def _schedule_of(spec: ScheduleSpec, zones: ZoneTable, faults: list[Fault]) -> Schedule:
    bare = Schedule(
        cron=spec.cron,
        second=spec.second,
        every_us=_optional_duration(spec.every),
        at=spec.at,
        timezone=spec.timezone,
        gap=Gap(spec.gap),
        overlap_hour=OverlapHour(spec.overlap_hour),
        jitter_us=parse_duration(spec.jitter),
        anchor_us=None if spec.anchor is None else parse_instant(spec.anchor),
    )
    bounds: dict[str, int | None] = {"start": None, "end": None}
    for name, text in (("start", spec.start), ("end", spec.end)):
        if text is not None:
            try:
                bounds[name] = local_instant(text, bare, zones)
            except ValueError as error:
                faults.append(Fault(pointer=f"/schedule/{name}", detail=f"{shown(text)} {error}"))
    return Schedule(
        cron=bare.cron,
        second=bare.second,
        every_us=bare.every_us,
        at=bare.at,
        timezone=bare.timezone,
        gap=bare.gap,
        overlap_hour=bare.overlap_hour,
        jitter_us=bare.jitter_us,
        start_us=bounds["start"],
        end_us=bounds["end"],
        anchor_us=bare.anchor_us,
    )


def local_instant(text: str, schedule: Schedule, zones: ZoneTable) -> int:
    """An instant that may be local time in a schedule's zone, in µs UTC; ValueError in words."""
    if has_offset(text):
        return parse_instant(text)
    loaded = zones.with_zone(schedule.timezone)
    if schedule.timezone not in loaded:
        raise ValueError(f"cannot be read: there is no time zone {shown(schedule.timezone)}")
    once = Schedule(at=text, timezone=schedule.timezone, overlap_hour=schedule.overlap_hour)
    return resolve_at(once, loaded)


def _target_of(spec: TargetSpec, faults: list[Fault]) -> Target:
    http, container = spec.http, spec.container
    return Target(
        handler=spec.handler,
        command=None if spec.command is None else tuple(spec.command),
        http=None
        if http is None
        else HttpTarget(url=http.url, method=http.method, headers=dict(http.headers)),
        container=None
        if container is None
        else ContainerTarget(
            image=container.image,
            args=tuple(container.args),
            env=dict(container.env),
            cpu_milli=_cpu_of(container.cpu, faults),
            memory_bytes=_memory_of(container.memory, faults),
        ),
    )


def _cpu_of(text: str | None, faults: list[Fault]) -> int:
    if text is None:
        return 0
    match = _CPU.fullmatch(text)
    milli = 0
    if match is not None:
        milli = int(match[1]) if match[1] else round(float(match[2]) * _MILLI)
    if not 0 < milli <= _INT32_MAX:
        detail = f"{shown(text)} is no number of cores, as 0.5 or 500m"
        faults.append(Fault(pointer="/target/container/cpu", detail=detail))
    return milli


def _memory_of(text: str | None, faults: list[Fault]) -> int:
    if text is None:
        return 0
    match = _MEMORY.fullmatch(text)
    count = int(match[1]) * _MEMORY_UNITS[match[2]] if match is not None else 0
    if count == 0:
        detail = f"{shown(text)} is no number of bytes, as 256Mi or 1G"
        faults.append(Fault(pointer="/target/container/memory", detail=detail))
    return count


def is_json_type(content_type: str) -> bool:
    """Whether a media type is JSON."""
    return _JSON_TYPE.fullmatch(content_type.strip()) is not None


def payload_bytes(
    payload: Json, payload_base64: str | None, content_type: str, faults: list[Fault]
) -> bytes:
    """The payload a user means; empty when there is none."""
    if payload_base64 is not None:
        if payload is not None:
            detail = "is given beside payload; give one"
            faults.append(Fault(pointer="/payloadBase64", detail=detail, error=CONTRADICTION))
        try:
            return base64.b64decode(payload_base64, validate=True)
        except ValueError as error:
            # Also of a character that is not ASCII, which is no `binascii.Error`.
            faults.append(Fault(pointer="/payloadBase64", detail=f"is no base64: {error}"))
            return b""
    if payload is None:
        return b""
    if is_json_type(content_type):
        return json_bytes(payload)
    if isinstance(payload, str):
        return payload.encode()
    detail = f"{shown(payload)} is not a string, as contentType {content_type} needs"
    faults.append(Fault(pointer="/payload", detail=detail))
    return b""


def json_bytes(value: Json) -> bytes:
    """The bytes that stand for a JSON payload: compact, UTF-8, members in the order given."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _payload_of(spec: JobSpec, faults: list[Fault]) -> bytes:
    return payload_bytes(spec.payload, spec.payload_base64, spec.content_type, faults)


def payload_fields(payload: bytes, content_type: str) -> dict[str, Json]:
    """The fields that give these very bytes back; none for an empty payload."""
    if not payload:
        return {}
    try:
        text = payload.decode()
        if not is_json_type(content_type):
            return {"payload": text}
        value = cast("Json", json.loads(text))
        if value is not None and json_bytes(value) == payload:
            return {"payload": value}
    except (ValueError, RecursionError):
        # Not text, or not JSON although it says so: only its bytes tell it whole.
        pass
    return {"payloadBase64": base64.b64encode(payload).decode()}


def spec_of(definition: JobDefinition) -> dict[str, Json]:
    """A definition in the job file's form, every field that has a value; what `read_spec` and
    `definition_of` turn into the same definition again.
    """
    made: dict[str, Json | None] = {
        "schedule": _schedule_spec(definition.schedule),
        "target": _target_spec(definition.target),
        **payload_fields(definition.payload, definition.content_type),
        "contentType": definition.content_type,
        "timeout": duration_text(definition.timeout_us),
        "killGrace": duration_text(definition.kill_grace_us),
        "retry": {
            "max": definition.retry.max,
            "backoff": duration_text(definition.retry.backoff_us),
            "maxBackoff": duration_text(definition.retry.max_backoff_us),
            "lostMax": definition.retry.lost_max,
            "onTimeout": definition.retry.on_timeout,
        },
        "priority": definition.priority.value,
        "pool": definition.pool,
        "catchUp": definition.catch_up.value,
        "overlap": definition.overlap.value,
        "startingDeadline": _optional_text(definition.starting_deadline_us),
        "leaseTerm": duration_text(definition.lease_term_us),
        "owner": {"name": definition.owner.name, "notify": definition.owner.notify},
        "labels": dict(definition.labels),
        "description": definition.description,
    }
    return _without_none(made)


def _optional_text(duration_us: int | None) -> str | None:
    return None if duration_us is None else duration_text(duration_us)


def _without_none(fields: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}


def _schedule_spec(schedule: Schedule) -> dict[str, Json]:
    return _without_none(
        {
            "cron": schedule.cron,
            "second": schedule.second,
            "every": _optional_text(schedule.every_us),
            "at": schedule.at,
            "timezone": schedule.timezone,
            "gap": schedule.gap.value,
            "overlapHour": schedule.overlap_hour.value,
            "jitter": duration_text(schedule.jitter_us),
            "start": None if schedule.start_us is None else instant_text(schedule.start_us),
            "end": None if schedule.end_us is None else instant_text(schedule.end_us),
            "anchor": None if schedule.anchor_us is None else instant_text(schedule.anchor_us),
        }
    )


def _target_spec(target: Target) -> dict[str, Json]:
    http, container = target.http, target.container
    return _without_none(
        {
            "handler": target.handler,
            "command": None if target.command is None else list(target.command),
            "http": None
            if http is None
            else {"url": http.url, "method": http.method, "headers": dict(http.headers)},
            "container": None
            if container is None
            else _without_none(
                {
                    "image": container.image,
                    "args": list(container.args),
                    "env": dict(container.env),
                    "cpu": f"{container.cpu_milli}m" if container.cpu_milli else None,
                    "memory": str(container.memory_bytes) if container.memory_bytes else None,
                }
            ),
        }
    )


_DEFAULTS: Final[dict[str, Json]] = cast(
    "dict[str, Json]",
    JobSpec(target=TargetSpec()).model_dump(mode="json", by_alias=True),
)


def sparse(spec: dict[str, Json]) -> dict[str, Json]:
    """A job file's entry without what the defaults say anyway: what `export` writes."""
    return _sparse(spec, _DEFAULTS)


def _sparse(spec: dict[str, Json], defaults: dict[str, Json]) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for name, value in spec.items():
        default = defaults.get(name)
        if value == default and name != "target":
            continue
        if isinstance(value, dict) and isinstance(default, dict) and name != "payload":
            made[name] = _sparse(value, default)
        else:
            made[name] = value
    return made
