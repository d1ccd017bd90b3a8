"""Every call ends, whatever happens to the database, and calls after the outage work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
from msgspec import Raw

from duetime.domain.callback import HttpCallback
from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.membership import NodeFacts
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.cluster import CLAIM_SHARDS, epochs_by_number
from duetime.stores.postgres.connections import Connection
from duetime.testing.store_contract.steps import at, claim, completion, create, own_shards
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import held
from tests.polling import poll
from tests.postgres.fixtures import MakePostgres
from tests.postgres.options import store_options
from tests.postgres.relay import Relay

PATIENCE_SECONDS = 30

_END_WAITING_SESSIONS = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE $1 = ANY (pg_blocking_pids(pid))
"""

_HAS_TAKEN_LONG = """
    SELECT EXISTS (
        SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))
        AND clock_timestamp() - query_start > make_interval(secs => $2))
"""

LEASES = {ShardNumber(0): Epoch(0)}

Call = Callable[[PostgresStore], Awaitable[object]]
CALLS: dict[str, Call] = {
    "ping": lambda store: store.ping(),
    "create": lambda store: create(store, make_timer("new")),
    "get": lambda store: store.get(TimerKey("default", "nobody")),
    "cancel": lambda store: store.cancel_if_pending(TimerKey("default", "nobody"), at(0)),
    "shards": lambda store: store.shards(),
    "heartbeat": lambda store: store.heartbeat("node-1", NodeFacts(), join=True),
    "prune": lambda store: store.prune(finished_before=at(0), limit=1),
    "counts": lambda store: store.counts(),
    "first claim": lambda store: claim(store, LEASES),
    "search for stragglers": lambda store: store.first_due(LEASES, before_exclusive=at(0)),
}


async def expect_unavailable(store: PostgresStore) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        answers = await asyncio.gather(
            *(call(store) for call in CALLS.values()), return_exceptions=True
        )
    for name, answer in zip(CALLS, answers, strict=True):
        assert isinstance(answer, StoreUnavailable), name
        assert "\n" not in answer.message, name


async def expect_available(store: PostgresStore) -> None:
    """A broken connection may cost a call; after that all calls work."""
    for call in CALLS.values():
        for _ in range(10):
            try:
                await call(store)
                break
            except StoreUnavailable:
                continue
        await call(store)


async def test_a_settlement_whose_connection_breaks_can_be_repeated(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    leases = await own_shards(store)
    await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(5)))
    claims = await claim(store, leases)
    settlements = [completion(claimed) for claimed in claims]
    await store.settle(settlements[:1])
    taking = (CLAIM_SHARDS, list(leases), epochs_by_number(leases), "node-2")
    async with held(options, *taking) as takeover:
        settling = asyncio.create_task(store.settle(settlements[1:]))
        await takeover.is_waited_for(database)
        ended = await database.fetchval(_END_WAITING_SESSIONS, takeover.pid)
        assert ended == 1
        with pytest.raises(StoreUnavailable):
            await settling
        await takeover.roll_back()
    assert (await store.counts())[TimerStatus.COMPLETED] == 1
    assert await store.settle(settlements) == [False, True, True, True, True]


async def test_a_restart_costs_at_most_a_call(make_postgres: MakePostgres) -> None:
    with make_postgres() as server:
        store = PostgresStore(store_options(server.url))
        await store.open()
        await store.add_namespace(Namespace("default", 16))
        await expect_available(store)

        server.stop("immediate")
        await expect_unavailable(store)
        server.start()

        await expect_available(store)
        await store.close()


@pytest.fixture
async def far_store(options: PostgresOptions) -> AsyncIterator[tuple[PostgresStore, Relay]]:
    """A store behind a network that can break."""
    with Relay(options.url) as relay:
        store = PostgresStore(
            replace(
                options, url=relay.url, statement_timeout_seconds=1.0, connect_timeout_seconds=2.0
            )
        )
        await store.open()
        await store.add_namespace(Namespace("default", 16))
        await expect_available(store)
        yield store, relay
        relay.heal()
        await store.close()


async def test_calls_fail_while_the_network_is_cut(far_store: tuple[PostgresStore, Relay]) -> None:
    store, relay = far_store
    relay.cut()
    await expect_unavailable(store)
    relay.heal()
    await expect_available(store)


async def test_calls_fail_while_the_network_swallows_everything(
    far_store: tuple[PostgresStore, Relay],
) -> None:
    store, relay = far_store
    relay.freeze()
    await expect_unavailable(store)
    relay.heal()
    await expect_available(store)


async def test_a_long_claim_ends_when_its_connection_dies(
    far_store: tuple[PostgresStore, Relay], options: PostgresOptions, database: Connection
) -> None:
    store, relay = far_store
    leases = await own_shards(store)
    await create(store, make_timer())
    async with held(options, "SELECT FROM pending_timers FOR UPDATE") as other:
        claiming = asyncio.create_task(claim(store, leases))
        await other.is_waited_for(database)
        relay.freeze()
        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(StoreUnavailable):
                await claiming
    relay.heal()
    await expect_available(store)


async def test_a_claim_may_take_longer_than_other_statements(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    """It may have to read past many dead rows."""
    hurried = PostgresStore(replace(options, statement_timeout_seconds=0.1))
    await hurried.open()
    leases = await own_shards(store)
    await create(store, make_timer())
    async with held(options, "SELECT FROM pending_timers FOR UPDATE") as other:
        claiming = asyncio.create_task(claim(hurried, leases))
        await poll(lambda: database.fetchval(_HAS_TAKEN_LONG, other.pid, 1.5), bool)
        await other.commit()
        (claimed,) = await claiming
    assert claimed.id == make_timer().key.id
    await hurried.close()


async def test_closing_ends_when_the_network_swallows_everything(
    far_store: tuple[PostgresStore, Relay],
) -> None:
    store, relay = far_store
    relay.freeze()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await store.close()
        await store.close()


async def test_a_caller_may_wait_for_less_time_than_a_statement(options: PostgresOptions) -> None:
    """A health check does."""
    with Relay(options.url) as relay:
        store = PostgresStore(replace(options, url=relay.url, connect_timeout_seconds=300.0))
        await store.open()
        await store.ping()
        relay.freeze()
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await store.ping()
        relay.heal()
        await store.ping()
        await store.close()


async def test_calls_give_up_sooner_while_nobody_is_let_in(options: PostgresOptions) -> None:
    """They have the full time again later, because a server may be slow to let anyone in."""
    connect_seconds = 2.0
    with Relay(options.url) as relay:
        store = PostgresStore(
            replace(options, url=relay.url, connect_timeout_seconds=connect_seconds)
        )
        await store.open()
        await store.add_namespace(Namespace("default", 16))
        relay.freeze()
        assert await seconds_until_unavailable(store, "create") >= connect_seconds
        assert await seconds_until_unavailable(store, "create") < connect_seconds
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await seconds_until_unavailable(store, "create") < connect_seconds:
                pass
        assert await seconds_until_unavailable(store, "create") < connect_seconds
        relay.heal()
        await CALLS["create"](store)
        await store.close()


async def test_calls_are_patient_while_all_connections_are_busy(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    connect_seconds = 0.5
    busy = PostgresStore(replace(options, pool_size=1, connect_timeout_seconds=connect_seconds))
    await busy.open()
    timer = make_timer()
    await create(store, timer)
    async with held(options, "SELECT FROM pending_timers FOR UPDATE") as other:
        canceling = asyncio.create_task(busy.cancel_if_pending(timer.key, at(0)))
        await other.is_waited_for(database)
        for _ in range(2):
            assert await seconds_until_unavailable(busy, "get") >= connect_seconds
        await other.commit()
        assert await canceling is not None
    await busy.close()


async def seconds_until_unavailable(store: PostgresStore, name: str) -> float:
    loop = asyncio.get_running_loop()
    start_seconds = loop.time()
    with pytest.raises(StoreUnavailable):
        await CALLS[name](store)
    return loop.time() - start_seconds


async def test_a_closed_store_says_so(store: PostgresStore) -> None:
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.get(TimerKey("default", "t"))
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.prune(finished_before=at(0), limit=1)


async def test_a_statement_that_takes_too_long_ends(
    store: PostgresStore, options: PostgresOptions
) -> None:
    hurried = PostgresStore(replace(options, statement_timeout_seconds=0.2))
    await hurried.open()
    timer = make_timer()
    await create(store, timer)
    async with held(options, "SELECT FROM pending_timers FOR UPDATE"):
        with pytest.raises(StoreUnavailable, match="statement timeout"):
            await hurried.cancel_if_pending(timer.key, at(0))
    result = await hurried.cancel_if_pending(timer.key, at(0))
    assert result is not None
    assert result.applied
    await hurried.close()


async def test_many_large_timers_are_recovered_in_pieces(
    options: PostgresOptions, store: PostgresStore
) -> None:
    large = HttpCallback(url="https://example.com", payload=Raw(b'"' + b"x" * 250_000 + b'"'))
    for batch in range(5):
        await create(store, *(make_timer(f"t{batch}-{n}", callback=large) for n in range(30)))
    leases = await own_shards(store)
    while await claim(store, leases):
        pass
    leases = await own_shards(store, owner="node-2")
    pieces = []
    while piece := await store.recover(leases, limit=1_000):
        pieces.append(len(piece))
    assert sum(pieces) == 150
    # Each piece is about sixteen megabytes.
    assert len(pieces) == 3
