"""Owns shards: takes their leases, recovers what former owners left, gives them back."""

import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.leases import LeaseStore
from duetime.ports.store import TimerStore

_log = structlog.get_logger()


class ShardOwner:
    """Takes all shards of a store that serves one process."""

    def __init__(self, store: TimerStore, leases: LeaseStore, owner: str) -> None:
        self._store = store
        self._lease_store = leases
        self._owner = owner
        self.leases: dict[ShardNumber, Epoch] = {}

    async def take_all(self) -> None:
        """Own every shard; what was left executing under earlier epochs is pending again."""
        for state in await self._lease_store.shards():
            epoch = await self._lease_store.claim_shard(
                state.shard, owner=self._owner, seen_epoch=state.epoch
            )
            if epoch is None:
                raise StoreUnavailable(f"shard {state.shard} was taken by another owner")
            self.leases[state.shard] = epoch
        recovered = await self._store.recover(self.leases)
        if recovered:
            _log.info("timers.recovered", count=len(recovered))

    async def release_all(self) -> None:
        for shard, epoch in self.leases.items():
            await self._lease_store.release_shard(shard, epoch=epoch)
        self.leases = {}
