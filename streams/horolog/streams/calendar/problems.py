"""What is wrong with a schedule, and what is odd about one."""

import enum

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a schedule is refused.

    field: field of `Schedule` that is wrong.
    value: what stands there, or the part of it that is wrong.
    detail: one sentence; for a cron expression it opens with the name of the cron field.
    hint: what would be right; empty when the detail says it all.
    """

    field: str
    value: str
    detail: str
    hint: str = ""


class BadField(ValueError):
    """A field of a cron expression cannot be read; caught within the calendar."""

    def __init__(self, *, part: str, value: str, detail: str, hint: str = "") -> None:
        super().__init__(f'{part}: "{value}" {detail}')
        self.part = part
        self.value = value
        self.detail = detail
        self.hint = hint


class Lint(enum.Enum):
    """Kind of a warning; stable, so that it can be silenced by name."""

    NEVER_AGAIN = "never-again"
    RARE = "rare"
    UNEVEN_STEPS = "uneven-steps"
    STEP_TOO_LARGE = "step-too-large"
    EITHER_DAY = "either-day"
    SHORT_MONTHS = "short-months"
    CLOCK_SKIPS = "clock-skips"
    CLOCK_REPEATS = "clock-repeats"
    MOVED = "moved"


class LintWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Something legal about a schedule that its owner may not expect.

    field: field of `Schedule` it is about.
    instants_us: the instants it is about, if any, in order.
    """

    kind: Lint
    field: str
    detail: str
    hint: str = ""
    instants_us: tuple[int, ...] = ()
