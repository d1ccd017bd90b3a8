"""Leaving and taking shards, seen by the parts that work on them."""

from collections.abc import Collection

from duetime.domain.keys import ShardNumber
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.due_reader import DueReader
from duetime.engine.held_leases import HeldLeases
from duetime.engine.settler import Settler


class ShardHandover:
    def __init__(
        self, held: HeldLeases, reader: DueReader, dispatcher: Dispatcher, settler: Settler
    ) -> None:
        self._held = held
        self._reader = reader
        self._dispatcher = dispatcher
        self._settler = settler

    async def stop_claiming(self, shards: Collection[ShardNumber]) -> None:
        """Leave these shards: on return none of their timers is being claimed, and claims that
        were not sent are being handed back."""
        async with self._reader.between_claims:
            self._held.leave(shards)
        self._dispatcher.give_back(shards)

    def busy_shards(self) -> set[ShardNumber]:
        """Shards with attempts under way or outcomes that are not written yet."""
        return self._dispatcher.busy_shards() | self._settler.busy_shards()

    def shards_taken(self) -> None:
        """There are new leases to claim under, or old ones are valid again."""
        self._reader.poll_now()
