"""Claiming: in order, within bounds, under the current lease only."""

import pytest

from duetime.domain import transitions
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, shard_of
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import ClaimStart, DuePosition
from duetime.testing.store_contract.steps import (
    Store,
    at,
    claim,
    completion,
    create,
    fields_of,
    ids_of,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer


def due_order(timer: Timer) -> tuple[int, bytes]:
    return timer.due_at, timer.timer_uuid


@pytest.mark.asyncio
class ClaimingContract:
    async def test_a_claim_answers_the_timer_and_makes_it_executing(self, store: Store) -> None:
        leases = await own_shards(store)
        timer = make_timer(execute_at=at(5))
        await create(store, timer)
        batch = await store.claim_due(leases, now=at(4), until_inclusive=at(5), limit=10)
        expected = transitions.claimed(timer, epoch=leases[timer.shard], now=at(4))
        (claimed,) = batch.claims
        assert fields_of(claimed) == fields_of(transitions.claim_of(expected))
        assert batch.next_due_at is None
        assert expected.status is TimerStatus.EXECUTING
        assert (expected.attempt, expected.claimed_at) == (1, at(4))
        assert await store.get(timer.key) == expected

    async def test_a_claimed_timer_is_not_claimed_again(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer())
        assert len(await claim(store, leases)) == 1
        assert await claim(store, leases) == []

    async def test_claims_come_by_due_instant_then_by_timer_uuid(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n * 7 % 5)) for n in range(200)]
        await create(store, *timers)
        expected = [timer.key.id for timer in sorted(timers, key=due_order)]
        assert ids_of(await claim(store, leases)) == expected

    async def test_order_holds_across_namespaces(self, store: Store) -> None:
        await store.add_namespace(Namespace("small", 1))
        await store.add_namespace(Namespace("large", 40))
        leases = await own_shards(store)
        timers = [
            make_timer(f"t{n}", namespace=name, num_shards=num_shards, execute_at=at(n % 3))
            for name, num_shards in (("default", 16), ("small", 1), ("large", 40))
            for n in range(50)
        ]
        await create(store, *timers)
        claims = await claim(store, leases)
        expected = [timer.key for timer in sorted(timers, key=due_order)]
        assert [(claim.namespace, claim.id) for claim in claims] == expected

    async def test_the_limit_bounds_a_batch_and_the_next_one_continues(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n % 4)) for n in range(25)]
        await create(store, *timers)
        expected = [timer.key.id for timer in sorted(timers, key=due_order)]
        claimed: list[str] = []
        for size in (10, 10, 5, 0):
            batch = await claim(store, leases, limit=10)
            assert len(batch) == size
            claimed += ids_of(batch)
        assert claimed == expected

    async def test_the_bound_is_inclusive(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(
            store,
            make_timer("before", execute_at=at(9.999999)),
            make_timer("on", execute_at=at(10)),
            make_timer("after", execute_at=at(10.000001)),
        )
        batch = await store.claim_due(leases, now=at(9), until_inclusive=at(10), limit=10)
        assert ids_of(batch.claims) == ["before", "on"]
        assert batch.next_due_at == at(10.000001)

    async def test_an_overdue_timer_is_never_too_old(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("old", execute_at=at(-(10**9))))
        assert ids_of(await claim(store, leases, until_inclusive=at(0))) == ["old"]

    async def test_next_due_at_is_the_earliest_left_pending(self, store: Store) -> None:
        leases = await own_shards(store)
        empty = await store.claim_due(leases, now=at(0), until_inclusive=at(0), limit=10)
        assert (list(empty.claims), empty.next_due_at) == ([], None)

        await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(6)))
        limited = await store.claim_due(leases, now=at(9), until_inclusive=at(9), limit=2)
        assert ids_of(limited.claims) == ["t0", "t1"]
        assert limited.next_due_at == at(2)
        bounded = await store.claim_due(leases, now=at(3), until_inclusive=at(3), limit=9)
        assert ids_of(bounded.claims) == ["t2", "t3"]
        assert bounded.next_due_at == at(4)
        none_due = await store.claim_due(leases, now=at(3), until_inclusive=at(3), limit=9)
        assert (list(none_due.claims), none_due.next_due_at) == ([], at(4))
        rest = await store.claim_due(leases, now=at(9), until_inclusive=at(9), limit=9)
        assert ids_of(rest.claims) == ["t4", "t5"]
        assert rest.next_due_at is None

    async def test_only_leased_shards_are_claimed_from(self, store: Store) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(64)]
        await create(store, *timers)
        all_leases = await own_shards(store)
        mine = {shard: epoch for shard, epoch in all_leases.items() if shard in (2, 3, 11)}
        batch = await store.claim_due(mine, now=at(0), until_inclusive=at(30), limit=100)
        expected = [timer for timer in timers if timer.shard in mine and timer.due_at <= at(30)]
        later = [timer.due_at for timer in timers if timer.shard in mine and timer.due_at > at(30)]
        assert ids_of(batch.claims) == [timer.key.id for timer in expected]
        assert batch.next_due_at == min(later, default=None)

    async def test_without_leases_there_is_nothing_to_claim(self, store: Store) -> None:
        await own_shards(store)
        await create(store, make_timer())
        batch = await store.claim_due({}, now=at(9), until_inclusive=at(9), limit=9)
        assert (list(batch.claims), batch.next_due_at) == ([], None)

    @pytest.mark.parametrize("difference", [-1, 1])
    async def test_a_lease_of_another_epoch_claims_nothing(
        self, store: Store, difference: int
    ) -> None:
        await own_shards(store)
        leases = await own_shards(store)
        timer = make_timer(execute_at=at(5))
        await create(store, timer)
        wrong = {shard: Epoch(epoch + difference) for shard, epoch in leases.items()}
        assert await claim(store, wrong) == []
        assert await store.get(timer.key) == timer

    async def test_a_lost_lease_does_not_hinder_the_others(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}") for n in range(64)]
        await create(store, *timers)
        lost = shard_of("t0", 16)
        await own_shards(store, [lost], owner="node-2")
        claimed = set(ids_of(await claim(store, leases)))
        assert claimed == {timer.key.id for timer in timers if timer.shard != lost}
        assert "t0" not in claimed

    async def test_a_lease_of_a_shard_that_does_not_exist_claims_nothing(
        self, store: Store
    ) -> None:
        leases = await own_shards(store)
        await create(store, make_timer())
        assert await claim(store, {ShardNumber(4_000): Epoch(1)}) == []
        assert len(await claim(store, {**leases, ShardNumber(4_000): Epoch(1)})) == 1

    async def test_a_big_backlog_is_claimed_in_full(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n % 10)) for n in range(1_500)]
        await create(store, *timers)
        claims = await claim(store, leases, limit=2_000)
        assert ids_of(claims) == [timer.key.id for timer in sorted(timers, key=due_order)]
        answers = await store.settle([completion(claim) for claim in claims])
        assert answers == [True] * 1_500
        assert (await store.counts())[TimerStatus.COMPLETED] == 1_500

    async def test_a_timer_created_after_a_claim_is_found_by_the_next(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("first", execute_at=at(9)))
        assert ids_of(await claim(store, leases)) == ["first"]
        await create(store, make_timer("second", execute_at=at(1)))
        assert ids_of(await claim(store, leases)) == ["second"]
        assert (await stored(store, make_timer("second").key)).attempt == 1

    async def test_an_owner_can_ask_for_its_claims(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(20)]
        await create(store, *timers)
        claims = await claim(store, leases, until_inclusive=at(9))
        assert len(claims) == 10
        executing = {claimed.id: claimed for claimed in await store.executing(leases)}
        assert {id: fields_of(claimed) for id, claimed in executing.items()} == {
            claimed.id: fields_of(claimed) for claimed in claims
        }

    async def test_claims_under_other_leases_are_left_out(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(20)))
        claims = await claim(store, leases)
        one = claims[0].shard
        own = {one: leases[one]}
        assert {claimed.id for claimed in await store.executing(own)} == {
            claimed.id for claimed in claims if claimed.shard == one
        }
        assert list(await store.executing({one: Epoch(leases[one] + 1)})) == []
        assert list(await store.executing({})) == []

    async def test_a_start_leaves_out_no_timer_behind_it(self, store: Store) -> None:
        """Timers before the start may be left out or not: both are right."""
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(6)]
        await create(store, *timers)
        batch = await store.claim_due(
            await own_shards(store),
            now=at(4),
            until_inclusive=at(4),
            limit=10,
            start=ClaimStart(DuePosition(at(1), timers[1].timer_uuid), {}),
        )
        late = [claim_id for claim_id in ids_of(batch.claims) if claim_id in ("t0", "t1")]
        assert ids_of(batch.claims) == [*late, "t2", "t3", "t4"]
        left_out = 2 - len(late)
        assert batch.next_due_at in ([at(5), at(0), at(1)] if left_out else [at(5)])

    async def test_a_shard_with_an_earlier_start_is_looked_at_from_there(
        self, store: Store
    ) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(40)]
        await create(store, *timers)
        one, other = timers[3].shard, next(t.shard for t in timers if t.shard != timers[3].shard)
        batch = await store.claim_due(
            await own_shards(store),
            now=at(50),
            until_inclusive=at(50),
            limit=100,
            start=ClaimStart(DuePosition(at(50), b""), {one: at(3), other: None}),
        )
        wanted = {
            timer.key.id
            for timer in timers
            if timer.shard == other or (timer.shard == one and timer.due_at >= at(3))
        }
        assert wanted <= set(ids_of(batch.claims))

    async def test_claims_that_begin_where_the_last_one_ended_claim_all(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n // 20)) for n in range(100)]
        await create(store, *timers)
        claimed: list[str] = []
        start = None
        next_due_at: Instant | None = at(0)
        while next_due_at is not None and len(claimed) < len(timers):
            batch = await store.claim_due(
                leases, now=at(9), until_inclusive=at(9), limit=3, start=start
            )
            claimed += ids_of(batch.claims)
            next_due_at = batch.next_due_at
            if batch.claimed_until is not None:
                start = ClaimStart(batch.claimed_until, {})
        assert claimed == [timer.key.id for timer in sorted(timers, key=due_order)]
        assert next_due_at is None

    async def test_the_first_due_timers_before_an_instant_are_found(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(20)]
        await create(store, *timers)
        await claim(store, leases, until_inclusive=at(4))
        found = await store.first_due(leases, before_exclusive=at(8))
        first = {timer.shard: timer.due_at for timer in reversed(timers[5:8])}
        assert found.items() <= first.items()
        assert found[timers[5].shard] == at(5)
        assert await store.first_due(leases, before_exclusive=at(5)) == {}
        others = {shard: epoch for shard, epoch in leases.items() if shard not in first}
        assert await store.first_due(others, before_exclusive=at(8)) == {}
