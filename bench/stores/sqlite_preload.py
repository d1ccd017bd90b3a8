"""Fills a SQLite file through the store's own API, while no server has the file open."""

import random
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec
import uvloop

from bench.harness.child import Child, answer_parent
from bench.harness.create_bodies import PAYLOAD_BYTES
from duetime.domain.callback import HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey, shard_of, timer_uuid_of
from duetime.domain.namespace import DEFAULT_NAMESPACE, Namespace
from duetime.domain.outcome import Completed
from duetime.domain.timer import Claim, Timer
from duetime.domain.transitions import Settlement, settlement_of
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite import SqliteStore

BATCH = 5_000
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
TIMEOUT_SECONDS = 60.0
CALLBACK = HttpCallback(
    url="http://127.0.0.1:9/",
    payload=msgspec.Raw(b'{"n":0,"padding":"'.ljust(PAYLOAD_BYTES - 2, b"x") + b'"}'),
)


class Preload(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    pending: int
    finished: int


class Loaded(msgspec.Struct, frozen=True):
    """Timers stored so far. The last message has the total."""

    count: int


def make_timer(namespace: Namespace, due_at: Instant, created_at: Instant) -> Timer:
    # Random, not time-ordered, as the ids that clients choose.
    key = TimerKey(namespace.name, str(uuid.uuid4()))
    return Timer(
        key=key,
        shard=shard_of(key.id, namespace.num_shards),
        timer_uuid=timer_uuid_of(key),
        delivery_id=str(uuid.uuid4()),
        execute_at=due_at,
        due_at=due_at,
        callback=CALLBACK,
        created_at=created_at,
        updated_at=created_at,
    )


async def create_many(
    store: SqliteStore, namespace: Namespace, count: int, due_at: Callable[[], Instant]
) -> None:
    created_at = Instant(time.time_ns() // 1_000 - 2 * HOUR_US)
    requests = [
        CreateRequest(make_timer(namespace, due_at(), created_at), OnExisting.KEEP)
        for _ in range(count)
    ]
    await store.create(requests)


def completion_of(claim: Claim) -> Settlement:
    sent_at = Instant(claim.due_at + 1_000)
    outcome = Completed(sent_at=sent_at, answered_at=Instant(sent_at + 1_000))
    return settlement_of(claim, outcome, chance=0.0, new_delivery_id=lambda: str(uuid.uuid4()))


async def finish_all(store: SqliteStore, leases: dict[ShardNumber, Epoch], now: Instant) -> None:
    """Claim and settle every timer that is due by `now`."""
    while True:
        batch = await store.claim_due(leases, now=now, until_inclusive=now, limit=BATCH)
        if not batch.claims:
            return
        applied = await store.settle([completion_of(claim) for claim in batch.claims])
        assert all(applied)


async def fill(preload: Preload) -> None:
    store = SqliteStore(Path(preload.path))
    await store.open()
    try:
        namespace = await store.add_namespace(Namespace(DEFAULT_NAMESPACE))
        seen = {state.shard: state.epoch for state in await store.shards()}
        leases = await store.claim_shards(seen, owner="bench-preload")
        assert leases.keys() == seen.keys(), "another process has this file open"
        now = Instant(time.time_ns() // 1_000)
        done = 0
        for start in range(0, preload.finished, BATCH):
            count = min(BATCH, preload.finished - start)
            await create_many(
                store, namespace, count, lambda: Instant(now - random.randrange(1, HOUR_US))
            )
            await finish_all(store, leases, now)
            done += count
            answer_parent(Loaded(done))
        for start in range(0, preload.pending, BATCH):
            count = min(BATCH, preload.pending - start)
            await create_many(
                store, namespace, count, lambda: Instant(now + HOUR_US + random.randrange(DAY_US))
            )
            done += count
            if done < preload.finished + preload.pending:
                answer_parent(Loaded(done))
        await store.release_shards(leases)
    finally:
        await store.close()
    answer_parent(Loaded(preload.finished + preload.pending))


def preload_store(
    preload: Preload,
    tell: Callable[[int], None],
    *,
    module: str = "bench.stores.sqlite_preload",
    patience_seconds: float = TIMEOUT_SECONDS,
) -> None:
    """Called in the parent: fill the file in a child process and report its progress to `tell`."""
    total = preload.pending + preload.finished
    loaded = Loaded(0)
    with Child(module) as child:
        child.tell(preload)
        while loaded.count < total:
            loaded = child.read(Loaded, patience_seconds)
            tell(loaded.count)


def main() -> None:
    preload = msgspec.json.decode(sys.stdin.buffer.readline(), type=Preload)
    uvloop.run(fill(preload))


if __name__ == "__main__":
    main()
