"""The shards on their way to another node, and how long that may take."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from duetime.domain.keys import ShardNumber
from duetime.ports.clock import Clock

PATIENCE_SECONDS = 2.0
"""Time that a shard may take to move to another node. Its timers are not claimed meanwhile, so slow
endpoints would make the timers of others late. A shard with longer attempts under way stays where
it is for now."""

TRY_AGAIN_SECONDS = 10.0
LONGEST_TRY_AGAIN_SECONDS = 60.0
"""Time after which a shard that stayed is asked to move again. It doubles each time the shard
stays: a shard that always has long attempts under way must not be leaving all the time."""


class _Stay(NamedTuple):
    """The shard may be asked to move at `until_seconds`. If it stays again, the next wait is
    `seconds`."""

    seconds: float
    until_seconds: float


_NEVER_STAYED = _Stay(TRY_AGAIN_SECONDS, 0.0)


class LeavingShards:
    """The shards that this node is leaving, and those that it tried to leave and that stayed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[ShardNumber, float] = {}
        self._stayed: dict[ShardNumber, _Stay] = {}

    def __len__(self) -> int:
        return len(self._since)

    def __iter__(self) -> Iterator[ShardNumber]:
        return iter(self._since)

    def may_begin(self, shard: ShardNumber) -> bool:
        """Whether the shard is not leaving yet, and has stayed for as long as it should."""
        until_seconds = self._stayed.get(shard, _NEVER_STAYED).until_seconds
        return shard not in self._since and self._clock.monotonic() >= until_seconds

    def begin(self, shards: Iterable[ShardNumber]) -> None:
        self._since |= dict.fromkeys(shards, self._clock.monotonic())

    def end(self, shards: Iterable[ShardNumber]) -> None:
        """Forget shards that are gone or that stay for good."""
        for shard in shards:
            self._since.pop(shard, None)
            self._stayed.pop(shard, None)

    def give_up_on_slow_ones(self) -> list[ShardNumber]:
        """The shards that take too long; they stay, and are asked again later."""
        now_seconds = self._clock.monotonic()
        slow = [
            shard
            for shard, since_seconds in self._since.items()
            if now_seconds - since_seconds > PATIENCE_SECONDS
        ]
        for shard in slow:
            before = self._stayed.get(shard, _NEVER_STAYED)
            self._stayed[shard] = _Stay(
                min(2 * before.seconds, LONGEST_TRY_AGAIN_SECONDS),
                now_seconds + before.seconds,
            )
            del self._since[shard]
        return slow
