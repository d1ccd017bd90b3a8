"""Entries are durable before the answer, in few writes, and a store in trouble delays nobody."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from duetime.domain.errors import StoreUnavailable
from duetime.domain.security.audit import AuditEntry
from duetime.ports.security import AuditQuery
from duetime.service.security import audit_log
from duetime.service.security.audit_log import (
    MAX_BACKLOG,
    SUMMARY_SECONDS,
    WAIT_SECONDS,
    AuditLog,
    Sampling,
)
from duetime.service.security.refusals import REFUSED_ENTRIES
from duetime.stores.memory.security_table import SecurityTable
from duetime.testing import LoopClock, on_virtual_time
from duetime.testing.virtual_clock import START_AT


def entry(id: int, **fields: Any) -> AuditEntry:
    made = AuditEntry(
        id=f"{id:08}-0000-7000-8000-000000000000",
        at=START_AT,
        actor="a",
        action="timer.cancel",
        result="ok",
        target=str(id),
    )
    return replace(made, **fields)


class TroubledTable(SecurityTable):
    """Takes some time for each write; fails, hangs or stumbles when the test says so."""

    def __init__(self, clock: LoopClock, write_seconds: float) -> None:
        super().__init__()
        self._write_seconds = write_seconds
        self.writes: list[int] = []
        self.failure: Exception | None = None
        self.hangs = asyncio.Event()
        self.hangs.set()
        self.stumbles_over = ""
        self._clock = clock

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self.hangs.wait()
        await self._clock.sleep(self._write_seconds)
        if self.failure is not None:
            raise self.failure
        if any(each.target == self.stumbles_over for each in entries):
            raise RuntimeError("a bug")
        self.writes.append(len(entries))
        await super().append_audit(entries)

    async def targets(self) -> list[str]:
        found = await self.audit_entries(AuditQuery(limit=100_000))
        return sorted(each.target for each in found if each.target is not None)


class Bench:
    def __init__(self, write_seconds: float = 0.1) -> None:
        self.clock = LoopClock()
        self.table = TroubledTable(self.clock, write_seconds)
        self.log = AuditLog(self.table, self.clock)
        self.refused = 0

    async def refuse(self, count: int, **fields: Any) -> None:
        for _ in range(count):
            self.refused += 1
            refused = entry(1_000_000 + self.refused, result="FORBIDDEN", **fields)
            await self.log.append_refused([refused])

    async def results(self, **conditions: Any) -> Counter[str]:
        """The number of entries with each result."""
        found = await self.table.audit_entries(AuditQuery(limit=100_000, **conditions))
        return Counter(each.result for each in found)

    async def append(self, *ids: int) -> float:
        """The seconds that it took."""
        start = self.clock.monotonic()
        await self.log.append([entry(id) for id in ids])
        return self.clock.monotonic() - start


@on_virtual_time
async def test_an_entry_is_durable_when_its_append_returns() -> None:
    bench = Bench()
    assert await bench.append(1) == pytest.approx(0.1)
    assert await bench.table.targets() == ["1"]


@on_virtual_time
async def test_entries_that_wait_together_are_written_together() -> None:
    bench = Bench()
    async with asyncio.TaskGroup() as tasks:
        for id in range(300):
            tasks.create_task(bench.append(id))
    assert bench.table.writes == [300]
    assert bench.clock.monotonic() == pytest.approx(0.1)


@on_virtual_time
async def test_an_absent_store_delays_one_request_and_gets_all_entries_later() -> None:
    bench = Bench()
    bench.table.failure = StoreUnavailable("away")
    with capture_logs() as logs:
        assert await bench.append(1) == pytest.approx(0.1)
        assert [await bench.append(id) for id in range(2, 50)] == [0] * 48
        await bench.clock.sleep(60)
        bench.table.failure = None
        await bench.clock.sleep(10)
    assert len(await bench.table.targets()) == 49
    unwritten = [line for line in logs if line["event"] == "audit.entry_unwritten"]
    assert [line["target"] for line in unwritten] == [str(id) for id in range(1, 50)]
    assert unwritten[0]["action"] == "timer.cancel"
    events = [line["event"] for line in logs if line["event"] != "audit.entry_unwritten"]
    assert events == ["audit.store_late", "audit.caught_up"]
    assert await bench.append(50) == pytest.approx(0.1), "it waits again"


@on_virtual_time
async def test_a_hanging_store_delays_a_request_for_a_bounded_time_only() -> None:
    bench = Bench()
    bench.table.hangs.clear()
    async with asyncio.TaskGroup() as tasks:
        took = [tasks.create_task(bench.append(id)) for id in range(5)]
    assert [task.result() for task in took] == [pytest.approx(WAIT_SECONDS)] * 5
    assert await bench.append(5) == 0
    bench.table.hangs.set()
    await bench.clock.sleep(1)
    assert len(await bench.table.targets()) == 6


@on_virtual_time
async def test_the_backlog_is_bounded_and_what_it_drops_is_logged_and_counted() -> None:
    bench = Bench()
    bench.table.failure = StoreUnavailable("away")
    with capture_logs() as logs:
        for id in range(MAX_BACKLOG + 3):
            await bench.append(id)
    assert bench.log.dropped == 3
    assert len([line for line in logs if line["event"] == "audit.entry_unwritten"]) == (
        MAX_BACKLOG + 3
    )
    bench.table.failure = None
    await bench.clock.sleep(30)
    assert len(await bench.table.targets()) == MAX_BACKLOG


@on_virtual_time
async def test_an_entry_that_cannot_be_written_keeps_no_other_out() -> None:
    bench = Bench()
    bench.table.stumbles_over = "2"
    with capture_logs() as logs:
        await bench.append(1, 2, 3)
    assert await bench.table.targets() == ["1", "3"]
    (line,) = [line for line in logs if line["event"] == "audit.entry_refused"]
    assert (line["target"], line["log_level"]) == ("2", "error")


@on_virtual_time
async def test_a_stop_writes_what_is_left() -> None:
    bench = Bench()
    bench.table.failure = StoreUnavailable("away")
    await bench.append(1)
    bench.table.failure = None
    await bench.log.close()
    assert await bench.table.targets() == ["1"]


@on_virtual_time
async def test_a_stop_does_not_wait_for_a_hanging_store() -> None:
    bench = Bench()
    bench.table.hangs.clear()
    await bench.append(1)
    start = bench.clock.monotonic()
    with capture_logs() as logs:
        await bench.log.close()
    assert bench.clock.monotonic() - start == pytest.approx(audit_log.CLOSE_SECONDS)
    assert logs == [{"event": "audit.backlog_lost", "entries": 1, "log_level": "error"}]


@on_virtual_time
async def test_refused_requests_of_a_key_leave_some_entries_and_their_number() -> None:
    bench = Bench(write_seconds=0)
    await bench.append(*range(200))
    await bench.refuse(1_000, actor="noisy", key_id="k1")
    await bench.refuse(50, actor="quiet", key_id="k2")
    await bench.append(*range(200, 400))
    burst = REFUSED_ENTRIES.burst
    assert await bench.results(actor="noisy") == {"FORBIDDEN": burst}
    assert await bench.results(actor="quiet") == {"FORBIDDEN": 50}
    assert await bench.results(actor="a") == {"ok": 400}, "what was done is never left out"
    with capture_logs() as logs:
        await bench.clock.sleep(SUMMARY_SECONDS + 1)
    (summary,) = await bench.table.audit_entries(AuditQuery(action="request.refuse"))
    assert (summary.actor, summary.key_id, summary.result) == ("noisy", "k1", "LEFT_OUT")
    assert summary.details == f"requests={1_000 - burst}"
    assert (summary.namespace, summary.target) == (None, None)
    (line,) = [line for line in logs if line["event"] == "audit.refusals_left_out"]
    assert line["details"] == summary.details


@on_virtual_time
async def test_refused_requests_that_go_on_leave_entries_at_a_limited_rate() -> None:
    bench = Bench(write_seconds=0)
    for _ in range(600):
        await bench.refuse(50, key_id="k1")
        await bench.clock.sleep(0.1)
    await bench.clock.sleep(SUMMARY_SECONDS + 1)
    results = await bench.results()
    most = REFUSED_ENTRIES.burst + 60 * REFUSED_ENTRIES.per_second
    assert most - 20 <= results["FORBIDDEN"] <= most
    assert results["LEFT_OUT"] <= 60 / SUMMARY_SECONDS + 1
    summaries = await bench.table.audit_entries(AuditQuery(action="request.refuse"))
    left_out = sum(int(str(each.details).removeprefix("requests=")) for each in summaries)
    assert left_out + results["FORBIDDEN"] == 600 * 50


@on_virtual_time
async def test_without_a_key_refused_requests_are_limited_by_their_address() -> None:
    bench = Bench(write_seconds=0)
    addresses = ("192.0.2.1", "192.0.2.2", "2001:db8::1")
    for address in (*addresses, "2001:db8::2"):
        await bench.refuse(500, actor="anonymous", address=address)
    results = await bench.results()
    assert results["FORBIDDEN"] == len(addresses) * REFUSED_ENTRIES.burst
    await bench.log.close()


@on_virtual_time
async def test_refused_requests_take_no_room_from_a_store_that_is_short_of_it() -> None:
    bench = Bench(write_seconds=0)
    bench.table.is_short = True
    with capture_logs() as logs:
        await bench.refuse(500, key_id="k1")
        await bench.append(1)
        await bench.log.close()
    assert await bench.results() == {"ok": 1}
    events = Counter(line["event"] for line in logs)
    assert events == {
        "audit.entry_unwritten": REFUSED_ENTRIES.burst,
        "audit.refusals_left_out": 1,
    }


@on_virtual_time
async def test_a_stop_writes_the_number_of_refused_requests() -> None:
    bench = Bench(write_seconds=0)
    await bench.refuse(101, key_id="k1")
    await bench.log.close()
    assert await bench.results() == {"FORBIDDEN": 100, "LEFT_OUT": 1}


def test_a_sample_has_about_its_share() -> None:
    sampling = Sampling(0.1)
    picked = sum(sampling.picks() for _ in range(10_000))
    assert 800 <= picked <= 1_200


def test_passing_over_requests_does_not_change_the_share() -> None:
    sampling = Sampling(0.1)
    picked = sum(not sampling.passes() and sampling.picks() for _ in range(10_000))
    assert 800 <= picked <= 1_200


def test_all_are_picked_with_a_share_of_one() -> None:
    sampling = Sampling(1)
    assert not any(sampling.passes() for _ in range(10))
    assert all(sampling.picks() for _ in range(10))
