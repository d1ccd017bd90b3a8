"""How namespaces are created, and how nodes learn of each other's."""

import asyncio
from collections.abc import Callable, Collection, Sequence

import pytest
import structlog
from msgspec.structs import replace

from duetime.domain.errors import InvalidInput, NamespaceNotFound, SettingsError, StoreUnavailable
from duetime.domain.namespace import ConfiguredNamespace, Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.ports.store import NamespaceChanges
from duetime.service.namespaces import REFRESH_SECONDS, NamespaceRefresher, Namespaces
from duetime.stores.memory import MemoryStore
from duetime.testing import LoopClock, VirtualClock, on_virtual_time

ONE_AT_A_TIME = NamespaceOptions(concurrency=1)

Change = Callable[[NamespaceOptions], NamespaceOptions]


def unchanged(options: NamespaceOptions) -> NamespaceOptions:
    return options


def concurrency(number: int | None) -> Change:
    return lambda options: replace(options, concurrency=number)


def retention(seconds: int) -> Change:
    return lambda options: replace(options, retention_seconds=seconds)


class CountedStore(MemoryStore):
    """Counts reads of all its namespaces, and fails or waits when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None

    async def namespaces(self) -> Sequence[Namespace]:
        self.reads += 1
        await self._answer()
        return await super().namespaces()

    async def find_namespaces(self, names: Collection[str]) -> Sequence[Namespace]:
        await self._answer()
        return await super().find_namespaces(names)

    async def _answer(self) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure


class SharedStore(CountedStore):
    """Answers changes, among which there are no namespaces that are gone."""

    async def namespaces_changed(self, since: str | None) -> NamespaceChanges:
        await self._answer()
        everything = await super().namespaces_changed(None)
        return replace(everything, are_all=since is None)


class OvertakenStore(MemoryStore):
    """Another node adds the namespace at the last moment."""

    def __init__(self, overtaking: Namespace) -> None:
        super().__init__()
        self._overtaking = overtaking

    async def add_namespace(self, namespace: Namespace, *, in_reserve: bool = False) -> Namespace:
        await super().add_namespace(self._overtaking)
        return await super().add_namespace(namespace)


async def test_configured_namespaces_exist() -> None:
    namespaces = Namespaces(MemoryStore())
    await namespaces.add_all([ConfiguredNamespace("default"), ConfiguredNamespace("billing", 4)])
    assert await namespaces.named("billing") == Namespace("billing", 4)
    assert {each.name: each.num_shards for each in namespaces} == {"default": 16, "billing": 4}
    with pytest.raises(NamespaceNotFound, match="'other'"):
        await namespaces.named("other")


async def test_configured_options_win_and_absent_ones_keep_the_options_of_the_store() -> None:
    store = MemoryStore()
    await store.add_namespace(Namespace("a", 2, ONE_AT_A_TIME))
    await store.add_namespace(Namespace("b", 2, ONE_AT_A_TIME))
    namespaces = Namespaces(store)
    two = NamespaceOptions(concurrency=2)
    await namespaces.add_all([ConfiguredNamespace("a"), ConfiguredNamespace("b", None, two)])
    assert list(namespaces) == [Namespace("a", 2, ONE_AT_A_TIME), Namespace("b", 2, two)]


async def test_a_restart_does_not_open_a_namespace_that_is_being_deleted() -> None:
    store = MemoryStore()
    configured = [ConfiguredNamespace("a", 2, ONE_AT_A_TIME)]
    await Namespaces(store).add_all(configured)
    await Namespaces(store).mark_deleting("a", deleting=True)
    namespaces = Namespaces(store)
    await namespaces.add_all(configured)
    assert list(namespaces) == [Namespace("a", 2, replace(ONE_AT_A_TIME, deleting=True))]


async def test_another_number_of_shards_is_refused_and_the_existing_one_named() -> None:
    store = MemoryStore()
    await Namespaces(store).add_all(
        [ConfiguredNamespace("default", 16), ConfiguredNamespace("a", 1)]
    )
    configured = [
        ConfiguredNamespace("default", 32),
        ConfiguredNamespace("a", 2),
        ConfiguredNamespace("b"),
    ]
    with pytest.raises(SettingsError) as caught:
        await Namespaces(store).add_all(configured)
    assert caught.value.message.splitlines() == [
        "namespace 'default': num_shards was fixed at 16 when the namespace was created and "
        "cannot be changed",
        "namespace 'a': num_shards was fixed at 1 when the namespace was created and "
        "cannot be changed",
    ]


async def test_impossible_namespaces_are_refused_together_before_any_is_made() -> None:
    store = MemoryStore()
    impossible = [
        ConfiguredNamespace(""),
        ConfiguredNamespace("x" * 256),
        ConfiguredNamespace("a\0b"),
        ConfiguredNamespace("a", 0),
        ConfiguredNamespace("a", 4097),
        ConfiguredNamespace("a", 1, NamespaceOptions(retry_policy=RetryPolicy(max_retries=101))),
        ConfiguredNamespace("a", 1, NamespaceOptions(retention_seconds=-1)),
        ConfiguredNamespace("a", 1, NamespaceOptions(concurrency=0)),
        ConfiguredNamespace("a", 1, NamespaceOptions(max_payload_bytes=0)),
    ]
    with pytest.raises(SettingsError) as caught:
        await Namespaces(store).add_all([ConfiguredNamespace("fine"), *impossible])
    assert len(caught.value.message.splitlines()) == len(impossible)
    assert await store.namespaces() == []


UNTYPEABLE = ["a b", "a$b", "it's", "*", "-a", "a\u00a0b"]


@pytest.mark.parametrize("name", UNTYPEABLE)
async def test_a_new_namespace_has_a_name_that_can_be_typed(name: str) -> None:
    store = MemoryStore()
    namespaces = Namespaces(store)
    with pytest.raises(InvalidInput, match="namespace must not"):
        await namespaces.put(name, None, unchanged)
    with pytest.raises(SettingsError, match="namespace must not"):
        await namespaces.add_all([ConfiguredNamespace(name)])
    assert await store.namespaces() == []


@pytest.mark.parametrize("name", UNTYPEABLE)
async def test_an_existing_namespace_may_have_any_name(name: str) -> None:
    """It may be a tenant of the bus, or older than the rule."""
    store = MemoryStore()
    namespaces = Namespaces(store)
    await namespaces.provide([name])
    await namespaces.add_all([ConfiguredNamespace(name)])
    assert (await namespaces.put(name, None, concurrency(1))).options == ONE_AT_A_TIME


async def test_put_creates_and_changes() -> None:
    store = MemoryStore()
    namespaces = Namespaces(store)
    assert await namespaces.put("a", 4, concurrency(1)) == Namespace("a", 4, ONE_AT_A_TIME)
    changed = Namespace("a", 4, NamespaceOptions(concurrency=1, retention_seconds=60))
    assert await namespaces.put("a", None, retention(60)) == changed
    assert namespaces.known("a") == changed
    assert await store.namespaces() == [changed]
    assert await namespaces.put("b", None, unchanged) == Namespace("b")


async def test_put_changes_a_tenant_of_the_bus_whatever_its_name() -> None:
    namespaces = Namespaces(MemoryStore())
    await namespaces.provide(["a b"])
    changed = await namespaces.put("a b", None, concurrency(3))
    assert (changed.name, changed.options.concurrency) == ("a b", 3)
    with pytest.raises(InvalidInput, match="must not contain ' '"):
        await namespaces.put("a c", None, concurrency(3))


async def test_put_refuses_other_shards_and_bad_options_and_changes_nothing() -> None:
    store = MemoryStore()
    namespaces = Namespaces(store)
    await namespaces.put("a", 4, concurrency(1))
    with pytest.raises(InvalidInput, match="num_shards was fixed at 4"):
        await namespaces.put("a", 5, concurrency(2))
    with pytest.raises(InvalidInput, match="concurrency must be from 1"):
        await namespaces.put("a", 4, concurrency(0))
    with pytest.raises(InvalidInput, match="concurrency must be from 1"):
        await namespaces.put("b", 4, concurrency(0))
    assert await store.namespaces() == [Namespace("a", 4, ONE_AT_A_TIME)]


async def test_put_changes_a_namespace_that_another_node_added_just_before() -> None:
    store = OvertakenStore(Namespace("a", 4, NamespaceOptions(retention_seconds=60)))
    both = Namespace("a", 4, NamespaceOptions(retention_seconds=60, concurrency=1))
    assert await Namespaces(store).put("a", None, concurrency(1)) == both
    assert await store.namespaces() == [both]


async def test_put_refuses_other_shards_than_another_node_chose_just_before() -> None:
    store = OvertakenStore(Namespace("a", 4))
    with pytest.raises(InvalidInput, match="num_shards was fixed at 4"):
        await Namespaces(store).put("a", 8, unchanged)


async def test_puts_at_the_same_time_lose_nothing() -> None:
    store = MemoryStore()
    namespaces = Namespaces(store)
    await asyncio.gather(
        namespaces.put("a", None, concurrency(1)), namespaces.put("a", None, retention(60))
    )
    (stored,) = await store.namespaces()
    assert stored.options == NamespaceOptions(concurrency=1, retention_seconds=60)


async def test_new_shards_are_owned_before_the_namespace_is_known() -> None:
    known_when_told: list[Namespace | None] = []

    async def own_new_shards() -> None:
        known_when_told.append(namespaces.known("a"))

    namespaces = Namespaces(MemoryStore(), own_new_shards=own_new_shards)
    await namespaces.add_all([ConfiguredNamespace("default")])
    assert known_when_told == []
    await namespaces.put("as-many", None, unchanged)
    assert known_when_told == []
    await namespaces.put("a", 32, unchanged)
    assert known_when_told == [None]
    await namespaces.put("a", None, concurrency(1))
    await namespaces.refresh()
    assert known_when_told == [None]


async def test_new_shards_that_could_not_be_owned_are_owned_later() -> None:
    failures: list[Exception] = [StoreUnavailable("away"), StoreUnavailable("away")]
    owned = 0

    async def own_new_shards() -> None:
        nonlocal owned
        if failures:
            raise failures.pop()
        owned += 1

    namespaces = Namespaces(MemoryStore(), own_new_shards=own_new_shards)
    with pytest.raises(StoreUnavailable):
        await namespaces.put("a", None, unchanged)
    with pytest.raises(StoreUnavailable):
        await namespaces.named("a")
    assert await namespaces.named("a") == Namespace("a")
    assert owned == 1


async def test_new_shards_of_another_node_are_owned_when_it_is_looked_up() -> None:
    told = asyncio.Event()

    async def own_new_shards() -> None:
        told.set()

    store = MemoryStore()
    namespaces = Namespaces(store, own_new_shards=own_new_shards)
    await Namespaces(store).put("a", 2, unchanged)
    assert await namespaces.named("a") == Namespace("a", 2)
    assert told.is_set()


@pytest.mark.parametrize("failure", [None, StoreUnavailable("away")])
async def test_callers_that_wait_for_a_read_share_the_next_one(failure: Exception | None) -> None:
    store = CountedStore()
    namespaces = Namespaces(store)
    store.gate.clear()
    first = asyncio.create_task(namespaces.refresh())
    while store.reads == 0:
        await VirtualClock().sleep(0)
    await MemoryStore.add_namespace(store, Namespace("late"))
    waiting = [asyncio.create_task(namespaces.refresh()) for _ in range(50)]
    store.failure = failure
    store.gate.set()
    assert set(await asyncio.gather(first, *waiting, return_exceptions=True)) == {failure}
    assert store.reads <= 2
    assert (namespaces.known("late") is not None) == (failure is None)
    store.failure = None
    await namespaces.refresh()
    assert namespaces.known("late") is not None


async def test_a_new_tenant_costs_no_read_of_all_tenants() -> None:
    store = CountedStore()
    for n in range(100):
        await store.add_namespace(Namespace(f"tenant-{n}"))
    namespaces = Namespaces(store)
    await namespaces.add_all([ConfiguredNamespace("default")])
    store.reads = 0
    for n in range(90, 200):
        await namespaces.provide([f"tenant-{n}"])
    await namespaces.provide([f"another-{n}" for n in range(100)])
    await namespaces.put("by-the-API", None, concurrency(1))
    await namespaces.put("by-the-API", None, concurrency(2))
    await Namespaces(store).put("elsewhere", None, unchanged)
    assert await namespaces.named("elsewhere") == Namespace("elsewhere")
    with pytest.raises(NamespaceNotFound):
        await namespaces.named("nowhere")
    assert store.reads == 0
    assert len(await store.namespaces()) == 303


async def test_a_tenant_is_provided_again_once_it_is_deleted() -> None:
    store = MemoryStore()
    here, there = Namespaces(store), Namespaces(store)
    await here.provide(["acme"])
    await there.named("acme")
    await here.mark_deleting("acme", deleting=True)
    await there.refresh()
    await there.provide(["acme"])
    assert (await store.namespaces())[0].options.deleting
    assert await store.remove_namespace("acme")
    await there.refresh()
    await there.provide(["acme"])
    assert await store.namespaces() == [Namespace("acme")]


class TestRefresher:
    @on_virtual_time
    async def test_nodes_learn_of_changed_options(self) -> None:
        store, clock = MemoryStore(), LoopClock()
        here, there = Namespaces(store), Namespaces(store)
        await here.add_all([ConfiguredNamespace("a")])
        refresher = NamespaceRefresher(here, clock)
        refresher.start()
        await there.put("a", None, concurrency(1))
        await clock.sleep(REFRESH_SECONDS + 1)
        assert here.known("a") == Namespace("a", options=ONE_AT_A_TIME)
        await refresher.abandon()

    @on_virtual_time
    async def test_an_absent_store_is_reported_once_and_tried_again(self) -> None:
        store, clock = CountedStore(), LoopClock()
        namespaces = Namespaces(store)
        await namespaces.add_all([ConfiguredNamespace("a")])
        refresher = NamespaceRefresher(namespaces, clock)
        refresher.start()
        with structlog.testing.capture_logs() as logs:
            store.failure = StoreUnavailable("away")
            await clock.sleep(3 * REFRESH_SECONDS + 5)
            assert namespaces.known("a") == Namespace("a")
            await store.change_namespace("a", ONE_AT_A_TIME)
            store.failure = None
            await clock.sleep(REFRESH_SECONDS + 2)
        assert [(entry["event"], entry["loop"]) for entry in logs] == [
            ("store.unavailable", "namespace-refresher"),
            ("store.available", "namespace-refresher"),
        ]
        assert namespaces.known("a") == Namespace("a", options=ONE_AT_A_TIME)
        await refresher.abandon()

    @on_virtual_time
    async def test_a_node_that_could_not_look_learns_which_namespaces_are_gone(self) -> None:
        """It may have missed that a namespace was marked, which is read, and then removed."""
        store, clock = SharedStore(), LoopClock()
        here, there = Namespaces(store), Namespaces(store)
        await here.add_all([ConfiguredNamespace("a"), ConfiguredNamespace("b")])
        refresher = NamespaceRefresher(here, clock)
        refresher.start()
        await clock.sleep(REFRESH_SECONDS + 1)
        store.gate.clear()
        await clock.sleep(3 * REFRESH_SECONDS)
        await store.change_namespace("a", NamespaceOptions(deleting=True))
        assert await store.remove_namespace("a")
        store.gate.set()
        await clock.sleep(2 * REFRESH_SECONDS + 1)
        assert [each.name for each in here] == ["b"]
        with pytest.raises(NamespaceNotFound):
            await there.named("a")
        await refresher.abandon()


async def test_a_failed_read_answers_no_caller() -> None:
    store = CountedStore()
    namespaces = Namespaces(store)
    await namespaces.add_all([ConfiguredNamespace("default")])
    await store.add_namespace(Namespace("late"))
    store.failure = StoreUnavailable("away")
    answers = await asyncio.gather(
        *(namespaces.named("late") for _ in range(4)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 4
    store.failure = None
    assert (await namespaces.named("late")).name == "late"
