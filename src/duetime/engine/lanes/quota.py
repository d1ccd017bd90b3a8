"""Limits the attempts of one namespace under way, over all endpoints together."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from duetime.ports.namespaces.view import NamespaceView

SWEEP_AFTER = 1_000
"""New quotas after which unused ones are forgotten."""


class Blocked(Protocol):
    """Claims of the namespace that wait for one of its attempts to end."""

    is_in_line: bool

    def __len__(self) -> int: ...

    def resume(self, now_seconds: float) -> None:
        """Use the room for one more attempt of the namespace."""
        ...


class Quota:
    """The attempts of one namespace under way on this node, and the claims that wait for them.

    The limit is looked up each time, because an operator may change it at any time. Waiting
    claims get room in turn: a namespace that calls many endpoints serves them all alike.
    """

    def __init__(self, namespace: str, limit_of: Callable[[str], int | None]) -> None:
        self._namespace = namespace
        self._limit_of = limit_of
        self._blocked: deque[Blocked] = deque()
        self.in_flight = 0
        self.waiting = 0

    @property
    def is_limited(self) -> bool:
        return self._limit_of(self._namespace) is not None

    @property
    def limit(self) -> int | None:
        return self._limit_of(self._namespace)

    @property
    def is_full(self) -> bool:
        limit = self._limit_of(self._namespace)
        return limit is not None and self.in_flight >= limit

    @property
    def is_waited_for(self) -> bool:
        return bool(self._blocked)

    @property
    def is_unused(self) -> bool:
        return not (self.in_flight or self.waiting)

    def may_start(self) -> bool:
        """There is room for one more attempt, and no other claim waits for it."""
        while self._blocked:
            if self._blocked[0]:
                return False
            # Its claims were handed back meanwhile.
            self._blocked.popleft().is_in_line = False
        limit = self._limit_of(self._namespace)
        return limit is None or self.in_flight < limit

    def block(self, waiting: Blocked) -> None:
        self._blocked.append(waiting)

    def resume(self, now_seconds: float) -> None:
        """Let waiting claims use the free room, in turn."""
        while self._blocked:
            limit = self._limit_of(self._namespace)
            if limit is not None and self.in_flight >= limit:
                return
            self._blocked.popleft().resume(now_seconds)


class Quotas:
    """The quotas of all namespaces with claims under way or waiting here.

    A namespace's limit applies to all nodes together, so each node takes its share of it, and at
    least one attempt.
    """

    def __init__(self, namespaces: NamespaceView, members: Callable[[], int] = lambda: 1) -> None:
        self._namespaces = namespaces
        self._members = members
        self._by_namespace: dict[str, Quota] = {}
        self._sweep_at = SWEEP_AFTER

    def of(self, namespace: str) -> Quota:
        quota = self._by_namespace.get(namespace)
        if quota is None:
            if len(self._by_namespace) >= self._sweep_at:
                self._sweep()
            quota = self._by_namespace[namespace] = Quota(namespace, self._limit_of)
        return quota

    def resume(self, now_seconds: float) -> None:
        """Use room that raised limits and departed members leave."""
        for quota in self._by_namespace.values():
            quota.resume(now_seconds)

    def _limit_of(self, name: str) -> int | None:
        namespace = self._namespaces.known(name)
        if namespace is None or namespace.options.concurrency is None:
            return None
        return max(1, namespace.options.concurrency // max(1, self._members()))

    def _sweep(self) -> None:
        self._by_namespace = {
            name: quota for name, quota in self._by_namespace.items() if not quota.is_unused
        }
        self._sweep_at = 2 * len(self._by_namespace) + SWEEP_AFTER
