"""Redriving, bulk operations and the removal of namespaces: the tools of operators."""

import pytest
from msgspec.structs import replace

from duetime.domain import transitions
from duetime.domain.bulk import BulkAction, BulkOperation, BulkStatus, TimerFilter
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Redrive
from duetime.ports.store import Existence, PageQuery, ScanQuery
from duetime.testing.store_contract.steps import (
    FAR_FUTURE,
    Reopen,
    Store,
    at,
    brought_to,
    claim,
    completion,
    create,
    failure,
    ids_of,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer

DELETING = Namespace("orders", options=NamespaceOptions(concurrency=3, deleting=True))
NOT_FAILED = [status for status in TimerStatus if status is not TimerStatus.FAILED]


def redrive_of(timer: Timer, delivery_id: str = "redriven") -> Redrive:
    return Redrive(key=timer.key, delivery_id=delivery_id)


async def failed_one(store: Store, timer: Timer | None = None) -> tuple[Timer, Claim]:
    """One failed timer, and the claim under which it failed."""
    await create(store, timer or make_timer())
    (claimed,) = await claim(store, await own_shards(store))
    assert await store.settle([failure(claimed)]) == [True]
    return await stored(store, TimerKey(claimed.namespace, claimed.id)), claimed


@pytest.mark.asyncio
class RedrivingContract:
    async def test_a_failed_timer_is_pending_and_due_at_once(self, store: Store) -> None:
        failed, claimed = await failed_one(store)
        assert failed.status is TimerStatus.FAILED
        redrive = redrive_of(failed)
        expected = transitions.redriven(failed, redrive, at(9))
        assert (expected.due_at, expected.execute_at) == (at(9), at(0))
        assert await store.redrive_if_failed([redrive], at(9)) == [expected]
        assert await store.get(failed.key) == expected
        leases = {claimed.shard: claimed.epoch}
        assert await claim(store, leases, until_inclusive=Instant(at(9) - 1)) == []
        (again,) = await claim(store, leases, until_inclusive=at(9))
        assert (again.delivery_id, again.attempt, again.failures) == ("redriven", 1, 0)
        assert (again.claim_number, again.attempts) == (2, failed.attempts)
        assert await store.settle([completion(again, answered_at=at(10))]) == [True]
        completed = await stored(store, failed.key)
        assert completed.status is TimerStatus.COMPLETED
        assert len(completed.attempts) == 2

    async def test_a_redriven_timer_is_not_due_before_its_instant(self, store: Store) -> None:
        """This matters when the clock was set back after the timer failed."""
        failed, claimed = await failed_one(store, make_timer(execute_at=at(30)))
        (redriven,) = await store.redrive_if_failed([redrive_of(failed)], at(20))
        assert redriven is not None
        assert redriven.due_at == at(30)
        batch = await store.claim_due(
            {claimed.shard: claimed.epoch}, now=at(20), until_inclusive=at(29), limit=1
        )
        assert batch.claims == []
        assert batch.next_due_at == at(30)

    @pytest.mark.parametrize("status", NOT_FAILED)
    async def test_no_other_status_is_redriven(self, store: Store, status: TimerStatus) -> None:
        timer = await brought_to(store, await own_shards(store), make_timer(), status)
        counts = await store.counts()
        assert await store.redrive_if_failed([redrive_of(timer)], at(9)) == [None]
        assert await store.get(timer.key) == timer
        assert await store.counts() == counts

    async def test_an_unknown_timer_is_not_redriven(self, store: Store) -> None:
        failed, _ = await failed_one(store)
        nobody = Redrive(key=TimerKey("default", "nobody"), delivery_id="x")
        elsewhere = Redrive(key=TimerKey("nowhere", failed.key.id), delivery_id="x")
        assert await store.redrive_if_failed([nobody, elsewhere], at(9)) == [None, None]
        assert await store.redrive_if_failed([], at(9)) == []
        assert await store.get(failed.key) == failed

    async def test_the_first_of_two_redrives_applies(self, store: Store) -> None:
        failed, _ = await failed_one(store)
        first, second = redrive_of(failed, "first"), redrive_of(failed, "second")
        answers = await store.redrive_if_failed([first, second], at(9))
        assert answers == [transitions.redriven(failed, first, at(9)), None]
        assert await store.redrive_if_failed([second], at(10)) == [None]
        assert (await stored(store, failed.key)).delivery_id == "first"
        assert (await store.counts())[TimerStatus.PENDING] == 1
        assert (await store.counts())[TimerStatus.FAILED] == 0

    async def test_a_batch_of_every_status_answers_in_order(self, store: Store) -> None:
        leases = await own_shards(store)
        statuses = [*TimerStatus, *TimerStatus]
        timers = [
            await brought_to(store, leases, make_timer(f"t{n}", execute_at=at(-100 - n)), status)
            for n, status in enumerate(statuses)
        ]
        redrives = [redrive_of(timer, f"again-{timer.key.id}") for timer in reversed(timers)]
        expected = [
            transitions.redriven(timer, redrive, at(50))
            if timer.status is TimerStatus.FAILED
            else None
            for timer, redrive in zip(reversed(timers), redrives, strict=True)
        ]
        assert await store.redrive_if_failed(redrives, at(50)) == expected
        held = [await stored(store, timer.key) for timer in reversed(timers)]
        assert held == [
            after or before for after, before in zip(expected, reversed(timers), strict=True)
        ]
        assert (await store.counts())[TimerStatus.FAILED] == 0
        assert (await store.counts())[TimerStatus.PENDING] == 4

    async def test_many_timers_are_redriven_at_once(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(600)]
        await create(store, *timers)
        claims = await claim(store, leases)
        await store.settle([failure(claimed) for claimed in claims])
        redrives = [redrive_of(timer, f"again-{timer.key.id}") for timer in timers]
        answers = await store.redrive_if_failed(redrives, at(700))
        assert all(timer is not None for timer in answers)
        again = await claim(store, leases)
        assert {claimed.delivery_id for claimed in again} == {
            redrive.delivery_id for redrive in redrives
        }

    async def test_the_claim_that_failed_settles_nothing_more(self, store: Store) -> None:
        failed, claimed = await failed_one(store)
        await store.redrive_if_failed([redrive_of(failed)], at(9))
        assert await store.settle([completion(claimed)]) == [False]
        (again,) = await claim(store, {claimed.shard: claimed.epoch})
        assert await store.settle([completion(claimed), failure(claimed)]) == [False, False]
        assert await store.settle([completion(again)]) == [True]

    async def test_retries_start_over_and_a_timer_may_be_redriven_again(self, store: Store) -> None:
        policy = RetryPolicy(max_retries=1, initial_interval_ms=1_000)
        await create(store, make_timer(retry_policy=policy))
        leases = await own_shards(store)
        for firing in range(3):
            for _ in range(2):
                (claimed,) = await claim(store, leases)
                assert await store.settle([failure(claimed, answered_at=at(firing))]) == [True]
            failed = await stored(store, make_timer().key)
            assert failed.status is TimerStatus.FAILED
            assert len(failed.attempts) == 2 * (firing + 1)
            (redriven,) = await store.redrive_if_failed(
                [redrive_of(failed, f"firing-{firing}")], at(firing)
            )
            assert redriven is not None

    async def test_a_redriven_timer_is_listed_as_pending_at_its_instant(self, store: Store) -> None:
        failed, _ = await failed_one(store)
        (redriven,) = await store.redrive_if_failed([redrive_of(failed)], at(9))
        pending, gone = TimerStatus.PENDING, TimerStatus.FAILED
        assert await store.scan(ScanQuery(namespace="default", status=pending)) == [redriven]
        assert await store.scan(ScanQuery(namespace="default", status=gone)) == []
        in_range = ScanQuery(
            namespace="default", execute_from_inclusive=at(0), execute_until_exclusive=at(1)
        )
        assert await store.scan(in_range) == [redriven]
        page = await store.page(PageQuery(namespace="default"))
        assert (page.timers, page.total) == ([redriven], 1)

    async def test_a_redriven_timer_is_not_pruned_for_its_old_failure(self, store: Store) -> None:
        failed, claimed = await failed_one(store)
        await store.redrive_if_failed([redrive_of(failed)], at(9))
        assert await store.prune(finished_before=at(FAR_FUTURE), limit=10) == 0
        (again,) = await claim(store, {claimed.shard: claimed.epoch})
        await store.settle([failure(again, answered_at=at(100))])
        for namespace in ("default", None):
            pruned = await store.prune(finished_before=at(50), limit=10, namespace=namespace)
            assert pruned == 0
        assert await store.prune(finished_before=at(101), limit=10) == 1
        assert await store.get(failed.key) is None

    async def test_a_redriven_timer_can_be_canceled_removed_and_created_anew(
        self, store: Store
    ) -> None:
        failed, _ = await failed_one(store)
        await store.redrive_if_failed([redrive_of(failed)], at(9))
        removed = await store.remove_if_pending(failed.key)
        assert removed is not None
        assert removed.applied
        assert await store.get(failed.key) is None
        (result,) = await create(store, make_timer(delivery_id="new"))
        assert result.existence is Existence.CREATED
        canceled = await store.cancel_if_pending(failed.key, at(10))
        assert canceled is not None
        assert canceled.applied
        assert await store.redrive_if_failed([redrive_of(failed)], at(11)) == [None]

    async def test_a_redriven_timer_survives(self, store: Store, reopen: Reopen) -> None:
        failed, _ = await failed_one(store)
        (redriven,) = await store.redrive_if_failed([redrive_of(failed)], at(9))
        reopened = await reopen() if store.capabilities.durable else store
        assert await reopened.get(failed.key) == redriven
        assert ids_of(await claim(reopened, await own_shards(reopened))) == [failed.key.id]


def operation(number: int = 0, **changes: object) -> BulkOperation:
    """An operation with every member set, created `number` seconds after the start."""
    complete = BulkOperation(
        id=f"01977f3e-7a10-7cc3-8a2b-{number:012d}",
        namespace="default",
        action=BulkAction.RESCHEDULE,
        shard=ShardNumber(3),
        created_at=at(number),
        updated_at=at(number),
        filter=TimerFilter(
            due_from_inclusive=at(1),
            due_until_exclusive=at(2),
            id_prefix='"ä"',
            endpoint="https://app.example.com",
            error_contains="HTTP 500",
            metadata_key="customer",
            metadata_value="",
        ),
        started_by="billing",
        execute_at=at(5),
        move_by_ms=-7,
        matched=9,
        matched_is_minimum=True,
        scanned=8,
        changed=7,
        skipped=1,
        last_execute_at=at(3),
        last_timer_uuid=bytes(range(16)),
        error="no",
    )
    return replace(complete, **changes)


@pytest.mark.asyncio
class OperationsContract:
    async def test_an_operation_is_kept_with_all_its_members(
        self, store: Store, reopen: Reopen
    ) -> None:
        await store.add_operation(operation())
        assert await store.operation(operation().id) == operation()
        assert await store.operation("another") is None
        store = await reopen()
        if store.capabilities.durable:
            assert await store.operation(operation().id) == operation()

    async def test_an_operation_of_the_same_id_leaves_the_first_as_it_is(
        self, store: Store
    ) -> None:
        await store.add_operation(operation())
        await store.add_operation(operation(changed=7))
        assert await store.operation(operation().id) == operation()

    async def test_the_newest_operations_come_first(self, store: Store) -> None:
        ended = operation(1, status=BulkStatus.COMPLETED)
        for each in (operation(0), ended, operation(2)):
            await store.add_operation(each)
        newest = await store.operations(running=False, limit=2)
        assert list(newest) == [operation(2), ended]
        assert list(await store.operations(running=True, limit=9)) == [operation(2), operation(0)]

    async def test_the_operations_of_other_namespaces_are_left_out(
        self, store: Store, reopen: Reopen
    ) -> None:
        """However many there are, and without any trace of them."""
        odd = 'it\'s "quoted" \\ é 😀'
        theirs = [operation(n, namespace="busy") for n in range(10, 30)]
        own = operation(3, namespace="a", status=BulkStatus.COMPLETED)
        others = [operation(1, namespace="a"), operation(2, namespace=odd), own]
        for each in (*others, *theirs):
            await store.add_operation(each)
        assert await store.replace_operation(replace(own, version=1, changed=5))
        own = replace(own, version=1, changed=5)
        if store.capabilities.durable:
            store = await reopen()

        async def found(*namespaces: str, running: bool = False, limit: int = 9) -> object:
            return list(await store.operations(running=running, limit=limit, namespaces=namespaces))

        assert await found("a", odd, "none") == [own, operation(2, namespace=odd), others[0]]
        assert await found("a", odd, "a", limit=2) == [own, operation(2, namespace=odd)]
        assert await found("a", running=True) == [others[0]]
        assert await found("busy", "a", limit=20) == theirs[::-1]
        assert await found("none") == []
        assert await found() == []

    async def test_progress_is_written_on_top_of_the_progress_that_was_read(
        self, store: Store
    ) -> None:
        await store.add_operation(operation())
        first = operation(version=1, changed=100)
        assert await store.replace_operation(first)
        assert not await store.replace_operation(operation(version=1, changed=1))
        assert not await store.replace_operation(operation(version=3))
        assert not await store.replace_operation(operation(5, version=1))
        assert await store.operation(first.id) == first
        ended = operation(version=2, status=BulkStatus.ABORTED)
        assert await store.replace_operation(ended)
        assert list(await store.operations(running=True, limit=9)) == []

    async def test_old_operations_are_forgotten_once_they_have_ended(self, store: Store) -> None:
        for number in range(5):
            await store.add_operation(operation(number, status=BulkStatus.COMPLETED))
        await store.add_operation(operation(5, updated_at=at(0)))
        assert await store.forget_operations(ended_before=at(4), limit=3) == 3
        assert await store.forget_operations(ended_before=at(4), limit=3) == 1
        assert await store.forget_operations(ended_before=at(4), limit=3) == 0
        left = await store.operations(running=False, limit=9)
        assert [each.created_at for each in left] == [at(5), at(4)]

    @pytest.mark.parametrize("status", list(TimerStatus))
    async def test_a_namespace_with_a_timer_stays(self, store: Store, status: TimerStatus) -> None:
        await store.add_namespace(DELETING)
        leases = await own_shards(store)
        await brought_to(store, leases, make_timer("one", namespace="orders"), status)
        assert not await store.remove_namespace("orders")
        assert DELETING in await store.namespaces()

    async def test_a_namespace_without_timers_is_forgotten(self, store: Store) -> None:
        await store.add_namespace(Namespace("orders"))
        timer = make_timer("one", namespace="orders")
        await create(store, timer)
        await store.remove_if_pending(timer.key)
        await store.change_namespace("orders", DELETING.options)
        shards = await store.shards()
        assert await store.remove_namespace("orders")
        assert await store.remove_namespace("orders")
        assert [each.name for each in await store.namespaces()] == ["default"]
        assert await store.counts("orders") == dict.fromkeys(TimerStatus, 0)
        assert await store.shards() == shards
        assert await store.add_namespace(Namespace("orders", 4)) == Namespace("orders", 4)

    async def test_a_namespace_that_takes_timers_stays(self, store: Store) -> None:
        for options in (DELETING.options, NamespaceOptions(concurrency=3)):
            await store.add_namespace(Namespace("orders"))
            await store.change_namespace("orders", options)
        assert not await store.remove_namespace("orders")
        assert "orders" in [each.name for each in await store.namespaces()]

    async def test_pending_timers_of_a_doomed_namespace_are_forgotten(self, store: Store) -> None:
        await store.add_namespace(DELETING)
        timers = [make_timer(f"t{n}", namespace="orders", execute_at=at(n)) for n in range(5)]
        await create(store, *timers, make_timer("other"))
        (claimed,) = await claim(store, await own_shards(store), limit=1)
        assert claimed.id in ("t0", "other")
        executing = int(claimed.id == "t0")
        assert await store.remove_pending("orders", limit=3) == 3
        assert await store.remove_pending("orders", limit=9) == 2 - executing
        assert await store.remove_pending("orders", limit=9) == 0
        left = dict.fromkeys(TimerStatus, 0) | {TimerStatus.EXECUTING: executing}
        assert await store.counts("orders") == left
        assert await store.get(TimerKey("default", "other")) is not None
        assert await store.get(timers[4].key) is None

    async def test_no_timer_of_a_namespace_that_takes_timers_is_forgotten(
        self, store: Store
    ) -> None:
        await store.add_namespace(DELETING)
        timer = make_timer("one", namespace="orders")
        await create(store, timer)
        await store.change_namespace("orders", NamespaceOptions())
        assert await store.remove_pending("orders", limit=9) == 0
        assert await store.remove_pending("nowhere", limit=9) == 0
        assert await store.get(timer.key) == timer
