"""A deletion that forgets timers meets an abort of it: no timer that came after the abort goes."""

import asyncio

from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import TimerStatus
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.namespaces import REMOVE_PENDING
from duetime.testing.store_contract.steps import at, create, own_shards, stored
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import held

DELETING = Namespace("orders", options=NamespaceOptions(deleting=True))
TIMER = make_timer("one", namespace="orders", execute_at=at(5))
REOPEN = "UPDATE namespaces SET options = '{}' WHERE name = $1"


async def test_a_removal_waits_for_an_abort_and_then_forgets_nothing(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await store.add_namespace(DELETING)
    await create(store, TIMER)
    async with held(options, REOPEN, "orders") as abort:
        removing = asyncio.create_task(store.remove_pending("orders", limit=9))
        await abort.is_waited_for(database)
        await abort.commit()
        assert await removing == 0
    assert await stored(store, TIMER.key) == TIMER


async def test_an_abort_waits_for_a_removal_under_way(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await store.add_namespace(DELETING)
    await create(store, TIMER)
    async with held(options, REMOVE_PENDING, "orders", 9) as removal:
        aborting = asyncio.create_task(store.change_namespace("orders", NamespaceOptions()))
        await removal.is_waited_for(database)
        await removal.commit()
        assert await aborting == Namespace("orders")
    assert await store.get(TIMER.key) is None
    await create(store, TIMER)
    assert await store.remove_pending("orders", limit=9) == 0


async def test_a_timer_that_is_being_claimed_does_not_hold_up_the_others(
    store: PostgresStore, options: PostgresOptions
) -> None:
    await store.add_namespace(DELETING)
    await create(store, TIMER, make_timer("two", namespace="orders", execute_at=at(6)))
    lock = "SELECT FROM pending_timers WHERE id = $1 FOR UPDATE"
    async with held(options, lock, "one") as claim:
        assert await store.remove_pending("orders", limit=9) == 1
        await claim.roll_back()
    assert await store.remove_pending("orders", limit=9) == 1


async def test_timers_that_cannot_be_read_are_forgotten_and_the_ledger_matches(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await own_shards(store)
    await store.add_namespace(DELETING)
    await create(store, TIMER, make_timer("other"))
    await database.execute("UPDATE pending_timers SET callback = 'damaged' WHERE id = 'one'")
    assert await store.remove_pending("orders", limit=9) == 1
    assert await store.remove_namespace("orders")
    assert (await store.counts())[TimerStatus.PENDING] == 1
    inspector = PostgresInspector(options)
    await inspector.open()
    assert not (await inspector.audit(at(0))).findings
    await inspector.close()
