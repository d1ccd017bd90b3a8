"""Settling: every kind of outcome, and the guard that keeps a stale owner out."""

import pytest
from msgspec.structs import replace

from duetime.domain import transitions
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Settlement
from duetime.testing.store_contract.steps import (
    Store,
    at,
    claim,
    completion,
    create,
    failure,
    hand_back,
    ids_of,
    interruption,
    own_shards,
    reschedule,
    stored,
)
from duetime.testing.timers import make_timer

RETRIES = RetryPolicy(max_retries=2, initial_interval_ms=10_000, backoff_multiplier=2.0)


async def claimed_one(store: Store, timer: Timer | None = None) -> tuple[Timer, Claim]:
    """One timer, executing under the current lease of its shard."""
    timer = timer or make_timer()
    await create(store, timer)
    leases = await own_shards(store)
    (claimed,) = await claim(store, leases)
    return await stored(store, timer.key), claimed


async def assert_applied(store: Store, timer: Timer, settlement: Settlement) -> Timer:
    assert await store.settle([settlement]) == [True]
    expected = transitions.settled(timer, settlement)
    assert await store.get(timer.key) == expected
    return expected


@pytest.mark.asyncio
class SettlingContract:
    async def test_a_completion_finishes_the_timer(self, store: Store) -> None:
        timer, claimed = await claimed_one(store)
        result = await assert_applied(store, timer, completion(claimed, answered_at=at(7)))
        assert result.status is TimerStatus.COMPLETED
        assert result.executed_at == result.updated_at == at(7)
        assert [attempt.number for attempt in result.attempts] == [1]

    async def test_a_failure_without_retries_finishes_the_timer(self, store: Store) -> None:
        timer, claimed = await claimed_one(store)
        result = await assert_applied(store, timer, failure(claimed, error="no 'route'"))
        assert result.status is TimerStatus.FAILED
        assert result.last_error == "no 'route'"

    async def test_a_retry_makes_the_timer_pending(self, store: Store) -> None:
        timer, claimed = await claimed_one(store, make_timer(retry_policy=RETRIES))
        result = await assert_applied(store, timer, failure(claimed, answered_at=at(1)))
        assert result.status is TimerStatus.PENDING
        assert (result.due_at, result.execute_at) == (at(11), at(0))
        assert (result.attempt, result.failures) == (1, 1)
        leases = {claimed.shard: claimed.epoch}
        assert await claim(store, leases, until_inclusive=at(10.999)) == []
        (again,) = await claim(store, leases, until_inclusive=at(11))
        assert (again.attempt, again.failures) == (2, 1)
        assert again.attempts == result.attempts
        assert again.delivery_id == claimed.delivery_id

    async def test_retries_until_the_policy_is_exhausted(self, store: Store) -> None:
        timer, claimed = await claimed_one(store, make_timer(retry_policy=RETRIES))
        for _ in range(RETRIES.max_retries):
            result = await assert_applied(store, timer, failure(claimed))
            assert result.status is TimerStatus.PENDING
            (claimed,) = await claim(store, {claimed.shard: claimed.epoch})
            timer = await stored(store, timer.key)
        result = await assert_applied(store, timer, failure(claimed))
        assert result.status is TimerStatus.FAILED
        assert [attempt.number for attempt in result.attempts] == [1, 2, 3]

    async def test_a_reschedule_starts_a_new_firing(self, store: Store) -> None:
        timer, claimed = await claimed_one(store)
        result = await assert_applied(store, timer, reschedule(claimed, at(60)))
        assert result.status is TimerStatus.PENDING
        assert result.execute_at == result.due_at == at(60)
        assert result.attempt == 0
        leases = {claimed.shard: claimed.epoch}
        assert await claim(store, leases, until_inclusive=at(59)) == []
        (again,) = await claim(store, leases, until_inclusive=at(60))
        assert again.attempt == 1
        assert again.delivery_id != claimed.delivery_id

    async def test_the_outcome_of_each_attempt_is_remembered(self, store: Store) -> None:
        timer, claimed = await claimed_one(store, make_timer(retry_policy=RETRIES))
        for settlement_of in (failure, interruption, reschedule):
            await assert_applied(store, timer, settlement_of(claimed))
            (claimed,) = await claim(store, {claimed.shard: claimed.epoch})
            timer = await stored(store, timer.key)
            assert claimed.attempts == timer.attempts
        await assert_applied(store, timer, completion(claimed))
        assert [attempt.outcome for attempt in (await stored(store, timer.key)).attempts] == [
            AttemptOutcome.FAILED,
            AttemptOutcome.INTERRUPTED,
            AttemptOutcome.RESCHEDULED,
            AttemptOutcome.COMPLETED,
        ]

    async def test_a_hand_back_undoes_the_claim(self, store: Store) -> None:
        timer, claimed = await claimed_one(store)
        result = await assert_applied(store, timer, hand_back(claimed, due_at=at(3)))
        assert result.status is TimerStatus.PENDING
        assert (result.attempt, result.attempts) == (0, ())
        (again,) = await claim(store, {claimed.shard: claimed.epoch})
        assert (again.attempt, again.due_at) == (1, at(3))

    async def test_a_timer_handed_back_at_its_instant_is_claimed_once(self, store: Store) -> None:
        _, claimed = await claimed_one(store)
        for _ in range(3):
            assert await store.settle([hand_back(claimed)]) == [True]
            (claimed,) = await claim(store, {claimed.shard: claimed.epoch})
        assert await claim(store, {claimed.shard: claimed.epoch}) == []

    async def test_a_batch_of_every_kind_answers_in_order(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [
            make_timer(f"t{n}", execute_at=at(n), retry_policy=RETRIES if n == 1 else None)
            for n in range(5)
        ]
        await create(store, *timers)
        claims = await claim(store, leases)
        settlements = [
            completion(claims[0]),
            failure(claims[1]),
            failure(claims[2]),
            reschedule(claims[3], at(99)),
            hand_back(claims[4]),
        ]
        expected = [
            transitions.settled(await stored(store, timer.key), settlement)
            for timer, settlement in zip(timers, settlements, strict=True)
        ]
        assert {timer.status for timer in expected} == {
            TimerStatus.PENDING,
            TimerStatus.COMPLETED,
            TimerStatus.FAILED,
        }
        assert await store.settle(list(reversed(settlements))) == [True] * 5
        assert [await store.get(timer.key) for timer in timers] == expected

    async def test_an_empty_batch_settles_nothing(self, store: Store) -> None:
        assert await store.settle([]) == []

    async def test_a_settlement_applies_once(self, store: Store) -> None:
        timer, claimed = await claimed_one(store)
        done = completion(claimed)
        assert await store.settle([done, done]) == [True, False]
        assert await store.settle([failure(claimed)]) == [False]
        assert await store.get(timer.key) == transitions.settled(timer, done)

    @pytest.mark.parametrize("difference", [-1, 1])
    async def test_another_attempt_is_not_settled(self, store: Store, difference: int) -> None:
        timer, claimed = await claimed_one(store)
        stale = replace(completion(claimed), claim_number=claimed.claim_number + difference)
        assert await store.settle([stale]) == [False]
        assert await store.get(timer.key) == timer

    @pytest.mark.parametrize("difference", [-1, 1])
    async def test_another_epoch_is_not_settled(self, store: Store, difference: int) -> None:
        timer, claimed = await claimed_one(store)
        stale = replace(completion(claimed), epoch=Epoch(claimed.epoch + difference))
        assert await store.settle([stale]) == [False]
        assert await store.get(timer.key) == timer

    @pytest.mark.parametrize("difference", [-1, 1])
    async def test_a_timer_created_at_another_instant_is_not_settled(
        self, store: Store, difference: int
    ) -> None:
        timer, claimed = await claimed_one(store, make_timer(created_at=at(-7)))
        assert claimed.created_at == at(-7)
        stale = replace(completion(claimed), created_at=Instant(claimed.created_at + difference))
        assert await store.settle([stale]) == [False]
        assert await store.get(timer.key) == timer

    async def test_a_claim_of_a_removed_timer_does_not_settle_its_namesake(
        self, store: Store
    ) -> None:
        """Both are claimed for the first time, under the same epoch."""
        timer, claimed = await claimed_one(store)
        assert await store.settle([hand_back(claimed)]) == [True]
        await store.remove_if_pending(timer.key)
        await create(store, make_timer(created_at=at(5), delivery_id="of the namesake"))
        (again,) = await claim(store, {claimed.shard: claimed.epoch})
        assert (again.claim_number, again.epoch) == (claimed.claim_number, claimed.epoch)
        namesake = await stored(store, timer.key)
        late = [completion(claimed), failure(claimed), hand_back(claimed)]
        assert await store.settle(late) == [False] * 3
        assert await store.get(timer.key) == namesake
        assert await store.settle([completion(claimed), completion(again)]) == [False, True]

    async def test_an_owner_that_lost_its_shard_settles_nothing(self, store: Store) -> None:
        timer, claimed = await claimed_one(store)
        await own_shards(store, [claimed.shard], owner="node-2")
        assert await store.settle([completion(claimed)]) == [False]
        assert await store.get(timer.key) == timer

    async def test_a_new_owner_settles_no_attempt_it_did_not_claim(self, store: Store) -> None:
        timer, claimed = await claimed_one(store)
        leases = await own_shards(store, [claimed.shard], owner="node-2")
        foreign = replace(completion(claimed), epoch=leases[claimed.shard])
        assert await store.settle([foreign]) == [False]
        assert await store.get(timer.key) == timer

    async def test_an_owner_that_lost_its_shard_does_not_disturb_the_new_attempt(
        self, store: Store
    ) -> None:
        timer, claimed = await claimed_one(store)
        leases = await own_shards(store, [claimed.shard], owner="node-2")
        await store.recover(leases)
        (again,) = await claim(store, leases)
        executing = await stored(store, timer.key)
        assert await store.settle([completion(claimed)]) == [False]
        assert await store.get(timer.key) == executing
        assert await store.settle([completion(again)]) == [True]

    async def test_a_repeated_hand_back_does_not_disturb_the_next_claim(self, store: Store) -> None:
        timer, claimed = await claimed_one(store)
        assert await store.settle([hand_back(claimed)]) == [True]
        leases = {shard.shard: shard.epoch for shard in await store.shards()}
        (again,) = await claim(store, leases)
        assert again.attempt == claimed.attempt
        assert await store.settle([hand_back(claimed)]) == [False]
        assert (await stored(store, timer.key)).status is TimerStatus.EXECUTING
        assert await store.settle([completion(again)]) == [True]

    async def test_an_unknown_or_pending_or_finished_timer_is_not_settled(
        self, store: Store
    ) -> None:
        timer, claimed = await claimed_one(store)
        unknown = replace(completion(claimed), id="nobody")
        assert await store.settle([unknown]) == [False]
        elsewhere = replace(completion(claimed), namespace="nowhere")
        assert await store.settle([elsewhere]) == [False]
        assert await store.settle([hand_back(claimed)]) == [True]
        assert await store.settle([completion(claimed)]) == [False]
        await store.cancel_if_pending(timer.key, at(2))
        canceled = await stored(store, timer.key)
        assert await store.settle([completion(claimed)]) == [False]
        assert await store.get(timer.key) == canceled

    async def test_stale_settlements_do_not_hinder_the_others(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(40)]
        await create(store, *timers)
        claims = await claim(store, leases)
        lost = claims[0].shard
        await own_shards(store, [lost], owner="node-2")
        wrong_attempt = {claim.id for claim in claims[::5]}
        settlements = [
            replace(completion(claim), claim_number=7)
            if claim.id in wrong_attempt
            else completion(claim)
            for claim in claims
        ]
        expected = [claim.shard != lost and claim.id not in wrong_attempt for claim in claims]
        assert await store.settle(settlements) == expected
        for timer, applied in zip(timers, expected, strict=True):
            status = TimerStatus.COMPLETED if applied else TimerStatus.EXECUTING
            assert (await stored(store, timer.key)).status is status

    async def test_a_finished_timer_is_never_claimed_again(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(4)))
        first, second, third, _ = await claim(store, leases)
        await store.settle([completion(first), failure(second), hand_back(third)])
        assert ids_of(await claim(store, leases)) == [third.id]
