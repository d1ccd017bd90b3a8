"""Every node finds the right keys in memory, and stops accepting revoked ones in time."""

import asyncio
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from duetime.domain.errors import StoreUnavailable, TooManyRequests
from duetime.domain.security.access import Role
from duetime.domain.security.credentials import RateLimit
from duetime.ports.security import Credentials
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.fresh_credentials import UNKNOWN_IDS
from duetime.service.security.key_ring import HeldKey, KeyLimits, KeyRing
from duetime.service.security.key_uses import WRITE_SECONDS, KeyUses
from duetime.service.security.keys import IssuedKey, Keys, NewKey
from duetime.stores.memory.security_table import SecurityTable
from duetime.testing import LoopClock, VirtualClock, on_virtual_time

LIMIT = RateLimit(per_second=2, burst=3)


class WatchedTable(SecurityTable):
    """Counts reads, and fails or waits as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def credentials(self, known_version: int | None) -> Credentials | None:
        self.reads += 1
        read = await super().credentials(known_version)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return read


class Node:
    """A node with its own memory of the keys in a shared table."""

    def __init__(
        self,
        table: WatchedTable,
        clock: VirtualClock | LoopClock,
        limits: KeyLimits | None = None,
    ) -> None:
        self.table = table
        self.clock = clock
        self.watch = CredentialWatch(table, clock)
        self.ring = KeyRing(self.watch, clock, limits)
        self.keys = Keys(table, self.watch, self.ring, clock)

    async def create(self, limit: RateLimit | None = None, most: int | None = None) -> IssuedKey:
        return await self.keys.create(
            NewKey(
                name="n",
                roles=[Role.READ],
                namespaces=["*"],
                rate_limit=limit,
                max_concurrent=most,
            )
        )

    async def held(self, issued: IssuedKey) -> HeldKey:
        held = await self.ring.look_up(issued.text.encode())
        assert held is not None
        return held


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text.upper(),
        lambda text: text.replace("dt_", "dx_"),
        lambda text: text.replace("_", "-"),
        lambda text: text.rpartition("_")[0],
        lambda text: text.rpartition("_")[0] + "_",
        lambda text: "dt__" + text.rpartition("_")[2],
        lambda text: text.rpartition("_")[2],
        lambda text: "dt_" + "0" * 16 + "_" + text.rpartition("_")[2],
        lambda text: text + "x" * 100_000,
        lambda text: "",
        lambda text: "_" * 300,
    ],
)
async def test_only_the_exact_text_is_a_key(change) -> None:  # type: ignore[no-untyped-def]
    node = Node(WatchedTable(), VirtualClock())
    issued = await node.create()
    presented = change(issued.text).encode()
    assert await node.ring.look_up(presented) is None
    assert await node.ring.look_again(presented) is None
    assert node.ring.known(presented) is None
    assert node.ring.known(issued.text.encode()) is not None


async def test_another_keys_secret_does_not_open() -> None:
    node = Node(WatchedTable(), VirtualClock())
    first, second = await node.create(), await node.create()
    mixed = f"dt_{first.key.id}_{second.text.rpartition('_')[2]}"
    assert node.ring.known(mixed.encode()) is None


@on_virtual_time
async def test_a_revoked_key_stops_within_five_seconds_on_another_node() -> None:
    clock, table = LoopClock(), WatchedTable()
    here, there = Node(table, clock), Node(table, clock)
    issued = await here.create()
    await there.watch.refresh()
    there.watch.start()
    assert there.ring.known(issued.text.encode())
    await here.keys.revoke(issued.key.id)
    assert here.ring.known(issued.text.encode()) is None
    await clock.sleep(5)
    assert there.ring.known(issued.text.encode()) is None
    assert await there.ring.look_up(issued.text.encode()) is None
    await there.watch.abandon()


async def test_keys_that_were_not_read_for_long_are_read_before_one_is_accepted() -> None:
    clock, table = VirtualClock(), WatchedTable()
    here, there = Node(table, clock), Node(table, clock)
    issued = await here.create()
    presented = issued.text.encode()
    await there.watch.refresh()
    clock.advance(4.5)
    assert there.ring.known(presented) is None, "the usual path has to read the keys first"
    assert await there.ring.look_up(presented)
    await here.keys.revoke(issued.key.id)
    clock.advance(4.5)
    assert await there.ring.look_up(presented) is None


async def test_if_the_store_is_away_for_long_no_key_is_accepted() -> None:
    clock, table = VirtualClock(), WatchedTable()
    node = Node(table, clock)
    presented = (await node.create()).text.encode()
    table.failure = StoreUnavailable("away")
    clock.advance(3)
    assert await node.ring.look_up(presented), "a short absence is bridged"
    clock.advance(2)
    with pytest.raises(StoreUnavailable):
        await node.ring.look_up(presented)
    assert await node.ring.look_up(b"no key at all") is None
    table.failure = None
    assert await node.ring.look_up(presented)


async def test_requests_share_one_read_of_the_store() -> None:
    clock, table = VirtualClock(), WatchedTable()
    node = Node(table, clock)
    presented = (await node.create()).text.encode()
    clock.advance(10)
    before = table.reads
    table.gate.clear()
    waiting = [asyncio.create_task(node.ring.look_up(presented)) for _ in range(100)]
    await clock.sleep(0)
    waiting[0].cancel()
    await clock.sleep(0)
    table.gate.set()
    found = await asyncio.gather(*waiting[1:])
    assert all(found)
    assert table.reads == before + 1


@on_virtual_time
async def test_a_store_that_hangs_is_not_waited_for_without_end() -> None:
    clock, table = LoopClock(), WatchedTable()
    node = Node(table, clock)
    presented = (await node.create()).text.encode()
    await clock.sleep(10)
    table.gate.clear()
    with pytest.raises(StoreUnavailable, match="keys cannot be read now"):
        await node.ring.look_up(presented)
    table.gate.set()
    assert await node.ring.look_up(presented)


async def test_a_key_that_another_node_made_a_moment_ago_is_found() -> None:
    clock, table = VirtualClock(), WatchedTable()
    here, there = Node(table, clock), Node(table, clock)
    await there.watch.refresh()
    presented = (await here.create()).text.encode()
    assert await there.ring.look_up(presented) is None
    assert await there.ring.look_again(presented)


async def test_a_read_that_began_before_the_key_was_made_is_not_the_last_word() -> None:
    clock, table = VirtualClock(), WatchedTable()
    here, there = Node(table, clock), Node(table, clock)
    table.gate.clear()
    first = asyncio.create_task(there.ring.look_up(b"dt_someone_else"))
    await clock.sleep(0)
    await clock.sleep(0)
    making = asyncio.create_task(here.create())
    await clock.sleep(0)
    table.gate.set()
    presented = (await making).text.encode()
    assert await there.ring.look_again(presented)
    assert await first is None


async def test_unknown_ids_make_few_reads() -> None:
    clock, table = VirtualClock(), WatchedTable()
    node = Node(table, clock)
    await node.watch.refresh()
    before = table.reads
    for number in range(1_000):
        assert await node.ring.look_again(b"dt_%d_x" % number) is None
    assert table.reads - before == UNKNOWN_IDS.burst
    known = await node.create()
    before = table.reads
    clock.advance(1)
    assert await node.ring.look_again(f"dt_{known.key.id}_wrong".encode()) is None
    assert table.reads == before, "a wrong secret of a known id needs no read"


class TestLimits:
    async def test_the_rate_of_a_key(self) -> None:
        clock = VirtualClock()
        node = Node(WatchedTable(), clock)
        held = await node.held(await node.create(LIMIT))
        for _ in range(3):
            held.enter()
        with pytest.raises(TooManyRequests, match="too many requests") as refused:
            held.enter()
        assert refused.value.retry_after_seconds == 1
        clock.advance(0.5)
        held.enter()
        with pytest.raises(TooManyRequests):
            held.enter()
        clock.advance(60)
        for _ in range(3):
            held.enter()
        with pytest.raises(TooManyRequests):
            held.enter()

    async def test_a_slow_rate_says_how_long_to_wait(self) -> None:
        node = Node(WatchedTable(), VirtualClock())
        held = await node.held(await node.create(RateLimit(0.01, 1)))
        held.enter()
        with pytest.raises(TooManyRequests) as refused:
            held.enter()
        assert refused.value.retry_after_seconds == 100

    async def test_requests_under_way(self) -> None:
        node = Node(WatchedTable(), VirtualClock())
        held = await node.held(await node.create(most=2))
        held.enter()
        held.enter()
        with pytest.raises(TooManyRequests, match="its limit of 2 requests under way"):
            held.enter()
        held.leave()
        held.enter()

    async def test_keys_without_limits_have_those_of_the_settings(self) -> None:
        limits = KeyLimits(LIMIT, max_concurrent=2)
        node = Node(WatchedTable(), VirtualClock(), limits)
        held = await node.held(await node.create())
        held.enter()
        held.enter()
        with pytest.raises(TooManyRequests, match="under way"):
            held.enter()
        held.leave()
        held.enter()
        held.leave()
        with pytest.raises(TooManyRequests, match="too many requests"):
            held.enter()
        own = await node.held(await node.create(RateLimit(100, 100), most=50))
        for _ in range(50):
            own.enter()

    async def test_requests_under_way_are_counted_on_when_the_keys_are_read_again(self) -> None:
        clock = VirtualClock()
        node = Node(WatchedTable(), clock)
        issued = await node.create(LIMIT, most=2)
        held = await node.held(issued)
        held.enter()
        held.enter()
        await node.keys.rotate(issued.key.id, 1_000)
        assert await node.held(issued) is held
        with pytest.raises(TooManyRequests):
            held.enter()


@on_virtual_time
async def test_refusals_are_logged_once_a_minute_and_at_the_end() -> None:
    clock, table = LoopClock(), WatchedTable()
    node = Node(table, clock)
    node.watch.start()
    uses = KeyUses(table, node.ring, clock)
    with capture_logs() as logs:
        uses.start()
        slow, single = await node.create(LIMIT), await node.create(most=1)
        for issued, requests in ((slow, LIMIT.burst + 4), (single, 3)):
            held = await node.held(issued)
            for _ in range(requests):
                with suppress(TooManyRequests):
                    held.enter()
        node.ring.wrong_keys.note_refused("192.0.2.1")
        assert logs == []
        await clock.sleep(WRITE_SECONDS + 1)
        assert [each["event"] for each in logs] == ["api.wrong_keys", "api.key_limited"]
        assert logs[-1] == {
            "event": "api.key_limited",
            "log_level": "warning",
            "refused": 6,
            "keys": 2,
            "key": slow.key.id,
            "name": "n",
            "key_refused": 4,
        }
        logs.clear()
        await clock.sleep(2 * WRITE_SECONDS)
        assert logs == []
        node.ring.wrong_keys.note_refused("192.0.2.1")
        await uses.stop_within(1)
    assert [(each["event"], each["refused"]) for each in logs] == [("api.wrong_keys", 1)]
    await node.watch.abandon()


@on_virtual_time
async def test_uses_are_written_together_now_and_then_and_at_the_end() -> None:
    clock, table = LoopClock(), WatchedTable()
    node = Node(table, clock)
    node.watch.start()
    uses = KeyUses(table, node.ring, clock)
    uses.start()
    first, second = await node.create(), await node.create()
    await node.held(first)
    used_at = clock.now()
    assert await table.last_uses() == {}
    await clock.sleep(WRITE_SECONDS + 1)
    assert await table.last_uses() == {first.key.id: used_at}
    await node.held(second)
    await uses.stop_within(1)
    assert set(await table.last_uses()) == {first.key.id, second.key.id}
    await node.watch.abandon()
