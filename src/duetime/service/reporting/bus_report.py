"""The report on the bus: its connection, its counts, and the commands that were rejected."""

from collections.abc import Sequence

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.security.access import Access

MAX_REJECTIONS = 200
"""Rejected commands that a process remembers."""

MAX_REASON_CHARACTERS = 300


class RejectedCommand(Struct, frozen=True, kw_only=True):
    """A command as far as it may be shown: never its payload. `tenant` and `command_id` are None
    where they could not be read. `is_published` tells whether its sender can find the rejection on
    the channel of rejected commands."""

    at: Instant
    reason: str
    tenant: str | None
    command_id: str | None
    size_bytes: int
    is_published: bool = True


class BusReport(Struct, frozen=True, kw_only=True):
    """The bus as one process knows it. Counts begin with the process. `lag` is the number of
    commands that wait at the broker, if that is known; `rejections` has the latest first."""

    node: str
    broker: str
    is_connected: bool
    is_consuming: bool
    lag: int | None
    received: int
    scheduled: int
    canceled: int
    unchanged: int
    ignored: int
    rejected: int
    events_published: int
    events_failed: int
    rejections: Sequence[RejectedCommand] = ()

    def rejections_for(self, access: Access) -> Sequence[RejectedCommand]:
        """The rejections that the caller may see: commands without a readable tenant are for those
        who see everything."""
        if access.namespaces is None:
            return self.rejections
        return [
            each for each in self.rejections if each.tenant is not None and access.sees(each.tenant)
        ]
