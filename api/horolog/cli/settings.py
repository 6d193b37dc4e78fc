"""What the environment says; the one place of the CLI that reads it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from horolog.api.settings import Found, Settings, load, origins
from horolog.cli.exits import Exit, Stop
from horolog.schemas.errors import InvalidInput


def in_force(flags: Mapping[str, str]) -> Settings:
    """The settings, flags first. Raises Stop for one that cannot be used."""
    try:
        return load(flags, os.environ, Path.cwd())
    except InvalidInput as error:
        raise Stop(Exit.USAGE, error.detail, hint=error.error.hint) from error


def with_origins(flags: Mapping[str, str]) -> dict[str, Found]:
    """Each setting and where it came from. Raises Stop for one that cannot be used."""
    try:
        return origins(flags, os.environ, Path.cwd())
    except InvalidInput as error:
        raise Stop(Exit.USAGE, error.detail, hint=error.error.hint) from error


def is_color_wanted() -> bool:
    """Whether standard output is a terminal that takes colours, and nobody said no."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


DEFAULT: Final = "default"
NOT_YET: Final = (
    "log",
    "history",
    "archive",
    "auth.mode",
    "scheduler.lookahead",
    "lease.term",
    "lease.heartbeat",
    "tiers.weights",
    "schema_registry.url",
)
"""Settings whose values other than the default `horolog up` does not obey in this release."""


def embedded_partitions(flags: Mapping[str, str]) -> int | None:
    """Ledger partitions that `horolog up` shall have; None: nobody said. Raises Stop for a setting
    that would be ignored: silence would be a lie.
    """
    found = with_origins(flags)
    for name in NOT_YET:
        given = found[name]
        if given.origin != DEFAULT and given.text != given.setting.default:
            raise Stop(
                Exit.USAGE,
                f"{name} is {given.text!r} ({given.origin}), which this release does not obey",
                hint=f"leave {name} out",
            )
    partitions = found["scheduler.partitions"]
    return None if partitions.origin == DEFAULT else int(partitions.text)
