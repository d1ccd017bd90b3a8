"""The memory that the bodies of requests under way may take in all."""

from collections.abc import MutableMapping
from typing import Any, Protocol
from weakref import WeakValueDictionary

import structlog

from duetime.domain.limits import BODY_RESERVE_PART, PEER_RESERVE_PART, SMALL_BODY_BYTES

_SHARE = "duetime.body_share"


class Bodies(Protocol):
    """Memory for bodies."""

    @property
    def is_short(self) -> bool:
        """Whether a body was refused, and more than half of the budget has been used since."""
        ...

    def take(self, size: int, held_bytes: int = 0) -> bool:
        """Count bytes of a body that has `held_bytes` already, unless they are too many."""
        ...

    def give_back(self, size: int) -> None: ...


class BodyBudget:
    """Counts the bytes of bodies from their arrival until their request is answered, wherever the
    bytes are meanwhile. Over the limit a body is refused; no body waits for another. A part of the
    budget is reserved for small bodies, so that large ones cannot keep plain requests out. No peer
    gets all of that part, so that the bodies of one cannot keep the others out.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._large_limit_bytes = limit_bytes - limit_bytes // BODY_RESERVE_PART
        self._peer_limit_bytes = limit_bytes - limit_bytes // PEER_RESERVE_PART
        self._peers: WeakValueDictionary[str, PeerBodies] = WeakValueDictionary()
        self.is_short = False
        self.used_bytes = 0

    def of_peer(self, name: str) -> "PeerBodies":
        """The same object for all connections of the peer."""
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = PeerBodies(self, self._peer_limit_bytes)
        return peer

    def take(self, size: int, held_bytes: int = 0) -> bool:
        used_bytes = self.used_bytes + size
        is_small = held_bytes + size <= SMALL_BODY_BYTES
        if used_bytes > (self._limit_bytes if is_small else self._large_limit_bytes):
            return self.refuse()
        self.used_bytes = used_bytes
        return True

    def give_back(self, size: int) -> None:
        self.used_bytes -= size
        if self.is_short and self.used_bytes <= self._limit_bytes // 2:
            self.is_short = False

    def refuse(self) -> bool:
        """Log one line per shortage, however many bodies it hits. Returns False."""
        if not self.is_short:
            self.is_short = True
            structlog.get_logger().warning(
                "api.bodies_refused", used_bytes=self.used_bytes, limit_bytes=self._limit_bytes
            )
        return False


class PeerBodies:
    """The part of the budget that the bodies of one peer take."""

    __slots__ = ("__weakref__", "_budget", "_limit_bytes", "used_bytes")

    def __init__(self, budget: BodyBudget, limit_bytes: int) -> None:
        self._budget = budget
        self._limit_bytes = limit_bytes
        self.used_bytes = 0

    @property
    def is_short(self) -> bool:
        return self._budget.is_short

    def take(self, size: int, held_bytes: int = 0) -> bool:
        if self.used_bytes + size > self._limit_bytes:
            return self._budget.refuse()
        if not self._budget.take(size, held_bytes):
            return False
        self.used_bytes += size
        return True

    def give_back(self, size: int) -> None:
        self.used_bytes -= size
        self._budget.give_back(size)


class BodyShare:
    """One request's part of the budget."""

    __slots__ = ("_budget", "_held_bytes", "returned_bytes")

    def __init__(self, budget: Bodies) -> None:
        self._budget = budget
        self._held_bytes = 0
        self.returned_bytes = 0

    @property
    def arrived_bytes(self) -> int:
        return self._held_bytes + self.returned_bytes

    def take(self, size: int) -> bool:
        if not self._budget.take(size, self._held_bytes):
            return False
        self._held_bytes += size
        return True

    def give_back(self, size: int) -> None:
        """Bytes that are no longer in memory although the request goes on."""
        size = min(size, self._held_bytes)
        self._held_bytes -= size
        self.returned_bytes += size
        self._budget.give_back(size)

    def close(self) -> None:
        """The request is over. May be called again."""
        self.give_back(self._held_bytes)

    def put_into(self, scope: MutableMapping[str, Any]) -> None:
        scope[_SHARE] = self


def share_of(scope: MutableMapping[str, Any]) -> BodyShare:
    """The share of a request. A server that does not count bodies has put none there."""
    share: BodyShare | None = scope.get(_SHARE)
    return BodyShare(BodyBudget(0)) if share is None else share
