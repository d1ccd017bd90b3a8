"""The deletion of namespaces, which loses no timer unless it is forced to."""

from duetime.domain.errors import StoreUnavailable
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.memory import MemoryStore
from duetime.testing import make_timer
from tests.unit.api.v1.many_timers.operations import OPERATIONS, finish, operation, start
from tests.unit.api.v1.v1_bench import V1Bench, create_body, error_of

NAMESPACES = "/api/v1/namespaces"


async def test_a_namespace_is_deleted_with_its_finished_timers(bench: V1Bench) -> None:
    await bench.create_v1("one", namespace="notifications")
    refused = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    assert error_of(refused)[:2] == (409, "NAMESPACE_NOT_EMPTY")
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
    await bench.store.remove_namespace("notifications")
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
    bench.bulk_runner.wake()
    await bench.bulk_runner.step()
    assert (await operation(bench, started))["status"] == "running"
    aborted = await bench.request("DELETE", f"{OPERATIONS}/{started.json['id']}")
    assert aborted.json["status"] == "aborted"
    later = create_body("two", namespace="notifications", executeAt="2031-01-01T00:00:00Z")
    assert (await bench.post("", later)).status == 200


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
