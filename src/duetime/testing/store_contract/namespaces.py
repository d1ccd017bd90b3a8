"""Namespaces: what an operator set for each is kept, and changes only when told to."""

import pytest

from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.testing.store_contract.steps import Reopen, Store, claim, create, own_shards, stored
from duetime.testing.timers import make_timer

DEFAULT = Namespace("default", 16)

EVERY_OPTION = NamespaceOptions(
    retry_policy=RetryPolicy(
        max_retries=7,
        max_duration_ms=31_536_000_000,
        initial_interval_ms=1,
        backoff_multiplier=1.1,
        max_interval_ms=86_400_000,
    ),
    retention_seconds=10**10,
    concurrency=3,
    max_payload_bytes=2**31,
)
OPTIONS = [
    NamespaceOptions(),
    EVERY_OPTION,
    NamespaceOptions(retry_policy=RetryPolicy(max_retries=0, backoff_multiplier=1.0)),
    NamespaceOptions(retention_seconds=0),
    NamespaceOptions(concurrency=1),
    NamespaceOptions(max_payload_bytes=0),
]
NAMES = ["Zebra", "apple", "a-b", "a", "ab", "\u00e9", "e\u0301", "\uffee", "\U0001f570", "'", "a%"]
"""Their order by code point is neither that of a dictionary nor that of UTF-16."""


@pytest.mark.asyncio
class NamespacesContract:
    @pytest.mark.parametrize("options", OPTIONS)
    async def test_options_are_kept_as_they_were_given(
        self, store: Store, options: NamespaceOptions
    ) -> None:
        namespace = Namespace("orders", 8, options)
        assert await store.add_namespace(namespace) == namespace
        assert list(await store.namespaces()) == [DEFAULT, namespace]

    async def test_adding_an_existing_one_changes_nothing_of_it(self, store: Store) -> None:
        kept = Namespace("orders", 8, EVERY_OPTION)
        await store.add_namespace(kept)
        assert await store.add_namespace(Namespace("orders", 4)) == kept
        other = Namespace("orders", 8, NamespaceOptions(concurrency=9))
        assert await store.add_namespace(other) == kept
        assert list(await store.namespaces()) == [DEFAULT, kept]

    @pytest.mark.parametrize("options", OPTIONS)
    async def test_a_change_gives_other_options_and_keeps_the_shards(
        self, store: Store, options: NamespaceOptions
    ) -> None:
        await store.add_namespace(Namespace("orders", 8, EVERY_OPTION))
        changed = Namespace("orders", 8, options)
        assert await store.change_namespace("orders", options) == changed
        assert await store.add_namespace(Namespace("orders", 2)) == changed
        assert list(await store.namespaces()) == [DEFAULT, changed]

    async def test_what_does_not_exist_is_not_changed(self, store: Store) -> None:
        assert await store.change_namespace("nowhere", EVERY_OPTION) is None
        assert await store.change_namespace("Default", EVERY_OPTION) is None
        assert list(await store.namespaces()) == [DEFAULT]

    async def test_they_come_in_the_order_of_their_names(self, store: Store) -> None:
        for name in NAMES:
            await store.add_namespace(Namespace(name, 1))
        told = [namespace.name for namespace in await store.namespaces()]
        assert told == sorted([*NAMES, "default"])

    async def test_timers_do_not_notice_a_change(self, store: Store) -> None:
        timer = make_timer(retry_policy=RetryPolicy(max_retries=1))
        await create(store, timer)
        await store.change_namespace("default", EVERY_OPTION)
        assert await stored(store, timer.key) == timer
        (claimed,) = await claim(store, await own_shards(store))
        assert claimed.retry_policy == timer.retry_policy

    async def test_options_survive(self, store: Store, reopen: Reopen) -> None:
        await store.add_namespace(Namespace("orders", 8, EVERY_OPTION))
        await store.change_namespace("default", NamespaceOptions(concurrency=2))
        before = list(await store.namespaces())
        reopened = await reopen() if store.capabilities.durable else store
        assert list(await reopened.namespaces()) == before
        assert before == [
            Namespace("default", 16, NamespaceOptions(concurrency=2)),
            Namespace("orders", 8, EVERY_OPTION),
        ]
