"""Changing, canceling and removing: each applies to a pending timer, or says why it does not."""

import pytest
from msgspec import Raw

from duetime.domain import transitions
from duetime.domain.callback import HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.store import ConditionalResult, Existence
from duetime.testing.store_contract.steps import (
    Store,
    at,
    brought_to,
    claim,
    create,
    failure,
    ids_of,
    own_shards,
)
from duetime.testing.timers import make_timer

NOT_PENDING = [status for status in TimerStatus if status is not TimerStatus.PENDING]
NOBODY = TimerKey("default", "nobody")

CHANGES = [
    Change(updated_at=at(3), delivery_id="second"),
    Change(updated_at=at(3), delivery_id="second", execute_at=at(9)),
    Change(
        updated_at=at(3),
        delivery_id="second",
        callback=HttpCallback(url="https://example.com/2", payload=Raw(b"2")),
    ),
    Change(updated_at=at(3), delivery_id="second", metadata=Raw(b'{"new":true}')),
    Change(updated_at=at(3), delivery_id="second", due_at=at(7)),
    Change(
        updated_at=at(3),
        delivery_id="second",
        due_at=at(7),
        callback=HttpCallback(url="https://example.com/2"),
    ),
    Change(updated_at=at(3), delivery_id="second", due_at=at(7), execute_at=at(9)),
    Change(updated_at=at(3), delivery_id="second", metadata=None),
    Change(updated_at=at(3), delivery_id="second", retry_policy=RetryPolicy(max_retries=9)),
    Change(updated_at=at(3), delivery_id="second", retry_policy=None),
    Change(updated_at=at(3), delivery_id="second", correlation_id="new"),
    Change(updated_at=at(3), delivery_id="second", correlation_id=None),
    Change(updated_at=at(3), delivery_id="second", command_order=2**62),
    Change(
        updated_at=at(3),
        delivery_id="second",
        execute_at=at(9),
        callback=HttpCallback(url="https://example.com/2"),
        metadata=Raw(b"1"),
        retry_policy=None,
        correlation_id="new",
    ),
]


@pytest.mark.asyncio
class ChangingContract:
    @pytest.mark.parametrize("change", CHANGES)
    async def test_a_change_applies_to_a_pending_timer(self, store: Store, change: Change) -> None:
        timer = make_timer(metadata=Raw(b'"old"'), retry_policy=RetryPolicy(), correlation_id="old")
        await create(store, timer)
        expected = transitions.changed(timer, change)
        result = await store.change_if_pending(timer.key, change)
        assert result == ConditionalResult(applied=True, timer=expected)
        assert await store.get(timer.key) == expected

    @pytest.mark.parametrize("change", CHANGES)
    async def test_a_change_applies_to_a_timer_that_waits_for_a_retry(
        self, store: Store, change: Change
    ) -> None:
        leases = await own_shards(store)
        timer = make_timer(metadata=Raw(b'"old"'), retry_policy=RetryPolicy(), correlation_id="old")
        await create(store, timer)
        (claimed,) = await claim(store, leases)
        retry = failure(claimed)
        await store.settle([retry])
        waiting = transitions.settled(
            transitions.claimed(timer, epoch=claimed.epoch, now=claimed.claimed_at), retry
        )
        assert await store.get(timer.key) == waiting
        expected = transitions.changed(waiting, change)
        result = await store.change_if_pending(timer.key, change)
        assert result == ConditionalResult(applied=True, timer=expected)
        assert await store.get(timer.key) == expected

    async def test_a_change_for_a_firing_does_not_apply_to_another(self, store: Store) -> None:
        timer = make_timer()
        await create(store, timer)
        first = Change(
            updated_at=at(3),
            delivery_id="second",
            only_firing=timer.delivery_id,
            callback=HttpCallback(url="https://example.com/2"),
        )
        late = Change(
            updated_at=at(4),
            delivery_id="third",
            only_firing=timer.delivery_id,
            callback=HttpCallback(url="https://example.com/3"),
        )
        changed = transitions.changed(timer, first)
        assert await store.change_if_pending(timer.key, first) == ConditionalResult(True, changed)
        assert await store.change_if_pending(timer.key, late) == ConditionalResult(False, changed)
        assert await store.get(timer.key) == changed

    async def test_a_change_for_a_version_does_not_apply_to_a_later_one(self, store: Store) -> None:
        timer = make_timer()
        await create(store, timer)
        first = Change(
            updated_at=at(3),
            delivery_id="unused",
            only_updated_at=timer.updated_at,
            metadata=Raw(b'"first"'),
        )
        late = Change(
            updated_at=at(4),
            delivery_id="third",
            only_firing=timer.delivery_id,
            only_updated_at=timer.updated_at,
            execute_at=at(9),
        )
        changed = transitions.changed(timer, first)
        assert await store.change_if_pending(timer.key, first) == ConditionalResult(True, changed)
        assert await store.change_if_pending(timer.key, late) == ConditionalResult(False, changed)
        assert await store.get(timer.key) == changed

    async def test_a_changed_timer_is_due_at_its_new_instant_only(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("sooner", execute_at=at(50)))
        await create(store, make_timer("later", execute_at=at(10)))
        for timer_id, execute_at in (("sooner", at(20)), ("later", at(60))):
            change = Change(updated_at=at(1), delivery_id="second", execute_at=execute_at)
            await store.change_if_pending(TimerKey("default", timer_id), change)
        assert ids_of(await claim(store, leases, until_inclusive=at(59))) == ["sooner"]
        assert ids_of(await claim(store, leases, until_inclusive=at(60))) == ["later"]

    async def test_a_timer_moved_away_and_back_is_claimed_once(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("mover", execute_at=at(10)))
        for execute_at in (at(20), at(10), at(5), at(10)):
            change = Change(updated_at=at(1), delivery_id="second", execute_at=execute_at)
            await store.change_if_pending(TimerKey("default", "mover"), change)
        assert ids_of(await claim(store, leases)) == ["mover"]

    async def test_timers_moved_again_and_again_keep_their_order(self, store: Store) -> None:
        await store.add_namespace(Namespace("one", 1))
        leases = await own_shards(store)
        planned = {f"t{n}": n * 61 % 307 + 0.5 for n in range(50)}
        timers = [
            make_timer(name, namespace="one", num_shards=1, execute_at=at(second))
            for name, second in planned.items()
        ]
        await create(store, *timers)
        for move in range(300):
            key, second = timers[move * 5 % 9].key, move * 37 % 307
            change = Change(updated_at=at(1), delivery_id=f"d{move}", execute_at=at(second))
            await store.change_if_pending(key, change)
            planned[key.id] = second
        assert ids_of(await claim(store, leases)) == sorted(planned, key=planned.__getitem__)

    @pytest.mark.parametrize("status", NOT_PENDING)
    async def test_a_timer_that_is_not_pending_is_not_changed_canceled_or_removed(
        self, store: Store, status: TimerStatus
    ) -> None:
        leases = await own_shards(store)
        timer = await brought_to(store, leases, make_timer(), status)
        refused = ConditionalResult(applied=False, timer=timer)
        for change in CHANGES:
            assert await store.change_if_pending(timer.key, change) == refused
        assert await store.cancel_if_pending(timer.key, at(4)) == refused
        assert await store.remove_if_pending(timer.key) == refused
        assert await store.get(timer.key) == timer

    async def test_an_unknown_timer_answers_none(self, store: Store) -> None:
        assert await store.change_if_pending(NOBODY, CHANGES[0]) is None
        assert await store.cancel_if_pending(NOBODY, at(1)) is None
        assert await store.remove_if_pending(NOBODY) is None

    async def test_a_timer_that_was_changed_since_it_was_read_is_not_canceled(
        self, store: Store
    ) -> None:
        timer = make_timer(execute_at=at(5))
        await create(store, timer)
        stale = Instant(timer.updated_at - 1)
        refused = ConditionalResult(applied=False, timer=timer)
        assert await store.cancel_if_pending(timer.key, at(2), only_updated_at=stale) == refused
        result = await store.cancel_if_pending(timer.key, at(2), only_updated_at=timer.updated_at)
        assert result == ConditionalResult(True, transitions.canceled(timer, at(2)))

    async def test_a_pending_timer_is_canceled_and_never_claimed(self, store: Store) -> None:
        leases = await own_shards(store)
        timer = make_timer(execute_at=at(5))
        await create(store, timer)
        expected = transitions.canceled(timer, at(2))
        result = await store.cancel_if_pending(timer.key, at(2))
        assert result == ConditionalResult(applied=True, timer=expected)
        assert expected.status is TimerStatus.CANCELED
        assert await store.get(timer.key) == expected
        batch = await store.claim_due(leases, now=at(9), until_inclusive=at(9), limit=9)
        assert (list(batch.claims), batch.next_due_at) == ([], None)

    async def test_a_removed_timer_is_forgotten_and_its_key_is_free(self, store: Store) -> None:
        leases = await own_shards(store)
        timer = make_timer(execute_at=at(5))
        await create(store, timer)
        result = await store.remove_if_pending(timer.key)
        assert result == ConditionalResult(applied=True, timer=timer)
        assert await store.get(timer.key) is None
        assert await store.remove_if_pending(timer.key) is None
        batch = await store.claim_due(leases, now=at(9), until_inclusive=at(9), limit=9)
        assert (list(batch.claims), batch.next_due_at) == ([], None)

        again = make_timer(execute_at=at(6), delivery_id="again")
        (created,) = await create(store, again)
        assert created.existence is Existence.CREATED
        assert ids_of(await claim(store, leases)) == [again.key.id]
