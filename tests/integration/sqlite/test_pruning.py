"""Pruning all namespaces at once, however many there are."""

import apsw

from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.stores.sqlite import SqliteStore
from duetime.testing.store_contract.steps import at, create
from duetime.testing.timers import make_timer


async def finish_one_in_each_of(store: SqliteStore, namespaces: int) -> None:
    for number in range(namespaces):
        timer = make_timer("t", namespace=f"n{number}", num_shards=1, execute_at=at(100))
        await store.add_namespace(Namespace(f"n{number}", 1))
        await create(store, timer)
        # The last namespace finishes first.
        await store.cancel_if_pending(timer.key, at(namespaces - number))


async def test_the_earliest_of_more_namespaces_than_the_limit_go_first(store: SqliteStore) -> None:
    await finish_one_in_each_of(store, 7)
    assert await store.prune(finished_before=at(7), limit=3) == 3
    left = [(await store.counts(f"n{n}"))[TimerStatus.CANCELED] for n in range(7)]
    assert left == [1, 1, 1, 1, 0, 0, 0]
    assert await store.prune(finished_before=at(7), limit=10) == 3
    assert (await store.counts())[TimerStatus.CANCELED] == 1


async def test_a_wrong_count_exempts_no_namespace(
    store: SqliteStore, database: apsw.Connection
) -> None:
    await finish_one_in_each_of(store, 3)
    database.execute("DELETE FROM counts WHERE namespace = 'n1'")
    assert await store.prune(finished_before=at(100), limit=10) == 3
    assert database.execute("SELECT count(*) FROM timers").get == 0
