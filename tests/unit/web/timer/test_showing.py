"""The page of a timer says everything known of it, and nothing that is secret."""

import re
from html import unescape

import pytest

from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer, SealingKey
from duetime.service.sealing_store import with_sealed_contents
from duetime.service.turns import Turns
from duetime.stores.memory import MemoryStore
from duetime.testing import VirtualClock
from tests.unit.service.service_bench import DamagedStore
from tests.unit.web.page_bench import text_of
from tests.unit.web.timer.timer_bench import LONG, TimerBench, path_to


def sealing(store: MemoryStore, key: SealingKey) -> MemoryStore:
    """The store as a service with this key has it."""
    return with_sealed_contents(store, CallbackSealer(Sealer([key])), Turns(VirtualClock()))


HOSTILE = "<script>alert(1)</script>'\"`{{7*7}}"


async def test_everything_known_is_on_the_page(bench: TimerBench) -> None:
    await bench.create_v1(
        callbackHeaders={"Authorization": "Bearer s3cret", "X-Team": "orders"},
        payload={"order": 17},
        metadata={"team": "a"},
        callbackTimeout="5s",
        retryPolicy={"maxRetries": 2, "initialInterval": "10s"},
    )
    reply = await bench.show()
    assert reply.status == 200
    text = text_of(reply)
    assert "pending due 2030-01-01 00:00:10 UTC" in text
    assert "Not due yet: it fires in 10.00 s, at 2030-01-01 00:00:10 UTC ." in text
    assert "Callback HTTP POST Target https://example.com/due" in text
    assert "Timeout 5 s" in text
    assert "Up to 2 retries: after 10 s, then 2 times as long each time, up to 10 min." in text
    assert "Authorization: [redacted] X-Team: orders" in text
    assert '{ "order": 17 }' in text
    assert '{ "team": "a" }' in text
    assert "owned by node-1" in text
    delivery_id = (await bench.timer())["deliveryId"]
    assert f"grep -F {delivery_id} receiver.log" in text
    assert b"s3cret" not in reply.content


async def test_long_numbers_are_shown_as_they_are_stored(bench: TimerBench) -> None:
    await bench.create_long()
    assert '"z": 12345678901234567890.12345678901234567890,' in text_of(await bench.show())
    form = await bench.show(query="?edit")
    assert '"z": 12345678901234567890.12345678901234567890,' in unescape(form.content.decode())


async def test_a_failed_timer_says_why_and_shows_its_attempts(bench: TimerBench) -> None:
    await bench.create_v1()
    await bench.fail("one", error="HTTP 503: <b>away</b>")
    text = text_of(await bench.show())
    assert "Failed after 1 attempt: HTTP 503: <b>away</b>. It has no retries." in text
    assert "It has no retries. Mend the receiver, then redrive the timer." in text
    assert "Attempts No. Outcome Due Claimed Sent Late Answered Took 1 failed" in text
    assert "Redrive" in text
    assert "Run now" not in text
    assert 'role="img" aria-label="Timeline: Attempt 1"' in (await bench.show()).content.decode()


async def test_long_contents_are_cut_until_somebody_wants_all(bench: TimerBench) -> None:
    await bench.create_v1(payload={"rows": [f"row {number}" for number in range(500)]})
    text = text_of(await bench.show())
    assert "This is the beginning: 504 lines," in text
    assert "row 499" not in text.partition("Create one like it")[0]
    in_full = text_of(await bench.show(query="?all"))
    assert "row 499" in in_full.partition("Create one like it")[0]
    assert "This is the beginning" not in in_full


async def test_very_long_contents_are_not_shown_in_full(bench: TimerBench) -> None:
    await bench.request("PUT", "/api/v1/namespaces/large", {"maxPayloadBytes": 600_000})
    await bench.create_v1(namespace="large", payload="x" * 500_000)
    path = path_to("one", "large")
    assert "500,002 bytes in all. Show all" in text_of(await bench.page(path))
    in_full = await bench.page(f"{path}?all")
    assert "500,002 bytes in all. The API has all of it." in text_of(in_full)
    assert len(in_full.content) < 300_000
    assert "cannot be changed here" in text_of(await bench.page(f"{path}?edit"))


async def test_a_page_of_a_long_payload_stays_short(bench: TimerBench) -> None:
    """The payload is in no command, and no live part."""
    await bench.create_v1(payload=["<row>"] * 8_000)
    page = await bench.show()
    assert len(page.content) < 60_000
    assert "duetime get --namespace=default --json" in text_of(page)
    view = await bench.live_view()
    assert "contents" not in view.live
    await bench.create_v1("short", payload=[1])
    assert "contents" in (await bench.live_view("short")).live


async def test_a_timer_that_does_not_exist_can_be_searched_for(bench: TimerBench) -> None:
    reply = await bench.show("a/b c")
    assert reply.status == 404
    assert "There is no timer a/b c in the namespace default" in text_of(reply)
    assert b'href="/ui/timers?namespace=default&amp;id_prefix=a%2Fb+c"' in reply.content


async def test_ids_may_have_any_characters(bench: TimerBench) -> None:
    for id in ("a/b", "50%", "ä ö", "..", HOSTILE):
        assert (await bench.create_v1(id, payload={id: id})).status == 200
        reply = await bench.show(id)
        assert reply.status == 200
        assert id in text_of(reply)
        assert b"<script>alert" not in reply.content


async def test_a_namespace_of_others_looks_like_one_that_does_not_exist(bench: TimerBench) -> None:
    await bench.create_v1(namespace="notifications")
    key = await bench.issue_key("read", "write", namespaces=["small"])
    foreign = await bench.page(path_to("one", "notifications"), key)
    unknown = await bench.page(path_to("one", "nobodys"), key)
    assert (foreign.status, unknown.status) == (404, 404)
    assert text_of(foreign).replace("notifications", "nobodys") == text_of(unknown)
    for action in ("run-now", "move", "cancel", "redrive", "delete", "change", "check"):
        reply = await bench.send(f"{path_to('one', 'notifications')}/{action}", (), key)
        assert reply.status == 404
    assert (await bench.timer(namespace="notifications"))["status"] == "pending"


async def test_a_key_that_only_reads_sees_no_buttons(bench: TimerBench) -> None:
    await bench.create_v1()
    key = await bench.issue_key("read")
    text = text_of(await bench.show(query="?edit", key=key))
    assert "Not due yet" in text
    for words in ("Run now", "Cancel timer", "Delete", "Duplicate", "Save", "Move"):
        assert words not in text
    for action in ("run-now", "cancel", "delete", "change", "check"):
        assert (await bench.act(action, key=key)).status == 403
    assert (await bench.timer())["status"] == "pending"


async def test_a_sealed_timer_shows_what_is_known() -> None:
    store = MemoryStore()
    writer = await TimerBench(sealing(store, SealingKey("k0", bytes(32)))).open()
    await writer.create_v1(payload={"secret": 1}, callbackHeaders={"X-Tag": "a"})
    bench = await TimerBench(sealing(store, SealingKey("k1", bytes([1] * 32)))).open()
    reply = await bench.show()
    text = text_of(reply)
    assert reply.status == 200
    assert "cannot be decrypted" in text
    assert "Its payload and headers are not shown." in text
    assert "Not due yet" in text
    assert "Cancel timer" in text
    assert "Edit" not in text
    assert (await bench.act("cancel")).status == 303


async def test_an_unreadable_timer_is_told_as_such() -> None:
    store = DamagedStore()
    bench = await TimerBench(store).open()
    await bench.create_v1()
    store.damaged.add("one")
    reply = await bench.show()
    assert reply.status == 500
    assert "cannot be read by this release" in text_of(reply)


@pytest.mark.parametrize("wanted", ["curl", "python"])
async def test_recipes_keep_the_payload_and_have_no_key(bench: TimerBench, wanted: str) -> None:
    await bench.create_long()
    html = (await bench.show()).content.decode()
    found = re.findall(r"<summary>([^<]+)</summary>\s*<div[^>]*><pre[^>]*><code>([^<]+)", html)
    recipes = {name: unescape(text) for name, text in found}
    text = {name.lower(): text for name, text in recipes.items()}[wanted]
    assert "12345678901234567890.12345678901234567890" in text
    assert "DUETIME_API_KEY" in text
    assert '"executeAt": "2030-01-01T00:00:10Z"' in text
    assert LONG in recipes["Command line"]
