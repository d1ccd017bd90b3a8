"""A namespace's limit, shared by the nodes."""

import pytest

from duetime.engine.lanes.quota import SWEEP_AFTER, Quotas
from tests.unit.engine.engine_bench import KnownNamespaces


class Waiting:
    """Waits for room, and uses it."""

    def __init__(self, quotas: Quotas, length: int) -> None:
        self._quota = quotas.of("small")
        self.is_in_line = True
        self.left = length
        self.started = 0

    def __len__(self) -> int:
        return self.left

    def resume(self, now_seconds: float) -> None:
        self._quota.in_flight += 1
        self.left -= 1
        self.started += 1
        if self.left:
            self._quota.block(self)


@pytest.mark.parametrize(
    ("limit", "members", "share"), [(10, 1, 10), (10, 3, 3), (2, 5, 1), (1, 1, 1), (10, 0, 10)]
)
def test_each_node_takes_its_share_and_at_least_one(limit: int, members: int, share: int) -> None:
    namespaces = KnownNamespaces()
    namespaces.limit("small", limit)
    quota = Quotas(namespaces, lambda: members).of("small")
    started = 0
    while quota.may_start():
        quota.in_flight += 1
        started += 1
    assert started == share


def test_an_unknown_namespace_and_one_without_a_limit_may_always_start() -> None:
    namespaces = KnownNamespaces()
    namespaces.limit("free", None)
    quotas = Quotas(namespaces)
    for name in ("free", "unknown"):
        quotas.of(name).in_flight = 1_000_000
        assert quotas.of(name).may_start()
        assert not quotas.of(name).is_limited


def test_waiting_queues_get_room_in_turn() -> None:
    namespaces = KnownNamespaces()
    namespaces.limit("small", 5)
    quotas = Quotas(namespaces)
    waiting = [Waiting(quotas, length) for length in (10, 1, 10)]
    for each in waiting:
        quotas.of("small").block(each)
    quotas.resume(0.0)
    assert [each.started for each in waiting] == [2, 1, 2]
    assert not quotas.of("small").may_start()


def test_an_empty_queue_blocks_no_other() -> None:
    namespaces = KnownNamespaces()
    namespaces.limit("small", 1)
    quotas = Quotas(namespaces)
    quota = quotas.of("small")
    gone = Waiting(quotas, 0)
    quota.block(gone)
    assert quota.may_start()
    assert not gone.is_in_line


def test_quotas_that_are_not_used_are_forgotten() -> None:
    quotas = Quotas(KnownNamespaces())
    used = quotas.of("used")
    used.in_flight = 1
    unused = quotas.of("unused")
    for number in range(SWEEP_AFTER):
        quotas.of(f"tenant-{number}")
    assert quotas.of("used") is used
    assert quotas.of("unused") is not unused
