"""JSON Merge Patch (RFC 7396)."""

from typing import Final

from horolog.api.json_values import Json

CONTENT_TYPE: Final = "application/merge-patch+json"


def merge(target: Json, patch: Json) -> Json:
    """`target` with `patch` applied: objects merge, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged
