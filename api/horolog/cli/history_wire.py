"""What the server and the process that writes its history tell each other, a line of JSON each."""

from collections.abc import Iterator
from typing import IO, Final

import msgspec


class Follow(msgspec.Struct, frozen=True, tag="follow"):
    """The log has more."""


class Rebuild(msgspec.Struct, frozen=True, tag="rebuild"):
    """Build the tables anew."""


class Shut(msgspec.Struct, frozen=True, tag="shut"):
    """The server has none of the tables open, and opens none before `Promoted`."""


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Fold what there is, and end."""


class Moved(msgspec.Struct, frozen=True, tag="moved"):
    """The tables have got so far: the `seq` of each partition."""

    positions: dict[int, int]


class Resting(msgspec.Struct, frozen=True, tag="resting"):
    """Nothing is written at present."""

    slug: str
    detail: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """It ends, and to begin it again would not help."""

    detail: str


class Progressed(msgspec.Struct, frozen=True, tag="progressed"):
    """How far a rebuild has come."""

    partition: int
    seq: int
    events: int


class Promoting(msgspec.Struct, frozen=True, tag="promoting"):
    """New tables are ready; it waits for `Shut`."""


class Promoted(msgspec.Struct, frozen=True, tag="promoted"):
    """The tables may be opened."""


class Rebuilt(msgspec.Struct, frozen=True, tag="rebuilt"):
    """A rebuild has ended; a slug: it failed, and the old tables stay."""

    slug: str = ""
    detail: str = ""
    is_corrupt: bool = False


Asked = Follow | Rebuild | Shut | Drain
Told = Moved | Resting | Failed | Progressed | Promoting | Promoted | Rebuilt

_ASKED: Final[msgspec.json.Decoder[Asked]] = msgspec.json.Decoder(Asked)
_TOLD: Final[msgspec.json.Decoder[Told]] = msgspec.json.Decoder(Told)
_ENCODER: Final = msgspec.json.Encoder()


def send(pipe: IO[bytes], message: Asked | Told) -> None:
    """Write one message. Raises OSError: the other end is gone."""
    pipe.write(_ENCODER.encode(message) + b"\n")
    pipe.flush()


def asked(pipe: IO[bytes]) -> Iterator[Asked]:
    """What the server asks, until its end is gone."""
    return map(_ASKED.decode, pipe)


def told(pipe: IO[bytes]) -> Iterator[Told]:
    """What the history's process tells, until it is gone; half a line is none."""
    return (_TOLD.decode(line) for line in pipe if line.endswith(b"\n"))
