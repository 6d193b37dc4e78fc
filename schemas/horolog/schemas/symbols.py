"""What the enums of the records are made of."""

import enum


class Symbol(enum.Enum):
    """A symbol of an Avro enum; equal to itself alone.

    Cost: `enum` hashes by name, in Python, at each look-up; a run's life has ten of them.
    """

    __hash__ = object.__hash__
