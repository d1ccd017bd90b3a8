"""Leaving and taking shards, seen by the parts that work on them."""

from collections.abc import Collection

from duetime.domain.keys import Epoch, ShardNumber
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
            # Claims that are found later would wait for the end of all attempts of their shard.
            await self._reader.find_lost_claims()
            self._held.leave(shards)
        self._dispatcher.give_back(shards)

    def outcomes(self) -> int:
        """The number of outcomes and hand-backs up to now."""
        return self._settler.added

    def are_written(self, outcomes: int) -> bool:
        return self._settler.is_past(outcomes)

    def busy_leases(self) -> set[tuple[ShardNumber, Epoch]]:
        """Leases with attempts under way or outcomes that are not written yet."""
        return self._dispatcher.leases() | self._settler.leases()

    def shards_taken(self) -> None:
        """There are new leases to claim under, or old ones are valid again."""
        self._reader.poll_now()
