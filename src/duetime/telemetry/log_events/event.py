"""An event of the log, as the reference page explains it."""

from typing import Literal

from msgspec import Struct

Level = Literal["debug", "info", "warning", "error", "critical"]

REPORT = "Please report it, with the line."
"""The advice for faults in Duetime itself."""


class LogEvent(Struct, frozen=True):
    """A stable name, the level, the meaning and the advice to an operator. `fields` are all that a
    line of the event may have beside those that every line may have."""

    name: str
    level: Level
    fields: tuple[str, ...]
    meaning: str
    advice: str = ""


class Area(Struct, frozen=True):
    """The events of one part of the service, under one heading of the page."""

    heading: str
    events: tuple[LogEvent, ...]
