"""The short form of a job, turned into the job file's form before either is read.

    schedule: "0 6 * * *"     schedule: {cron: "0 6 * * *"}
    timezone: Europe/Paris    schedule: {timezone: Europe/Paris}
    runAt: 2026-12-24T09:00   schedule: {at: 2026-12-24T09:00}
    timeoutS: 600             timeout: 600s

What says the same thing twice is refused, never resolved in silence.
"""

from typing import Final, NamedTuple, cast

from horolog.api.faults import Fault, Refused, shown
from horolog.api.json_values import Json
from horolog.schemas.errors import CONTRADICTION

_SECONDS: Final = {
    "": ("timeout", "startingDeadline", "leaseTerm", "killGrace"),
    "schedule": ("every", "jitter"),
    "retry": ("backoff", "maxBackoff"),
}
"""Fields that may be given in seconds, under their name + S, by the object they stand in."""

_INTO_SCHEDULE: Final = {"runAt": "at", "timezone": "timezone"}


class Canonical(NamedTuple):
    """The job file's form of what was sent.

    pointers: where a value stood before, for values that were moved.
    """

    spec: dict[str, Json]
    pointers: dict[str, str]


def canonical(raw: Json) -> Canonical:
    """The job file's form; raises Refused for what is no object or says one thing twice.

    Everything unknown stays as it is, for the model to refuse.
    """
    if not isinstance(raw, dict):
        raise Refused([Fault(pointer="", detail=f"{shown(raw)} is not an object that is a job")])
    spec = dict(raw)
    pointers: dict[str, str] = {}
    faults: list[Fault] = []
    schedule = spec.get("schedule")
    if isinstance(schedule, str):
        spec["schedule"] = {"cron": schedule}
        pointers["/schedule/cron"] = "/schedule"
    for short, name in _INTO_SCHEDULE.items():
        if spec.get(short) is not None:
            _move(spec, short, name, pointers, faults)
        else:
            spec.pop(short, None)
    for owner, names in _SECONDS.items():
        at = spec if not owner else spec.get(owner)
        if isinstance(at, dict):
            made = _with_units(at, f"/{owner}" if owner else "", names, pointers, faults)
            if owner:
                spec[owner] = made
            else:
                spec = made
    if faults:
        raise Refused(faults)
    return Canonical(spec, pointers)


def _move(
    spec: dict[str, Json],
    short: str,
    name: str,
    pointers: dict[str, str],
    faults: list[Fault],
) -> None:
    value = spec.pop(short)
    schedule = spec.get("schedule")
    if schedule is None:
        schedule = {}
    if not isinstance(schedule, dict):
        return
    if schedule.get(name) is not None and schedule[name] != value:
        faults.append(
            Fault(
                pointer=f"/{short}",
                detail=f"{shown(value)} and schedule.{name} {shown(schedule[name])} are two "
                "answers to one question; give one",
                error=CONTRADICTION,
            )
        )
        return
    spec["schedule"] = {**schedule, name: value}
    pointers[f"/schedule/{name}"] = f"/{short}"


def _with_units(
    raw: dict[str, Json],
    at: str,
    names: tuple[str, ...],
    pointers: dict[str, str],
    faults: list[Fault],
) -> dict[str, Json]:
    made = dict(raw)
    for name in names:
        short = f"{name}S"
        if short not in made:
            continue
        value = made.pop(short)
        if value is None:
            continue
        if made.get(name) is not None:
            detail = f"{shown(value)} and {name} {shown(made[name])} are given; give one"
            faults.append(Fault(pointer=f"{at}/{short}", detail=detail, error=CONTRADICTION))
        elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            detail = f"{shown(value)} is no number of seconds"
            faults.append(Fault(pointer=f"{at}/{short}", detail=detail))
        else:
            made[name] = f"{value:f}".rstrip("0").rstrip(".") + "s"
            pointers[f"{at}/{name}"] = f"{at}/{short}"
    return made


def canonical_patch(patch: Json, before: dict[str, Json]) -> Json:
    """A merge patch in the job file's form.

    A short field replaces what it is short for: `schedule: "0 * * * *"` or `runAt` takes the
    place of any other kind of schedule, and keeps zone and policies.
    """
    if not isinstance(patch, dict):
        return patch
    made = dict(patch)
    schedule = made.get("schedule")
    kind = "cron" if isinstance(schedule, str) else "at" if made.get("runAt") is not None else None
    made = canonical(made).spec
    if kind is not None:
        others: dict[str, Json] = dict.fromkeys(("cron", "second", "every", "at", "anchor"))
        given = cast("dict[str, Json]", made["schedule"])
        made["schedule"] = {**others, **given}
    elif isinstance(made.get("schedule"), dict) and isinstance(before.get("schedule"), dict):
        # A new interval counts from now, unless it says from when.
        given = cast("dict[str, Json]", made["schedule"])
        if "every" in given and "anchor" not in given:
            made["schedule"] = {"anchor": None, **given}
    return made
