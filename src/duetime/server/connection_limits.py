"""Limits to the connections of clients: how many there may be, and how slow each."""

import math

from msgspec import Struct

from duetime.server.lingering_close import MAX_SECONDS

LOOKS_PER_LIMIT = 4
"""Looks at a connection in the time of its shortest limit."""

SLOW_BYTES_PER_SECOND = 1_024
"""Rate below which a body, or the reading of an answer, is slow."""


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """`max_connections` is the number of places; `max_surplus` more connections can be told that
    there is none. A client has `head_seconds` for the head of a request, and `rest_seconds` for the
    rest of a body whose request was answered, however slowly the bytes come. Another body may take
    any time, but not pause for `body_pause_seconds`. While the memory for bodies is short, a body
    that has been under way for `body_seconds_when_short` makes room for others. The reading of an
    answer may not pause for `answer_pause_seconds`. Idle connections stay for `idle_seconds`."""

    max_connections: int
    max_surplus: int
    head_seconds: float = 20.0
    rest_seconds: float = MAX_SECONDS
    body_pause_seconds: float = 60.0
    body_seconds_when_short: float = 60.0
    answer_pause_seconds: float = 60.0
    idle_seconds: float = 75.0

    @property
    def look_seconds(self) -> float:
        shortest = min(
            self.head_seconds,
            self.rest_seconds,
            self.body_pause_seconds,
            self.body_seconds_when_short,
            self.answer_pause_seconds,
            self.idle_seconds,
        )
        return shortest / LOOKS_PER_LIMIT

    @property
    def slow_bytes(self) -> float:
        """Bytes between two looks; fewer are slow."""
        return SLOW_BYTES_PER_SECOND * self.look_seconds

    def looks_within(self, seconds: float) -> int:
        return math.ceil(seconds / self.look_seconds)
