"""Pauses of endpoints, for all nodes, in a table of the database."""

from collections.abc import Callable, Sequence
from typing import Protocol

from duetime.domain.instants import Instant
from duetime.ports.endpoints import EndpointPause
from duetime.stores.postgres.connections import Connections
from duetime.stores.stored_text import storable

_ALL = "SELECT endpoint, paused_at, paused_by, reason FROM paused_endpoints ORDER BY endpoint"
_ADD = """
    INSERT INTO paused_endpoints (endpoint, paused_at, paused_by, reason)
    VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING 1
"""
_REMOVE = "DELETE FROM paused_endpoints WHERE endpoint = $1 RETURNING 1"


class Pools(Protocol):
    reads: Connections


class PostgresPauseStore:
    """Implements the store of pauses on the database of a store."""

    def __init__(self, pools: Callable[[], Pools]) -> None:
        """`pools` raises `StoreUnavailable` while the store is closed."""
        self._pools = pools

    async def pauses(self) -> Sequence[EndpointPause]:
        return [
            EndpointPause(
                endpoint=endpoint, paused_at=Instant(paused_at), paused_by=paused_by, reason=reason
            )
            for endpoint, paused_at, paused_by, reason in await self._pools().reads.fetch(_ALL)
        ]

    async def add_pause(self, pause: EndpointPause) -> bool:
        reason = None if pause.reason is None else storable(pause.reason)
        added = await self._pools().reads.fetch_value(
            _ADD, storable(pause.endpoint), pause.paused_at, storable(pause.paused_by), reason
        )
        return added is not None

    async def remove_pause(self, endpoint: str) -> bool:
        removed = await self._pools().reads.fetch_value(_REMOVE, storable(endpoint))
        return removed is not None
