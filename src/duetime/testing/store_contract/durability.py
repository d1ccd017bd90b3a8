"""Durability: every answered write is still there after the storage was opened again, and
timers of a copy are restored with their whole state."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain import transitions
from duetime.domain.callback import BusCallback, CallbackProtocol, HttpCallback, NatsCallback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus, Wait
from duetime.domain.transitions import Change, Redrive
from duetime.ports.leases import ShardState
from duetime.ports.store import CreateResult, Existence, OnExisting, PageQuery, ScanQuery
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
    hand_back,
    ids_of,
    own_shards,
    reschedule,
    stored,
)
from duetime.testing.timers import make_timer

RESTORABLE = [status for status in TimerStatus if status is not TimerStatus.EXECUTING]
YEARS = 10 * 365 * 86_400


async def durable(store: Store, reopen: Reopen) -> Store:
    """The store, opened again if it is durable."""
    return await reopen() if store.capabilities.durable else store


@pytest.mark.asyncio
class DurabilityContract:
    async def test_timers_of_every_history_survive(self, store: Store, reopen: Reopen) -> None:
        leases = await own_shards(store)
        policy = RetryPolicy()
        timers = [make_timer(f"t{n}", execute_at=at(n), retry_policy=policy) for n in range(10)]
        await create(store, *timers)
        claims = await claim(store, leases, limit=6)
        await store.settle([completion(claims[0]), failure(claims[1]), hand_back(claims[2])])
        await store.settle([reschedule(claims[3], at(70))])
        await store.cancel_if_pending(timers[6].key, at(1))
        change = Change(updated_at=at(1), delivery_id="second", execute_at=at(80))
        await store.change_if_pending(timers[7].key, change)
        await store.remove_if_pending(timers[8].key)
        await create(store, make_timer("t9", execute_at=at(90)), on_existing=OnExisting.REPLACE)

        before = [await store.get(timer.key) for timer in timers]
        counts = await store.counts()
        page = await store.page(PageQuery(namespace="default"))
        reopened = await durable(store, reopen)
        assert [await reopened.get(timer.key) for timer in timers] == before
        assert await reopened.counts() == counts
        assert await reopened.page(PageQuery(namespace="default")) == page

    async def test_the_due_order_survives(self, store: Store, reopen: Reopen) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(n * 7 % 5)) for n in range(50)]
        await create(store, *timers)
        reopened = await durable(store, reopen)
        expected = sorted(timers, key=lambda timer: (timer.due_at, timer.timer_uuid))
        claims = await claim(reopened, await own_shards(reopened))
        assert ids_of(claims) == [timer.key.id for timer in expected]

    async def test_a_canceled_timer_stays_canceled(self, store: Store, reopen: Reopen) -> None:
        await create(store, make_timer())
        await store.cancel_if_pending(make_timer().key, at(1))
        reopened = await durable(store, reopen)
        assert (await stored(reopened, make_timer().key)).status is TimerStatus.CANCELED
        assert await claim(reopened, await own_shards(reopened)) == []

    async def test_namespaces_and_leases_survive(self, store: Store, reopen: Reopen) -> None:
        await store.add_namespace(Namespace("orders", 32))
        await own_shards(store, [1, 2], owner="node-1")
        await store.release_shards({ShardNumber(2): Epoch(1)})
        reopened = await durable(store, reopen)
        shards = await reopened.shards()
        assert len(shards) == 32
        assert shards[1] == ShardState(ShardNumber(1), Epoch(1), "node-1")
        assert shards[2] == ShardState(ShardNumber(2), Epoch(1), None)
        assert await reopened.add_namespace(Namespace("orders", 8)) == Namespace("orders", 32)

    async def test_a_timer_that_was_executing_when_the_process_died_is_recovered(
        self, store: Store, reopen: Reopen
    ) -> None:
        timer = make_timer()
        await create(store, timer)
        await claim(store, await own_shards(store))
        executing = await stored(store, timer.key)
        reopened = await durable(store, reopen)
        assert await reopened.get(timer.key) == executing
        leases = await own_shards(reopened)
        assert list(await reopened.recover(leases)) == [timer.due_at]
        assert await reopened.get(timer.key) == transitions.recovered(executing)
        assert ids_of(await claim(reopened, leases)) == [timer.key.id]

    async def test_an_owner_settles_across_a_reopening(self, store: Store, reopen: Reopen) -> None:
        await create(store, make_timer())
        (claimed,) = await claim(store, await own_shards(store))
        reopened = await durable(store, reopen)
        assert await reopened.settle([completion(claimed)]) == [True]

    async def test_the_last_instant_of_a_right_clock_survives(
        self, store: Store, reopen: Reopen
    ) -> None:
        assert await store.clock_believed_at() is None
        await create(store, make_timer("t", created_at=at(9), execute_at=at(10)))
        assert await store.clock_believed_at() is None
        # The clock may be set back, so the last one counts, and not the greatest.
        for seconds in (1, 50, 2):
            await store.mark_clock_believed(at(seconds))
        reopened = await durable(store, reopen)
        assert await reopened.clock_believed_at() == at(2)

    async def test_pruned_and_removed_timers_stay_gone(self, store: Store, reopen: Reopen) -> None:
        pruned, removed = make_timer("pruned"), make_timer("removed")
        await create(store, pruned, removed)
        await store.cancel_if_pending(pruned.key, at(1))
        await store.prune(finished_before=at(FAR_FUTURE), limit=10)
        await store.remove_if_pending(removed.key)
        reopened = await durable(store, reopen)
        assert await reopened.get(pruned.key) is None
        assert await reopened.get(removed.key) is None


def with_history(id: str, status: TimerStatus, **changes: object) -> Timer:
    """A timer with every member set, as it may be after years."""
    is_done = status in (TimerStatus.COMPLETED, TimerStatus.FAILED)
    timer = make_timer(
        id,
        execute_at=at(-YEARS),
        created_at=at(-YEARS - 100),
        callback=HttpCallback(
            url="https://example.com/ä",
            headers={"X-A": "1"},
            payload=Raw(b'{"big": 1180591620717411303424, "float": 1.10}'),
            timeout_ms=1_500,
            protocol=CallbackProtocol.ANSWER,
        ),
        retry_policy=RetryPolicy(max_retries=7, backoff_multiplier=1.5),
        metadata=Raw(b'{"team":\n "shop"}'),
        correlation_id="correlation",
        command_order=42,
        fingerprint=bytes(range(16)),
    )
    attempt = Attempt(
        number=1,
        due_at=at(-YEARS),
        claimed_at=at(-YEARS),
        sent_at=at(-YEARS + 1),
        answered_at=at(-YEARS + 2),
        recorded_outcome=AttemptOutcome.FAILED,
        error='HTTP 500 "ä"',
        answer="sorry\0",
        waits=(Wait("claim", 20_000), Wait("word of a later release", 1)),
    )
    state = replace(
        timer,
        status=status,
        due_at=at(-YEARS + 60),
        updated_at=at(-YEARS + 2),
        attempt=3,
        failures=2,
        claim_number=5,
        attempts=(attempt, replace(attempt, number=2, answer=None)),
        last_error='HTTP 500 "ä"',
        executed_at=at(-YEARS + 2) if is_done else None,
    )
    return replace(state, **changes)


def created(*timers: Timer) -> list[CreateResult]:
    return [CreateResult(Existence.CREATED, timer) for timer in timers]


@pytest.mark.asyncio
class RestoringContract:
    @pytest.mark.parametrize("status", RESTORABLE)
    async def test_a_timer_is_restored_with_its_whole_state(
        self, store: Store, reopen: Reopen, status: TimerStatus
    ) -> None:
        timer = with_history("t", status)
        assert await store.restore([timer]) == created(timer)
        assert await store.get(timer.key) == timer
        assert await store.counts() == dict.fromkeys(TimerStatus, 0) | {status: 1}
        assert await store.scan(ScanQuery(namespace="default", status=status)) == [timer]
        page = await store.page(PageQuery(namespace="default"))
        assert (page.timers, page.total) == ([timer], 1)
        reopened = await reopen() if store.capabilities.durable else store
        assert await reopened.get(timer.key) == timer

    async def test_every_kind_of_callback_is_restored(self, store: Store) -> None:
        callbacks = {
            "http": HttpCallback(url="http://example.com/", payload=Raw(b"null")),
            "nats": NatsCallback(topic="a.b", key="c", headers={"X": "1"}, ack=True),
            "bus": BusCallback(),
        }
        timers = [
            with_history(f"{kind}-{status.label}", status, callback=callback)
            for kind, callback in callbacks.items()
            for status in RESTORABLE
        ]
        assert await store.restore(timers) == created(*timers)
        assert [await store.get(timer.key) for timer in timers] == timers

    async def test_a_restored_pending_timer_fires_when_it_is_due(self, store: Store) -> None:
        leases = await own_shards(store)
        overdue = with_history("overdue", TimerStatus.PENDING)
        later = with_history("later", TimerStatus.PENDING, execute_at=at(60), due_at=at(90))
        finished = [with_history(s.label, s) for s in RESTORABLE if s.is_finished]
        await store.restore([later, *finished, overdue])
        (claimed,) = await claim(store, leases, until_inclusive=at(0))
        assert (claimed.id, claimed.attempt, claimed.claim_number) == ("overdue", 4, 6)
        assert (claimed.failures, claimed.attempts) == (2, overdue.attempts)
        assert await claim(store, leases, until_inclusive=Instant(at(90) - 1)) == []
        assert ids_of(await claim(store, leases)) == ["later"]
        assert await store.settle([completion(claimed)]) == [True]
        assert (await stored(store, overdue.key)).status is TimerStatus.COMPLETED

    async def test_an_executing_timer_is_restored_as_one_that_was_lost(self, store: Store) -> None:
        executing = with_history("t", TimerStatus.EXECUTING, epoch=Epoch(7), claimed_at=at(-9))
        timer = transitions.restored(executing)
        assert (timer.status, timer.epoch) == (TimerStatus.PENDING, 0)
        assert timer.attempts[-1].outcome is AttemptOutcome.INTERRUPTED
        await store.restore([timer])
        assert await store.get(timer.key) == timer
        (claimed,) = await claim(store, await own_shards(store))
        assert (claimed.attempt, claimed.claim_number) == (4, 6)

    @pytest.mark.parametrize("status", TimerStatus)
    async def test_an_existing_timer_is_left_alone(self, store: Store, status: TimerStatus) -> None:
        existing = await brought_to(store, await own_shards(store), make_timer("t"), status)
        new = with_history("new", TimerStatus.COMPLETED)
        twins = [with_history("t", status) for status in RESTORABLE]
        for twin in twins:
            (met,) = await store.restore([twin])
            assert met == CreateResult(Existence.EXISTING, existing)
        assert await store.restore([twins[1], new]) == [
            CreateResult(Existence.EXISTING, existing),
            *created(new),
        ]
        assert await store.get(existing.key) == existing
        assert sum((await store.counts()).values()) == 2

    async def test_a_restored_timer_exists_for_creates_and_restores(self, store: Store) -> None:
        timers = [with_history(status.label, status) for status in RESTORABLE]
        await store.restore(timers)
        existing = [CreateResult(Existence.EXISTING, timer) for timer in timers]
        assert await store.restore(timers) == existing
        assert await create(store, *(make_timer(timer.key.id) for timer in timers)) == existing

    async def test_restored_timers_live_on_like_others(self, store: Store) -> None:
        timers = [with_history(status.label, status) for status in RESTORABLE]
        await store.restore(timers)
        pending, completed, failed, canceled = timers
        answer = await store.cancel_if_pending(pending.key, at(1))
        assert answer is not None
        assert answer.timer == transitions.canceled(pending, at(1))
        redrive = Redrive(key=failed.key, delivery_id="again")
        (redriven,) = await store.redrive_if_failed([redrive], at(5))
        assert redriven == transitions.redriven(failed, redrive, at(5))
        (claimed,) = await claim(store, await own_shards(store))
        assert await store.settle([completion(claimed)]) == [True]
        assert await store.prune(finished_before=at(0), limit=10) == 2
        assert await store.get(completed.key) is None
        assert await store.get(canceled.key) is None
        assert await store.prune(finished_before=at(FAR_FUTURE), limit=10) == 2
        assert sum((await store.counts()).values()) == 0

    async def test_many_timers_of_several_namespaces_are_restored_at_once(
        self, store: Store
    ) -> None:
        await store.add_namespace(Namespace("orders", 4))
        timers = [
            replace(
                with_history(f"t{n}", RESTORABLE[n % len(RESTORABLE)]),
                key=TimerKey("orders" if n % 3 else "default", f"t{n}"),
                timer_uuid=n.to_bytes(16, "big"),
                updated_at=at(-(n % 5) * 40_000),
            )
            for n in range(300)
        ]
        existing = timers[::50]
        await store.restore(existing)
        results = await store.restore(timers)
        expected = [Existence.EXISTING if t in existing else Existence.CREATED for t in timers]
        assert [result.existence for result in results] == expected
        assert [result.timer for result in results] == timers
        for name in ("default", "orders"):
            of_name = [timer for timer in timers if timer.key.namespace == name]
            counts = {
                status: sum(timer.status is status for timer in of_name) for status in TimerStatus
            }
            assert await store.counts(name) == counts
            found = await store.scan(ScanQuery(namespace=name, limit=1_000))
            assert found == of_name

    async def test_nothing_is_restored_for_no_timers(self, store: Store) -> None:
        assert await store.restore([]) == []
