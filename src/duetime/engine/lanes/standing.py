"""The standing of an endpoint: how likely it is to give back soon a slot that it gets."""

from enum import IntEnum


class Standing(IntEnum):
    """From best to worst. A worse standing has a smaller share of the slots."""

    ANSWERS = 0
    """It answered a moment ago."""
    ANSWERED = 1
    """It answered its last attempt, some time ago."""
    UNKNOWN = 2
    """It has not been called lately, or has failed without keeping anybody waiting."""
    HANGS = 3
    """Its last attempt took long and failed, or its attempts under way are without an answer."""


SHARES = (1.0, 0.75, 0.5, 0.25)
"""Share of all slots for the attempts of a standing and of all worse ones together."""

MOMENT_SECONDS = 10.0
"""Age up to which an answer shows that the endpoint answers now."""

HELD_UP_SECONDS = 1.0
"""Length of a failed attempt from which it kept a slot from others."""
