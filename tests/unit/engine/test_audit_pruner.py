"""Entries of the audit log are forgotten after their retention, in small bites."""

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.security.audit import AuditEntry
from duetime.engine.clocks.clock_trust import BELIEVED_AFTER_SECONDS
from duetime.engine.pruning.audit_pruner import (
    BATCH_SIZE,
    PAUSE_BETWEEN_BATCHES_SECONDS,
    PAUSE_BETWEEN_ROUNDS_SECONDS,
    AuditPruner,
)
from duetime.ports.security import AuditQuery
from duetime.stores.memory import MemoryStore
from duetime.stores.memory.security_table import SecurityTable
from duetime.testing import LoopClock, on_virtual_time

HOUR_SECONDS = 3_600.0
RETENTION_SECONDS = 3 * HOUR_SECONDS


class WatchedTable(SecurityTable):
    """Notes when and how many entries were forgotten, and fails when the test says so."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__()
        self.bites: list[tuple[float, int]] = []
        self.is_away = False
        self._clock = clock

    async def forget_audit(self, *, before_exclusive: Instant, limit: int) -> int:
        if self.is_away:
            raise StoreUnavailable("away")
        count = await super().forget_audit(before_exclusive=before_exclusive, limit=limit)
        if count:
            self.bites.append((self._clock.monotonic(), count))
        return count


class Bench:
    def __init__(self) -> None:
        self.clock = LoopClock()
        self.store = MemoryStore()
        self.table = WatchedTable(self.clock)
        self.pruner = AuditPruner(self.store, self.table, self.clock, RETENTION_SECONDS)

    async def start(self) -> None:
        await self.store.mark_clock_believed(self.clock.now())
        self.pruner.start()

    async def append(self, count: int) -> None:
        now = self.clock.now()
        await self.table.append_audit(
            [
                AuditEntry(id=f"{now}-{n:06}", at=now, actor="a", action="x", result="ok")
                for n in range(count)
            ]
        )

    async def left(self) -> int:
        return len(await self.table.audit_entries(AuditQuery(limit=100_000)))


@on_virtual_time
async def test_entries_go_in_bites_when_their_retention_is_over() -> None:
    bench = Bench()
    await bench.start()
    await bench.append(2 * BATCH_SIZE + 10)
    await bench.clock.sleep(HOUR_SECONDS)
    await bench.append(7)
    await bench.clock.sleep(RETENTION_SECONDS - HOUR_SECONDS - 1)
    assert bench.table.bites == []
    await bench.clock.sleep(PAUSE_BETWEEN_ROUNDS_SECONDS + 10)
    assert [count for _, count in bench.table.bites] == [BATCH_SIZE, BATCH_SIZE, 10]
    first, second, _ = (at for at, _ in bench.table.bites)
    assert second - first == pytest.approx(PAUSE_BETWEEN_BATCHES_SECONDS)
    assert await bench.left() == 7


@on_virtual_time
async def test_it_carries_on_when_the_store_comes_back() -> None:
    bench = Bench()
    await bench.start()
    await bench.append(1)
    bench.table.is_away = True
    await bench.clock.sleep(RETENTION_SECONDS + 60)
    assert await bench.left() == 1
    bench.table.is_away = False
    await bench.clock.sleep(PAUSE_BETWEEN_ROUNDS_SECONDS)
    assert await bench.left() == 0


@on_virtual_time
async def test_a_clock_that_jumps_ahead_does_not_erase_the_log() -> None:
    bench = Bench()
    await bench.start()
    await bench.append(10)
    await bench.clock.sleep(PAUSE_BETWEEN_ROUNDS_SECONDS)
    bench.clock.jump_wall(2 * RETENTION_SECONDS)
    await bench.clock.sleep(BELIEVED_AFTER_SECONDS / 2)
    assert await bench.left() == 10
    bench.clock.jump_wall(-2 * RETENTION_SECONDS)
    await bench.clock.sleep(HOUR_SECONDS)
    assert await bench.left() == 10
