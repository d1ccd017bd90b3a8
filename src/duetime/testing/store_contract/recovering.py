"""Recovering: timers that a dead owner left executing become pending again."""

import pytest

from duetime.domain import transitions
from duetime.domain.keys import Epoch
from duetime.domain.limits import MAX_ATTEMPTS_REMEMBERED
from duetime.domain.outcome import INTERRUPTED, AttemptOutcome
from duetime.domain.timer import Timer, TimerStatus
from duetime.testing.store_contract.steps import (
    Store,
    at,
    claim,
    completion,
    create,
    hand_back,
    own_shards,
    reschedule,
    stored,
)
from duetime.testing.timers import make_timer


@pytest.mark.asyncio
class RecoveringContract:
    async def test_a_timer_that_a_former_owner_left_executing_is_pending_again(
        self, store: Store
    ) -> None:
        timer = make_timer(execute_at=at(5))
        await create(store, timer)
        await claim(store, await own_shards(store), now=at(4))
        left_behind = await stored(store, timer.key)
        leases = await own_shards(store, owner="node-2")
        assert await claim(store, leases) == []
        assert list(await store.recover(leases)) == [at(5)]
        recovered = await stored(store, timer.key)
        assert recovered == transitions.recovered(left_behind)
        assert recovered.status is TimerStatus.PENDING
        (lost,) = recovered.attempts
        assert (lost.number, lost.claimed_at, lost.error) == (1, at(4), INTERRUPTED)
        assert (lost.sent_at, lost.answered_at) == (None, None)
        assert lost.outcome is AttemptOutcome.INTERRUPTED
        (again,) = await claim(store, leases, until_inclusive=at(5))
        assert again.attempt == 2
        assert again.delivery_id == timer.delivery_id
        assert again.attempts == (lost,)

    async def test_a_lost_first_attempt_keeps_its_instant_after_a_hand_back(
        self, store: Store
    ) -> None:
        """A repeated create is compared with that instant."""
        timer = make_timer(execute_at=at(5))
        await create(store, timer)
        leases = await own_shards(store)
        (claimed,) = await claim(store, leases)
        await store.settle([hand_back(claimed, due_at=at(9))])
        await claim(store, leases)
        await self._lose(store, timer)
        leases = await own_shards(store)
        (claimed,) = await claim(store, leases)
        await store.settle([reschedule(claimed, at(20))])
        (claimed,) = await claim(store, leases)
        await store.settle([hand_back(claimed, due_at=at(25))])
        await claim(store, leases)
        await self._lose(store, timer)
        due = [(lost.number, lost.due_at) for lost in (await stored(store, timer.key)).attempts]
        assert due == [(1, at(5)), (2, at(9)), (1, at(20))]

    async def _lose(self, store: Store, timer: Timer) -> None:
        left_behind = await stored(store, timer.key)
        assert len(await store.recover(await own_shards(store))) == 1
        assert await stored(store, timer.key) == transitions.recovered(left_behind)

    async def test_timers_that_the_owner_itself_executes_are_left_alone(self, store: Store) -> None:
        await create(store, make_timer())
        leases = await own_shards(store)
        (claimed,) = await claim(store, leases)
        assert list(await store.recover(leases)) == []
        assert await store.settle([completion(claimed)]) == [True]

    async def test_only_leased_shards_are_recovered(self, store: Store) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(40)]
        await create(store, *timers)
        await claim(store, await own_shards(store))
        leases = await own_shards(store, [1, 4, 9], owner="node-2")
        mine = [timer for timer in timers if timer.shard in leases]
        assert sorted(await store.recover(leases)) == [timer.due_at for timer in mine]
        for timer in timers:
            status = TimerStatus.PENDING if timer in mine else TimerStatus.EXECUTING
            assert (await stored(store, timer.key)).status is status

    async def test_a_lost_lease_recovers_nothing(self, store: Store) -> None:
        timer = make_timer()
        await create(store, timer)
        await claim(store, await own_shards(store))
        stale = await own_shards(store, owner="node-2")
        current = await own_shards(store, owner="node-3")
        assert list(await store.recover(stale)) == []
        ahead = {shard: Epoch(epoch + 1) for shard, epoch in current.items()}
        assert list(await store.recover(ahead)) == []
        assert (await stored(store, timer.key)).status is TimerStatus.EXECUTING
        assert list(await store.recover(current)) == [timer.due_at]

    async def test_pending_and_finished_timers_are_left_alone(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("done", execute_at=at(0)))
        (claimed,) = await claim(store, leases)
        await store.settle([completion(claimed)])
        await create(store, make_timer("waiting", execute_at=at(1)))
        before = [await stored(store, make_timer(name).key) for name in ("done", "waiting")]
        assert list(await store.recover(await own_shards(store))) == []
        after = [await stored(store, make_timer(name).key) for name in ("done", "waiting")]
        assert after == before

    async def test_recovering_twice_changes_nothing_more(self, store: Store) -> None:
        await create(store, make_timer())
        await claim(store, await own_shards(store))
        leases = await own_shards(store)
        assert len(await store.recover(leases)) == 1
        once = await stored(store, make_timer().key)
        assert list(await store.recover(leases)) == []
        assert await store.get(once.key) == once

    async def test_a_timer_that_kills_its_owner_again_and_again_stays_small(
        self, store: Store
    ) -> None:
        await create(store, make_timer())
        crashes = MAX_ATTEMPTS_REMEMBERED + 5
        leases = await own_shards(store)
        for _ in range(crashes):
            assert len(await claim(store, leases)) == 1
            leases = await own_shards(store)
            assert len(await store.recover(leases)) == 1
        timer = await stored(store, make_timer().key)
        assert timer.attempt == crashes
        numbers = [attempt.number for attempt in timer.attempts]
        assert numbers == [1, *range(crashes - MAX_ATTEMPTS_REMEMBERED + 2, crashes + 1)]

    @pytest.mark.parametrize("firings", [1, 2, MAX_ATTEMPTS_REMEMBERED + 5])
    async def test_the_first_instant_is_remembered_however_often_a_timer_fires(
        self, store: Store, firings: int
    ) -> None:
        timer = make_timer(execute_at=at(0))
        await create(store, timer)
        leases = await own_shards(store)
        for firing in range(1, firings):
            (claimed,) = await claim(store, leases)
            await store.settle([reschedule(claimed, at(firing))])
        for _ in range(MAX_ATTEMPTS_REMEMBERED + 2):
            await claim(store, leases)
            await self._lose(store, timer)
            leases = await own_shards(store)
        attempts = (await stored(store, timer.key)).attempts
        assert attempts[0].due_at == at(0)
        assert max(n for n, attempt in enumerate(attempts) if attempt.number == 1) == (firings > 1)
        # The next firing has its own first attempt, so the last firing's may be forgotten.
        (claimed,) = await claim(store, leases)
        await store.settle([reschedule(claimed, at(firings))])
        await claim(store, leases)
        await self._lose(store, timer)
        attempts = (await stored(store, timer.key)).attempts
        firsts = [n for n, attempt in enumerate(attempts) if attempt.number == 1]
        assert firsts == [0, MAX_ATTEMPTS_REMEMBERED - 1]

    async def test_many_timers_are_recovered_at_once(self, store: Store) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(1_500)]
        await create(store, *timers)
        await claim(store, await own_shards(store))
        leases = await own_shards(store)
        assert sorted(await store.recover(leases)) == [timer.due_at for timer in timers]
        assert len(await claim(store, leases)) == 1_500

    async def test_a_limit_bounds_a_recovery(self, store: Store) -> None:
        await create(store, *(make_timer(f"t{n}") for n in range(7)))
        await claim(store, await own_shards(store))
        leases = await own_shards(store)
        pieces = [await store.recover(leases, limit=3) for _ in range(4)]
        assert [len(piece) for piece in pieces] == [3, 3, 1, 0]
        assert len(await claim(store, leases)) == 7
