"""The deletion of namespaces, which loses no timer unless it is forced to."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from duetime.domain.bulk import BulkOperation
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import Capabilities, CreateRequest, OnExisting, ScanQuery
from duetime.service.namespaces import REFRESH_SECONDS
from duetime.stores.memory import MemoryStore
from duetime.testing import make_timer
from tests.unit.api.v1.many_timers.operations import OPERATIONS, finish, operation, start, step
from tests.unit.api.v1.v1_bench import V1Bench, create_body, error_of

NAMESPACES = "/api/v1/namespaces"


async def all_operations(bench: V1Bench) -> Any:
    return (await bench.request("GET", OPERATIONS)).json["operations"]


async def test_a_namespace_is_deleted_with_its_finished_timers(bench: V1Bench) -> None:
    await bench.create_v1("one", namespace="notifications")
    refused = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    assert error_of(refused)[:2] == (409, "NAMESPACE_NOT_EMPTY")
    assert refused.json["message"].endswith("delete it with force=true")
    await start(bench, action="cancel", all=True, namespace="notifications")
    await bench.bulk_runner.step()
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    again = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    assert again.json["id"] == started.json["id"]
    ended = await finish(bench, started)
    assert (ended["action"], ended["changed"]) == ("delete-namespace", 1)
    assert "notifications" not in [each.name for each in await bench.store.namespaces()]
    gone = await bench.create_v1("two", namespace="notifications")
    assert error_of(gone)[1] == "NAMESPACE_NOT_FOUND"


async def test_pending_timers_of_a_namespace_are_deleted_by_force(bench: V1Bench) -> None:
    await bench.create_v1("one", namespace="notifications")
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")
    late = await bench.create_v1("two", namespace="notifications")
    assert error_of(late) == (
        400,
        "NAMESPACE_NOT_FOUND",
        "namespace 'notifications' is being deleted",
    )
    assert (await finish(bench, started))["changed"] == 1


async def test_a_timer_created_while_a_deletion_begins_is_not_lost(bench: V1Bench) -> None:
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    # A create that another node accepted, which does not know of the deletion yet.
    timer = make_timer("late", namespace="notifications", num_shards=64)
    await bench.store.create([CreateRequest(timer, OnExisting.KEEP)])
    ended = await finish(bench, started)
    assert (ended["status"], ended["error"]) == (
        "failed",
        "timers were created while the deletion began",
    )
    assert (await bench.timer("late", "notifications"))["status"] == "pending"
    assert (await bench.create_v1("two", namespace="notifications")).status == 200


async def test_a_namespace_that_was_created_again_is_not_deleted(bench: V1Bench) -> None:
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")
    await step(bench)
    assert await bench.store.remove_namespace("notifications")
    assert (await bench.request("PUT", f"{NAMESPACES}/notifications", {})).status == 200
    assert (await bench.create_v1("one", namespace="notifications")).status == 200
    ended = await finish(bench, started)
    assert (ended["status"], ended["error"]) == ("failed", "the namespace takes timers again")
    assert (await bench.timer("one", "notifications"))["status"] == "pending"


async def test_a_namespace_is_deleted_once_its_timers_have_been_delivered(bench: V1Bench) -> None:
    await bench.create_v1("one", namespace="notifications")
    bench.clock.advance(10)
    await bench.claim_all()
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")
    for _ in range(3):
        await step(bench)
    assert (await operation(bench, started))["status"] == "running"
    aborted = await bench.request("DELETE", f"{OPERATIONS}/{started.json['id']}")
    assert aborted.json["status"] == "aborted"
    later = create_body("two", namespace="notifications", executeAt="2031-01-01T00:00:00Z")
    assert (await bench.post("", later)).status == 200


class EventfulStore(MemoryStore):
    """Lets something happen right before the named call."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self._call = call
        self.event: Callable[[], Awaitable[None]] | None = None

    async def find_namespaces(self, names: Collection[str]) -> Sequence[Namespace]:
        found = await super().find_namespaces(names)
        await self._before("find_namespaces")
        return found

    async def remove_pending(self, namespace: str, *, limit: int) -> int:
        await self._before("remove_pending")
        return await super().remove_pending(namespace, limit=limit)

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        await self._before("prune")
        return await super().prune(
            finished_before=finished_before, limit=limit, namespace=namespace
        )

    async def remove_namespace(self, name: str) -> bool:
        await self._before("remove_namespace")
        return await super().remove_namespace(name)

    async def _before(self, call: str) -> None:
        if call == self._call and self.event is not None:
            event, self.event = self.event, None
            await event()


@pytest.mark.parametrize("call", ["remove_pending", "prune", "remove_namespace"])
async def test_a_timer_created_after_an_abort_stays_whatever_is_under_way(call: str) -> None:
    store = EventfulStore(call)
    bench = await V1Bench(store).open()
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")

    async def abort_and_create() -> None:
        aborted = await bench.request("DELETE", f"{OPERATIONS}/{started.json['id']}")
        assert (aborted.status, aborted.json["status"]) == (200, "aborted")
        assert (await bench.create_v1("new", namespace="notifications")).status == 200

    store.event = abort_and_create
    for _ in range(5):
        await step(bench)
    assert (await bench.timer("new", "notifications"))["status"] == "pending"
    assert (await bench.create_v1("newer", namespace="notifications")).status == 200


async def test_a_deletion_that_was_aborted_does_not_remove_the_namespace() -> None:
    store = EventfulStore("remove_namespace")
    bench = await V1Bench(store).open()
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications")

    async def abort() -> None:
        await bench.request("DELETE", f"{OPERATIONS}/{started.json['id']}")

    store.event = abort
    for _ in range(5):
        await step(bench)
    assert (await operation(bench, started))["status"] == "aborted"
    assert (await bench.create_v1("new", namespace="notifications")).status == 200


async def test_timers_forgotten_while_a_deletion_is_aborted_are_counted() -> None:
    store = EventfulStore("prune")
    bench = await V1Bench(store).open()
    await bench.create_v1("one", namespace="notifications")
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")

    async def abort() -> None:
        await bench.request("DELETE", f"{OPERATIONS}/{started.json['id']}")

    store.event = abort
    for _ in range(3):
        await step(bench)
    ended = await operation(bench, started)
    assert (ended["status"], ended["changed"]) == ("aborted", 1)


class ForgetfulStore(MemoryStore):
    """A store that does not take new operations while it is away."""

    is_away = False

    async def add_operation(self, operation: BulkOperation) -> None:
        if self.is_away:
            raise StoreUnavailable("away")
        await super().add_operation(operation)


async def test_a_deletion_that_could_not_begin_leaves_the_namespace_open() -> None:
    store = ForgetfulStore()
    bench = await V1Bench(store).open()
    store.is_away = True
    assert (await bench.request("DELETE", f"{NAMESPACES}/notifications")).status == 503
    store.is_away = False
    assert (await bench.create_v1("one", namespace="notifications")).status == 200


async def test_a_deletion_whose_mark_got_lost_is_marked_by_the_runner() -> None:
    store = StubbornStore()
    bench = await V1Bench(store).open()
    store.is_away = True
    assert (await bench.request("DELETE", f"{NAMESPACES}/notifications")).status == 503
    store.is_away = False
    again = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    assert [each["id"] for each in await all_operations(bench)] == [again.json["id"]]
    store.is_away = True
    assert (await bench.request("DELETE", f"{NAMESPACES}/small")).status == 503
    store.is_away = False
    lost = next(each for each in await all_operations(bench) if each["namespace"] == "small")
    while (await bench.request("GET", f"{OPERATIONS}/{lost['id']}")).json["status"] == "running":
        await step(bench)
    left = {each.name for each in await bench.store.namespaces()}
    assert left == {"default"}


async def test_a_mark_without_an_operation_is_cleared(bench: V1Bench) -> None:
    """A former release, or a runner that was paused for long, may leave one behind."""
    await bench.namespaces.mark_deleting("notifications", deleting=True)
    assert (await bench.create_v1("one", namespace="notifications")).status == 400
    await step(bench)
    assert (await bench.create_v1("one", namespace="notifications")).status == 200


async def test_a_namespace_says_that_it_is_being_deleted(bench: V1Bench) -> None:
    await bench.create_v1("one", namespace="notifications")
    before = (await bench.request("GET", f"{NAMESPACES}/notifications")).json
    assert before["deleting"] is False
    await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")
    assert (await bench.request("GET", f"{NAMESPACES}/notifications")).json["deleting"] is True
    listed = (await bench.request("GET", NAMESPACES)).json["namespaces"]
    assert [each["name"] for each in listed if each["deleting"]] == ["notifications"]


class DamagedStore(MemoryStore):
    """A store whose timers cannot be read."""

    async def scan(self, query: ScanQuery) -> list[Timer]:
        return []


async def test_a_deletion_that_an_unreadable_timer_holds_up_fails() -> None:
    bench = await V1Bench(DamagedStore()).open()
    await bench.create_v1("one", namespace="notifications")
    bench.clock.advance(10)
    await bench.claim_all()
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")
    ended = await finish(bench, started)
    assert (ended["status"], ended["error"]) == (
        "failed",
        "timers that this release cannot read are executing: `duetime audit` names them",
    )
    assert not (await bench.request("GET", f"{NAMESPACES}/notifications")).json["deleting"]


class SharedMemoryStore(MemoryStore):
    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, shared_by_nodes=True)


async def test_nothing_is_forgotten_before_every_node_knows_of_the_deletion() -> None:
    """A node that does not know yet accepts timers, and a forced deletion would forget them."""
    bench = await V1Bench(SharedMemoryStore()).open()
    await bench.create_v1("one", namespace="notifications")
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")
    await step(bench)
    bench.clock.advance(2 * REFRESH_SECONDS - 0.1)
    await step(bench)
    assert (await bench.store.counts("notifications"))[TimerStatus.PENDING] == 1
    bench.clock.advance(0.2)
    assert (await finish(bench, started))["changed"] == 1


class StubbornStore(MemoryStore):
    """A store that takes no changes of options while it is away."""

    is_away = False

    async def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        if self.is_away:
            raise StoreUnavailable("away")
        return await super().change_namespace(name, options)


async def test_an_abort_that_is_repeated_opens_the_namespace_again() -> None:
    store = StubbornStore()
    bench = await V1Bench(store).open()
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    path = f"{OPERATIONS}/{started.json['id']}"
    store.is_away = True
    assert (await bench.request("DELETE", path)).status == 503
    store.is_away = False
    assert (await bench.request("DELETE", path)).json["status"] == "aborted"
    assert (await bench.create_v1("one", namespace="notifications")).status == 200


async def test_a_deletion_that_is_aborted_again_does_not_open_the_next_one(
    bench: V1Bench,
) -> None:
    first = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    await bench.request("DELETE", f"{OPERATIONS}/{first.json['id']}")
    second = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    await bench.request("DELETE", f"{OPERATIONS}/{first.json['id']}")
    assert (await bench.create_v1("one", namespace="notifications")).status == 400
    assert (await finish(bench, second))["status"] == "completed"


async def test_the_default_namespace_stays(bench: V1Bench) -> None:
    reply = await bench.request("DELETE", f"{NAMESPACES}/default?force=true")
    assert error_of(reply)[1:] == ("INVALID_INPUT", "namespace 'default' cannot be deleted")
    reply = await bench.request("DELETE", f"{NAMESPACES}/unknown")
    assert error_of(reply)[:2] == (404, "NAMESPACE_NOT_FOUND")
    reply = await bench.request("DELETE", f"{NAMESPACES}/small?force=yes")
    assert error_of(reply)[2] == "force must be one of true, false"
