"""Owning everything, in a store that serves one process."""

import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.ports.leases import LeaseStore
from duetime.ports.store import Leases, TimerStore

_log = structlog.get_logger()


async def take_all_shards(store: TimerStore, leases: LeaseStore, owner: str) -> Leases:
    """Own every shard; what was left executing under earlier epochs is pending again."""
    return await take_other_shards(store, leases, owner, held={})


async def take_other_shards(
    store: TimerStore, leases: LeaseStore, owner: str, *, held: Leases
) -> Leases:
    """Own the shards that are not held yet, as `take_all_shards` does."""
    seen = {state.shard: state.epoch for state in await leases.shards() if state.shard not in held}
    if not seen:
        return {}
    taken = await leases.claim_shards(seen, owner=owner)
    if taken.keys() != seen.keys():
        raise StoreUnavailable("some shards were taken by another owner")
    recovered = 0
    while some := await store.recover(taken):
        recovered += len(some)
    if recovered:
        _log.info("timers.recovered", count=recovered)
    return taken
