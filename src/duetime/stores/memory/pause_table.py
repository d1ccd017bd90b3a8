"""Pauses of endpoints, in memory."""

from collections.abc import Sequence

from msgspec.structs import replace

from duetime.ports.endpoints import EndpointPause
from duetime.stores.stored_text import storable


class PauseTable:
    """Implements the store of pauses."""

    def __init__(self) -> None:
        self._pauses: dict[str, EndpointPause] = {}

    async def pauses(self) -> Sequence[EndpointPause]:
        return sorted(self._pauses.values())

    async def add_pause(self, pause: EndpointPause) -> bool:
        endpoint = storable(pause.endpoint)
        if endpoint in self._pauses:
            return False
        self._pauses[endpoint] = replace(
            pause,
            endpoint=endpoint,
            paused_by=storable(pause.paused_by),
            reason=None if pause.reason is None else storable(pause.reason),
        )
        return True

    async def remove_pause(self, endpoint: str) -> bool:
        return self._pauses.pop(storable(endpoint), None) is not None
