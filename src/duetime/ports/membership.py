"""Membership: the processes that share a store, known by their heartbeats.

No clock takes part. A member proves that it lives by counting its beats; each observer judges, by
its own monotonic time, whether a count has stood still for too long.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.lateness.recent_slots import SlotFigures
from duetime.ports.endpoints import HeldTimers
from duetime.ports.leases import ShardState
from duetime.ports.store import Leases

MOST_TOLD_PAUSES = 50
"""Paused endpoints that a member tells of, those with the most timers."""

BEAT_SHARE = 0.1
"""Share of the lease time between two beats."""

STEP_DOWN_SHARE = 0.5
"""Share of the lease time without a confirmed beat after which a node stops acting."""

TAKE_OVER_SHARE = 0.75
"""Share of the lease time after which others may take a silent node's shards. With a beat added it
is less than the whole, so a dead node's shards have an owner again within the lease time. The gap
to STEP_DOWN_SHARE allows for clocks that run at different speeds."""


class LostMember(Struct, frozen=True):
    """A member that another one believed dead, and took off the list."""

    node: str
    at: Instant


class NodeFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member's description of itself, sent with each beat for people and for its peers.

    `process` names the operating system's process, so that a peer on the same machine can check
    whether it still exists; empty where that is not known. `clock_offset_ms` is the distance by
    which the store's clock is ahead of the member's. A `stopping` member still exists and still
    owns the shards it has not released, but wants no others. A member that `lets_finish` knows
    unfinished leases; one of an earlier release does not. `slots` are the last ones that are over,
    `held` has the largest groups of timers that wait behind open breakers, and `put_off` the
    largest numbers of timers that wait for paused endpoints. `lost` has the last members that this
    one took off the list.
    """

    host: str = ""
    pid: int = 0
    process: str = ""
    version: str = ""
    url: str = ""
    started_at: Instant = Instant(0)
    in_flight: int = 0
    lateness_ms: float | None = None
    clock_offset_ms: float | None = None
    stopping: bool = False
    lets_finish: bool = False
    slots: tuple[SlotFigures, ...] = ()
    held: tuple[HeldTimers, ...] = ()
    put_off: Mapping[str, int] = {}
    lost: tuple[LostMember, ...] = ()


class Member(Struct, frozen=True):
    node: str
    beat: int
    facts: NodeFacts


class UnfinishedLease(Struct, frozen=True, order=True):
    """A former owner settles attempts of the shard under an epoch that is not the shard's any more.

    The shard may have a new owner meanwhile, which does not recover timers of that epoch. The
    lease ends when its node says so, leaves or is forgotten. None begins under an epoch once the
    shard has a newer one.
    """

    shard: ShardNumber
    epoch: Epoch
    node: str


class ClusterView(Struct, frozen=True):
    """The members, shards and unfinished leases of one moment; `store_now` is the store's own
    clock, if it has one."""

    members: Sequence[Member]
    shards: Sequence[ShardState]
    store_now: Instant | None = None
    unfinished: Sequence[UnfinishedLease] = ()


class MemberStore(Protocol):
    """The list of members, kept in the store. Every write is atomic and durable."""

    async def heartbeat(self, node: str, facts: NodeFacts, *, join: bool) -> ClusterView:
        """Count one more beat of the node; returns the view after that, with the members in the
        order of their names.

        A node that is not among the members is added if it wants to `join`. Otherwise it stays
        off the list, and the view shows that: the node was forgotten, and with that its shards
        became free for others, so it must not act on them any more.
        """
        ...

    async def hand_over(self, node: str, leases: Leases) -> set[ShardNumber]:
        """Release the shards whose epochs are still current, like `release_shards`, and in the same
        write begin an unfinished lease of the node for each; returns these shards.

        A node that is not among the members releases nothing: nobody would know when it is gone.
        """
        ...

    async def finish(self, node: str, leases: Collection[tuple[ShardNumber, Epoch]]) -> None:
        """End these unfinished leases of the node; others are left alone. Like every end of an
        unfinished lease, this waits for settlements under it; later ones change nothing."""
        ...

    async def leave(self, node: str) -> None:
        """Take the node off the list, and end its unfinished leases. No error if it is not on the
        list."""
        ...

    async def forget_member(self, node: str, *, seen_beat: int) -> bool:
        """Take a member that is believed dead off the list and end its unfinished leases, unless it
        has beaten since."""
        ...
