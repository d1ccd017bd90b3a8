"""The path of a timer's page, for every id."""

import re
from urllib.parse import quote

from duetime.domain.keys import TimerKey

_DOTS = re.compile(r"\.\.?~*")
"""Ids that are written with one more `~`: browsers take `.` and `..` out of a path, also if they
are encoded."""


def timer_path(key: TimerKey) -> str:
    id = f"{key.id}~" if _DOTS.fullmatch(key.id) else key.id
    return f"/ui/timers/{quote(key.namespace, safe='')}/{quote(id, safe='')}"


def id_in_path(part: str) -> str:
    """The id that `timer_path` wrote."""
    return part.removesuffix("~") if _DOTS.fullmatch(part) else part
