"""The PostgreSQL store alone: its calls in the batches of the bare loop, without HTTP or engine.

No server may run meanwhile, because the calls need the shards.
"""

import asyncio
import sys
import time

import msgspec
import uvloop

from bench.harness.child import Child, answer_parent
from bench.harness.percentiles import Percentiles, percentiles_of
from bench.limits.database import INSERT_BATCH, MOVE_BATCH, Rows, parts
from bench.stores.sqlite_preload import completion_of, make_timer
from duetime.domain.instants import Instant
from duetime.domain.namespace import DEFAULT_NAMESPACE, Namespace
from duetime.domain.timer import Claim
from duetime.ports.store import CreateRequest, Leases, OnExisting
from duetime.stores.postgres import PostgresStore
from tests.postgres.options import store_options

TIMEOUT_SECONDS = 120.0


class StoreCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Rates count timers; percentiles are latencies of calls, one batch each."""

    count: int
    creates_per_second: float
    moves_per_second: float
    create: Percentiles
    claim: Percentiles
    settle: Percentiles


class Stopwatch:
    def __init__(self) -> None:
        self.durations_ms: list[float] = []

    def note_since(self, started: float) -> None:
        self.durations_ms.append((time.perf_counter() - started) * 1_000)


async def measure(rows: Rows) -> StoreCalls:
    store = PostgresStore(store_options(rows.url, rows.schema))
    await store.open()
    try:
        namespace = await store.add_namespace(Namespace(DEFAULT_NAMESPACE))
        seen = {state.shard: state.epoch for state in await store.shards()}
        leases = await store.claim_shards(seen, owner="bench")
        assert leases.keys() == seen.keys(), "a server is running"
        creating = Stopwatch()
        started = time.perf_counter()
        await create_all(store, namespace, rows.count, creating)
        created = time.perf_counter()
        claiming, settling = Stopwatch(), Stopwatch()
        await move_all(store, leases, claiming, settling)
        moved = time.perf_counter()
        await store.release_shards(leases)
    finally:
        await store.close()
    return StoreCalls(
        count=rows.count,
        creates_per_second=round(rows.count / (created - started), 1),
        moves_per_second=round(rows.count / (moved - created), 1),
        create=percentiles_of(creating.durations_ms),
        claim=percentiles_of(claiming.durations_ms),
        settle=percentiles_of(settling.durations_ms),
    )


async def create_all(
    store: PostgresStore, namespace: Namespace, count: int, watch: Stopwatch
) -> None:
    now = Instant(time.time_ns() // 1_000)
    requests = [
        CreateRequest(make_timer(namespace, now, now), OnExisting.KEEP, id_is_new=True)
        for _ in range(count)
    ]
    for part in parts(count, INSERT_BATCH):
        started = time.perf_counter()
        await store.create(requests[part])
        watch.note_since(started)


async def move_all(
    store: PostgresStore, leases: Leases, claiming: Stopwatch, settling: Stopwatch
) -> None:
    """Claim the next batch while the previous one is settled."""

    async def settle(claims: list[Claim]) -> None:
        settlements = [completion_of(claim) for claim in claims]
        started = time.perf_counter()
        applied = await store.settle(settlements)
        settling.note_since(started)
        assert all(applied)

    under_way: asyncio.Task[None] | None = None
    while True:
        now = Instant(time.time_ns() // 1_000)
        started = time.perf_counter()
        batch = await store.claim_due(leases, now=now, until_inclusive=now, limit=MOVE_BATCH)
        claiming.note_since(started)
        if under_way is not None:
            await under_way
        if not batch.claims:
            return
        under_way = asyncio.create_task(settle(list(batch.claims)))


def measure_store_calls(rows: Rows) -> StoreCalls:
    """Called in the parent: make the calls in a child process."""
    with Child("bench.limits.store_calls") as child:
        return child.ask(rows, StoreCalls, TIMEOUT_SECONDS)


def main() -> None:
    rows = msgspec.json.decode(sys.stdin.buffer.readline(), type=Rows)
    answer_parent(uvloop.run(measure(rows)))


if __name__ == "__main__":
    main()
