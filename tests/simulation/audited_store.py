"""The storage of a simulation, which sees everything that is written."""

from collections.abc import Callable, Mapping, Sequence

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Settlement
from duetime.ports.leases import ShardState
from duetime.ports.membership import NodeFacts
from duetime.ports.store import Leases, PageQuery
from duetime.stores.memory import MemoryStore
from tests.simulation.invariants import Broken


class AuditedStore(MemoryStore):
    """A memory store that reports forgotten members and recovered timers, and that
    checks that nothing is written under an old epoch."""

    def __init__(self) -> None:
        super().__init__()
        self._takers: dict[tuple[ShardNumber, Epoch], str] = {}
        self.broken: list[Broken] = []
        self.on_forgotten: Callable[[str], None] = lambda node: None
        self.on_recovered: Callable[[str, str], None] = lambda timer_id, former_owner: None

    async def check_owned(self, claim: Claim) -> None:
        """Nobody but the owner of its shard may send the claim now, or a former owner that has not
        finished: then the attempt had begun before."""
        if await self._is_unfinished(claim.shard, claim.epoch):
            return
        state = await self._state_of(claim.shard)
        if state.epoch != claim.epoch:
            raise Broken(
                f"{claim.id} was sent under epoch {claim.epoch} by a stale owner: "
                f"shard {state.shard} is at epoch {state.epoch} of {state.owner}"
            )
        if state.owner is None:
            raise Broken(f"{claim.id} was sent though its shard {state.shard} was released")

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        taken = await super().claim_shards(seen, owner=owner)
        self._takers.update(((shard, epoch), owner) for shard, epoch in taken.items())
        return taken

    async def forget_member(self, node: str, *, seen_beat: int) -> bool:
        forgotten = await super().forget_member(node, seen_beat=seen_beat)
        if forgotten:
            self.on_forgotten(node)
        return forgotten

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        before = await self._executing()
        due = await super().recover(leases, limit=limit)
        executing = {timer.key for timer in await self._executing()}
        for timer in before:
            if timer.key not in executing:
                self.on_recovered(timer.key.id, self._takers[timer.shard, timer.epoch])
        return due

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return [await self._settle_one(settlement) for settlement in settlements]

    async def _settle_one(self, settlement: Settlement) -> bool:
        key = TimerKey(settlement.namespace, settlement.id)
        before = await self.get(key)
        unfinished = before is not None and await self._is_unfinished(
            before.shard, settlement.epoch
        )
        (applied,) = await super().settle([settlement])
        epoch = None if before is None else (await self._state_of(before.shard)).epoch
        if (
            epoch != settlement.epoch
            and not unfinished
            and (applied or await self.get(key) is not before)
        ):
            self.broken.append(Broken(f"{key.id} was settled under an old epoch"))
        return applied

    async def _is_unfinished(self, shard: ShardNumber, epoch: Epoch) -> bool:
        view = await self.heartbeat("nobody", NodeFacts(), join=False)
        return any((lease.shard, lease.epoch) == (shard, epoch) for lease in view.unfinished)

    async def _state_of(self, shard: ShardNumber) -> ShardState:
        return (await self.shards())[shard]

    async def _executing(self) -> list[Timer]:
        query = PageQuery(namespace="default", status=TimerStatus.EXECUTING, limit=1_000_000)
        return (await self.page(query)).timers
