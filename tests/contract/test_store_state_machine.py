"""Random histories: every store gives the answers of the model."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import UNSET, Raw
from msgspec.structs import asdict

from duetime.domain.callback import BusCallback, HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change, Redrive, restored
from duetime.ports.store import (
    CreateRequest,
    OnExisting,
    PageQuery,
    ScanQuery,
    SortField,
)
from duetime.stores.postgres.inspection import census
from duetime.stores.sqlite import creating
from duetime.testing.timers import make_timer
from tests.contract.histories import (
    CALLBACKS,
    CLAIMS_REMEMBERED,
    NAMESPACES,
    OPTIONS,
    POLICIES,
    Guard,
    LeaseKind,
    OutcomeKind,
    fields_by_key,
    guarded,
    guards,
    keys,
    lease_kinds,
    limits,
    namespaces,
    outcome_kinds,
    seconds,
    statuses,
)
from tests.contract.history_machine import HistoryMachine
from tests.contract.stores import STORES, site_of
from tests.effort import scaled

EXAMPLES = {"memory": 50, "sqlite": 50, "sqlite large batches": 10, "postgresql": 20}


class StoreMachine(HistoryMachine):
    """The operations of the store, with random values."""

    @initialize()
    def add_namespaces(self) -> None:
        for namespace in NAMESPACES:
            assert self.run(self.store.add_namespace(namespace)) == namespace
            self.model.add_namespace(namespace)

    @rule(
        wishes=st.lists(
            st.tuples(keys, seconds, st.sampled_from(OnExisting), st.sampled_from(POLICIES)),
            min_size=1,
            max_size=6,
        )
    )
    def create(self, wishes: list[tuple[TimerKey, int, OnExisting, RetryPolicy | None]]) -> None:
        requests = [
            CreateRequest(
                make_timer(
                    key.id,
                    namespace=key.namespace,
                    num_shards=self.model.known_namespaces[key.namespace].num_shards,
                    execute_at=self.after(delay),
                    created_at=self.now,
                    delivery_id=self.new_delivery_id(),
                    retry_policy=policy,
                ),
                on_existing,
            )
            for key, delay, on_existing, policy in wishes
        ]
        assert self.run(self.store.create(requests)) == self.model.create(requests)

    @rule(step=st.integers(1, 30))
    def advance(self, step: int) -> None:
        self.now = self.after(step)

    @rule(kind=lease_kinds, horizon=seconds, limit=limits)
    def claim(self, kind: LeaseKind, horizon: int, limit: int) -> None:
        leases = self.leases(kind)
        until = self.after(horizon)
        answer = self.run(
            self.store.claim_due(leases, now=self.now, until_inclusive=until, limit=limit)
        )
        expected = self.model.claim_due(leases, now=self.now, until_inclusive=until, limit=limit)
        assert [asdict(claim) for claim in answer.claims] == [
            asdict(claim) for claim in expected.claims
        ]
        assert answer.next_due_at == expected.next_due_at
        self.claims = [*self.claims, *expected.claims][-CLAIMS_REMEMBERED:]

    @precondition(lambda self: self.claims)
    @rule(
        wishes=st.lists(
            st.tuples(st.integers(0, CLAIMS_REMEMBERED - 1), outcome_kinds, guards, seconds),
            min_size=1,
            max_size=6,
        )
    )
    def settle(self, wishes: list[tuple[int, OutcomeKind, Guard, int]]) -> None:
        settlements = [
            guarded(self.settlement(claim, kind, delay), guard)
            for index, kind, guard, delay in wishes
            for claim in [self.claims[-1 - index % len(self.claims)]]
        ]
        assert self.run(self.store.settle(settlements)) == self.model.settle(settlements)

    @rule(kind=lease_kinds, horizon=seconds)
    def first_due(self, kind: LeaseKind, horizon: int) -> None:
        leases, before = self.leases(kind), self.after(horizon)
        found = self.run(self.store.first_due(leases, before_exclusive=before))
        assert found.keys() <= leases.keys()
        first = min(found.values(), default=None)
        assert first == self.model.first_due(leases, before_exclusive=before)

    @rule(kind=lease_kinds)
    def executing(self, kind: LeaseKind) -> None:
        leases = self.leases(kind)
        claims = self.run(self.store.executing(leases))
        assert fields_by_key(claims) == fields_by_key(self.model.executing(leases))

    @rule(
        key=keys,
        delay=st.none() | seconds,
        callback=st.just(UNSET) | st.sampled_from(CALLBACKS),
        metadata=st.sampled_from([UNSET, None, Raw(b"null"), Raw(b'{"a":1}')]),
        policy=st.just(UNSET) | st.sampled_from(POLICIES),
    )
    def change(
        self,
        key: TimerKey,
        delay: int | None,
        callback: HttpCallback | BusCallback,
        metadata: Raw | None,
        policy: RetryPolicy | None,
    ) -> None:
        change = Change(
            updated_at=self.now,
            delivery_id=self.new_delivery_id(),
            execute_at=UNSET if delay is None else self.after(delay),
            callback=callback,
            metadata=metadata,
            retry_policy=policy,
        )
        answer = self.run(self.store.change_if_pending(key, change))
        assert answer == self.model.change_if_pending(key, change)

    @rule(key=keys, age=st.none() | st.integers(0, 1))
    def cancel(self, key: TimerKey, age: int | None) -> None:
        timer = self.model.timers.get(key)
        only = None if timer is None or age is None else Instant(timer.updated_at - age)
        answer = self.run(self.store.cancel_if_pending(key, self.now, only_updated_at=only))
        assert answer == self.model.cancel_if_pending(key, self.now, only)

    @rule(key=keys)
    def remove(self, key: TimerKey) -> None:
        answer = self.run(self.store.remove_if_pending(key))
        assert answer == self.model.remove_if_pending(key)

    @rule(key=keys, delay=seconds)
    def remove_and_create(self, key: TimerKey, delay: int) -> None:
        """A new timer of the same key, which the claims of the old one must leave alone."""
        self.remove(key)
        self.now = Instant(self.now + 1)
        self.create([(key, delay, OnExisting.KEEP, None)])

    @rule(chosen=st.lists(keys, max_size=6))
    def redrive(self, chosen: list[TimerKey]) -> None:
        redrives = [Redrive(key=key, delivery_id=self.new_delivery_id()) for key in chosen]
        answer = self.run(self.store.redrive_if_failed(redrives, self.now))
        assert answer == self.model.redrive_if_failed(redrives, self.now)

    @rule(chosen=st.lists(keys, max_size=6, unique=True))
    def restore(self, chosen: list[TimerKey]) -> None:
        """Restore timers from the last copy; if it has none of them, make another copy."""
        timers = [self.copied[key] for key in chosen if key in self.copied]
        assert self.run(self.store.restore(timers)) == self.model.restore(timers)
        if not timers:
            self.copied = {key: restored(timer) for key, timer in self.model.timers.items()}

    @rule(
        name=st.sampled_from(["default", "small", "later", "Later"]),
        options=st.sampled_from(OPTIONS),
        num_shards=st.integers(1, 4),
    )
    def add_namespace(self, name: str, options: NamespaceOptions, num_shards: int) -> None:
        new = Namespace(name, num_shards, options)
        assert self.run(self.store.add_namespace(new)) == self.model.add_namespace(new)

    @rule(name=st.sampled_from(["small", "later", "nowhere"]), options=st.sampled_from(OPTIONS))
    def change_namespace(self, name: str, options: NamespaceOptions) -> None:
        answer = self.run(self.store.change_namespace(name, options))
        assert answer == self.model.change_namespace(name, options)

    @rule(shards=st.sets(st.integers(0, 3), min_size=1), lag=st.sampled_from([0, 0, 0, 1]))
    def take_over(self, shards: set[int], lag: int) -> None:
        """Another node takes shards, leaving what their owner was executing as it is."""
        seen = {
            (shard := ShardNumber(number)): Epoch(self.model.epochs[shard] - lag)
            for number in shards
        }
        answer = self.run(self.store.claim_shards(seen, owner="node-2"))
        assert answer == self.model.claim_shards(seen, owner="node-2")

    @rule()
    def crash(self) -> None:
        """The process dies; the next one opens the storage and takes every shard."""
        self.run(self.storage.reopen())
        assert list(self.run(self.store.shards())) == self.model.shards()
        seen = dict(self.model.epochs)
        answer = self.run(self.store.claim_shards(seen, owner="node-1"))
        assert answer == self.model.claim_shards(seen, owner="node-1")

    @rule(number=st.integers(0, 3), lag=st.integers(0, 1))
    def release(self, number: int, lag: int) -> None:
        shard = ShardNumber(number)
        epoch = Epoch(self.model.epochs[shard] - lag)
        answer = self.run(self.store.release_shards({shard: epoch}))
        assert answer == self.model.release_shards({shard: epoch})

    @rule(kind=lease_kinds)
    def recover(self, kind: LeaseKind) -> None:
        leases = self.leases(kind)
        answer = self.run(self.store.recover(leases))
        assert sorted(answer) == sorted(self.model.recover(leases))

    @rule(age=st.integers(-1, 40), limit=limits, namespace=st.none() | namespaces)
    def prune(self, age: int, limit: int, namespace: Namespace | None) -> None:
        before = self.after(-age)
        name = None if namespace is None else namespace.name
        candidates = self.model.prunable(finished_before=before, namespace=name)
        answer = self.run(self.store.prune(finished_before=before, limit=limit, namespace=name))
        assert answer == min(limit, len(candidates))
        gone = [t for t in candidates if self.run(self.store.get(t.key)) is None]
        # Timers that finished at the same instant may be pruned in any order.
        assert [t.updated_at for t in gone] == [t.updated_at for t in candidates[:answer]]
        self.model.forget([timer.key for timer in gone])

    @rule(
        namespace=namespaces,
        status=statuses,
        sort=st.sampled_from(SortField),
        descending=st.booleans(),
        limit=limits,
        offset=st.integers(0, 6),
    )
    def page(
        self,
        namespace: Namespace,
        status: TimerStatus | None,
        sort: SortField,
        descending: bool,
        limit: int,
        offset: int,
    ) -> None:
        query = PageQuery(
            namespace=namespace.name,
            status=status,
            sort=sort,
            descending=descending,
            limit=limit,
            offset=offset,
        )
        assert self.run(self.store.page(query)) == self.model.page(query)

    @rule(
        namespace=namespaces,
        status=statuses,
        first=st.none() | seconds,
        end=st.none() | seconds,
        after=st.none() | st.tuples(seconds, keys),
        at_a_timer=st.booleans(),
        descending=st.booleans(),
        live_only=st.booleans(),
        limit=limits,
    )
    def scan(
        self,
        namespace: Namespace,
        status: TimerStatus | None,
        first: int | None,
        end: int | None,
        after: tuple[int, TimerKey] | None,
        at_a_timer: bool,
        descending: bool,
        live_only: bool,
        limit: int,
    ) -> None:
        query = ScanQuery(
            namespace=namespace.name,
            status=status,
            execute_from_inclusive=None if first is None else self.after(first),
            execute_until_exclusive=None if end is None else self.after(end),
            after_exclusive=None if after is None else self.place(*after, at_a_timer),
            descending=descending,
            live_only=live_only,
            limit=limit,
        )
        assert self.run(self.store.scan(query)) == self.model.scan(query)
        assert self.run(self.store.count_scan(query)) == self.model.count_scan(query)

    @rule(key=keys)
    def get(self, key: TimerKey) -> None:
        assert self.run(self.store.get(key)) == self.model.get(key)

    @invariant()
    def the_store_holds_what_the_model_holds(self) -> None:
        for namespace in self.model.known_namespaces:
            query = PageQuery(namespace=namespace, limit=100)
            assert self.run(self.store.page(query)) == self.model.page(query)
            assert self.run(self.store.counts(namespace)) == self.model.counts(namespace)
        if self.model.known_namespaces:
            assert self.run(self.store.counts()) == self.model.counts()
            assert list(self.run(self.store.namespaces())) == self.model.namespaces()

    @invariant()
    def the_store_counts_what_the_model_holds(self) -> None:
        counted = self.run(self.store.count_by_namespace(most_names=10))
        live = self.run(self.store.count_live(self.now, most=1_000))
        assert counted is not None
        assert live is not None
        for namespace in self.model.known_namespaces:
            counts = self.model.counts(namespace)
            assert counted.pending.get(namespace, 0) == counts[TimerStatus.PENDING]
            assert counted.failed.get(namespace, 0) == counts[TimerStatus.FAILED]
            assert live.executing.get(namespace, 0) == counts[TimerStatus.EXECUTING]
        assert sum(live.overdue.values()) == self.model.overdue(self.now)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name.split()[0] in STORES])
def test_random_histories(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "sqlite large batches":
        monkeypatch.setattr(creating, "LARGEST_INSERT", 1)
    monkeypatch.setattr(census, "FOLD_FROM_ROWS", 5)

    class Machine(StoreMachine):
        runner = asyncio.Runner()
        site = site_of(name.split()[0], tmp_path, request)

    with Machine.runner:
        try:
            run_state_machine_as_test(
                Machine,
                settings=settings(max_examples=scaled(EXAMPLES[name]), stateful_step_count=50),
            )
        finally:
            Machine.runner.run(Machine.site.close())
