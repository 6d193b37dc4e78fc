"""JSON as it comes from a stranger: bounded in depth, its numbers finite, its names unique."""

import json
import math
import re
from collections.abc import Iterable
from typing import Final, TypeAlias, cast

from horolog.api.limits import JSON_DEPTH_MAX

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_OPEN: Final = (b"[", b"{")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class BadJson(ValueError):
    """A text is no JSON that is taken; the message says why."""


def decode(text: bytes, depth_max: int = JSON_DEPTH_MAX) -> Json:
    """The value of a JSON text; BadJson if it is malformed, too deep, or names a member twice."""
    # Counted before decoding: the decoder recurses, and its limit is the interpreter's stack.
    if sum(text.count(bracket) for bracket in _OPEN) > depth_max and _depth(text) > depth_max:
        raise BadJson(f"nests deeper than {depth_max} levels")
    try:
        value = cast(
            "Json",
            json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant),
        )
    except UnicodeDecodeError as error:
        raise BadJson(f"is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise BadJson(
            f"is malformed at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except BadJson:
        raise
    except ValueError as error:
        raise BadJson(f"has a number too large to hold: {error}") from error
    except RecursionError as error:
        raise BadJson(f"nests deeper than {depth_max} levels") from error
    check(value)
    return value


def check(value: Json) -> None:
    """BadJson for what no JSON text can carry on: half of a surrogate pair, a number that is not
    finite.
    """
    stack: list[Json] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            stack.extend(one)
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, float):
            if not math.isfinite(one):
                raise BadJson("has a number too large to hold")
        elif isinstance(one, str) and not one.isascii() and _SURROGATE.search(one):
            raise BadJson("has half of a surrogate pair, which is no character")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadJson(f'names "{twice}" twice in one object')
    return made


def _no_constant(text: str) -> Json:
    raise BadJson(f"has the number {text}, which JSON does not know")


def _depth(text: bytes) -> int:
    """Deepest nesting of brackets outside of strings."""
    deepest = depth = 0
    in_string = escaped = False
    for byte in text:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def pointer(parts: Iterable[str | int]) -> str:
    """JSON Pointer (RFC 6901) of a path; empty for the whole document."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
