"""Timers whose contents are encrypted in the store, with and without their key."""

from typing import Any

import pytest
from msgspec import Raw

from duetime.domain.callback import HttpCallback
from duetime.domain.keys import TimerKey
from duetime.domain.transitions import Change
from duetime.ports.security import AuditQuery
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer, SealingKey
from duetime.service.sealing_store import with_sealed_contents
from duetime.service.turns import Turns
from duetime.stores.memory import MemoryStore
from duetime.testing import VirtualClock
from duetime.testing.virtual_clock import START_AT
from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body, error_of, path_of

K1, K2 = SealingKey("k1", bytes(32)), SealingKey("k2", bytes([1] * 32))
BODY = create_body(
    callbackUrl="https://user:word@example.com/", callbackHeaders={"X-Tag": "a"}, payload={"b": 1}
)


async def bench_with(store: MemoryStore, *keys: SealingKey) -> V1Bench:
    """The API on a store that others have open, too."""
    sealer = CallbackSealer(Sealer(keys))
    return await V1Bench(with_sealed_contents(store, sealer, Turns(VirtualClock()))).open()


async def kept(store: MemoryStore, id: str = "one") -> HttpCallback:
    """The callback as the store has it."""
    timer = await store.get(TimerKey("default", id))
    assert timer is not None
    assert isinstance(timer.callback, HttpCallback)
    return timer.callback


async def test_everything_works_as_without_encryption() -> None:
    store = MemoryStore()
    bench = await bench_with(store, K1)
    plain = await V1Bench().open()
    requests = (
        ("POST", BASE, BODY),
        ("POST", BASE, BODY),
        ("POST", BASE, {**BODY, "payload": 2}),
        ("POST", f"{BASE}/create", {**BODY, "payload": [3]}),
        ("PUT", path_of("default", "one"), {"callbackHeaders": {"X-Tag": "c"}}),
        ("GET", f"{path_of('default', 'one')}?secrets=true", b""),
        ("GET", BASE, b""),
        ("GET", f"{BASE}/export?secrets=true", b""),
        ("POST", f"{path_of('default', 'one')}/cancel", b""),
    )
    volatile = ("deliveryId", "timers")
    for method, path, body in requests:
        mine, other = [(await each.request(method, path, body)).json for each in (bench, plain)]
        for name in volatile:
            if isinstance(mine.get(name), list):
                mine, other = mine[name][0], other[name][0]
            mine.pop("deliveryId", None)
            other.pop("deliveryId", None)
        assert mine == other
        callback = await kept(store)
        assert (callback.headers, bytes(callback.payload or b"")) == (None, b"")
        assert callback.url == "https://user:[redacted]@example.com/"
        assert callback.sealed is not None


async def test_keys_rotate_and_older_timers_stay_readable() -> None:
    store = MemoryStore()
    before = await bench_with(store)
    assert (await before.create_v1("plain", payload=1)).status == 200
    assert (await (await bench_with(store, K1)).create_v1("old", payload=2)).status == 200
    bench = await bench_with(store, K2, K1)
    assert (await bench.create_v1("new", payload=3)).status == 200
    assert [(await bench.timer(id))["payload"] for id in ("plain", "old", "new")] == [1, 2, 3]
    assert (await kept(store, "plain")).payload == Raw(b"1")
    assert str((await kept(store, "old")).sealed).startswith("k1.")
    assert str((await kept(store, "new")).sealed).startswith("k2.")
    await bench.request("PUT", path_of("default", "old"), {"payload": 4})
    assert str((await kept(store, "old")).sealed).startswith("k2.")


async def test_a_missing_key_is_named_and_hides_no_other_timer() -> None:
    store = MemoryStore()
    sealed = await bench_with(store, K1)
    assert (await sealed.request("POST", BASE, BODY)).status == 200
    for keys in ((), (K2,)):
        bench = await bench_with(store, *keys)
        await bench.create_v1(f"mine-{len(keys)}", payload=1)
        message = (
            "the stored timer 'one' cannot be decrypted: the key 'k1' is not among ENCRYPTION_KEYS"
        )
        expected = (503, "SERVICE_UNAVAILABLE", message)
        one = path_of("default", "one")
        assert error_of(await bench.request("GET", one)) == expected
        assert error_of(await bench.request("PUT", one, {"payload": 1})) == expected
        assert error_of(await bench.request("POST", BASE, BODY)) == expected
        for path in (BASE, f"{BASE}/export"):
            page = (await bench.request("GET", path)).json
            assert page["unreadable"] >= 1
            assert f"mine-{len(keys)}" in [timer["id"] for timer in page["timers"]]
            assert "one" not in [timer["id"] for timer in page["timers"]]
        reply = await bench.request("POST", f"{BASE}/batch", {"timers": [BODY, create_body("x")]})
        assert [each["status"] for each in reply.json["results"]] == ["invalid", "created"]
        await bench.request("DELETE", path_of("default", "x"))
    assert (await sealed.timer("one"))["payload"] == {"b": 1}


async def test_values_cannot_be_moved_to_another_timer() -> None:
    store = MemoryStore()
    bench = await bench_with(store, K1)
    await bench.request("POST", BASE, BODY)
    await bench.create_v1("two")
    stolen = Change(updated_at=START_AT, delivery_id="d", callback=await kept(store))
    await store.change_if_pending(TimerKey("default", "two"), stolen)
    reply = await bench.request("GET", path_of("default", "two"))
    assert "it was altered" in error_of(reply)[2]


@pytest.mark.parametrize("keys", [(), (K2,)])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{path_of('default', 'one')}/cancel", b""),
        (f"{BASE}/cancel", {"timerId": "one"}),
    ],
)
async def test_a_timer_is_canceled_without_its_key(
    keys: tuple[SealingKey, ...], path: str, body: Any
) -> None:
    store = MemoryStore()
    sealed = await bench_with(store, K1)
    await sealed.request("POST", BASE, BODY)
    bench = await bench_with(store, *keys)
    for _ in range(2):
        reply = await bench.request("POST", path, body)
        assert (reply.status, reply.json["status"], reply.json["payload"]) == (
            200,
            "canceled",
            None,
        )
        assert not reply.json.get("callbackHeaders")
        assert reply.json["callbackUrl"] == "https://user:[redacted]@example.com/"
    entries = await bench.audit_log.entries(AuditQuery())
    assert [(each.action, each.result) for each in entries][:2] == [("timer.cancel", "ok")] * 2
    timer = await sealed.timer("one")
    assert (timer["status"], timer["payload"]) == ("canceled", {"b": 1})


@pytest.mark.parametrize("keys", [(), (K2,)])
async def test_a_timer_is_removed_without_its_key(keys: tuple[SealingKey, ...]) -> None:
    store = MemoryStore()
    await (await bench_with(store, K1)).request("POST", BASE, BODY)
    bench = await bench_with(store, *keys)
    assert (await bench.request("DELETE", path_of("default", "one"))).status in (200, 204)
    assert await store.get(TimerKey("default", "one")) is None
    again = await bench.request("DELETE", path_of("default", "one"))
    assert error_of(again)[:2] == (404, "TIMER_NOT_FOUND")


async def test_a_timer_is_moved_without_its_key_and_keeps_its_contents() -> None:
    store, id = MemoryStore(), "01980000-0000-7000-8000-00000000abcd"
    sealed = await bench_with(store, K1)
    await sealed.create_v1(id, payload={"b": 1})
    bench = await bench_with(store)
    moved = await bench.request("PUT", f"/timers/{id}", {"execute_at": "2030-01-02T00:00:00Z"})
    assert moved.status == 200
    timer = await sealed.timer(id)
    assert (timer["executeAt"], timer["payload"]) == ("2030-01-02T00:00:00Z", {"b": 1})
