"""The list of operations, one of them, and who may see and do what."""

import pytest
from msgspec.structs import replace

from tests.unit.api.v1.many_timers.operations import claim, start, step
from tests.unit.web.operations.operations_bench import (
    NEW,
    OPERATIONS,
    OperationsBench,
    question_of,
)
from tests.unit.web.page_bench import text_of


async def test_an_empty_list_says_so(bench: OperationsBench) -> None:
    words = text_of(await bench.page(OPERATIONS))
    assert "No operation in the last seven days." in words
    assert "Timers that you choose one by one are changed at once" in words


async def test_who_started_an_operation_of_an_earlier_release_is_not_known(
    bench: OperationsBench,
) -> None:
    id = (await start(bench, action="cancel", all=True)).json["id"]
    started = await bench.store.operation(id)
    assert started is not None
    earlier = replace(started, id="an-earlier-one", started_by=None)
    await bench.store.add_operation(earlier)
    shown = text_of(await bench.page(f"{OPERATIONS}/{earlier.id}"))
    assert "Started by Not known" in shown
    answer = await bench.request("GET", f"/api/v1/operations/{earlier.id}")
    assert answer.json["startedBy"] is None


async def test_an_operation_is_aborted_once(bench: OperationsBench) -> None:
    await bench.create_v1("one")
    id = (await start(bench, action="cancel", all=True)).json["id"]
    path = f"{OPERATIONS}/{id}"
    assert "All timers of the namespace" in text_of(await bench.page(path))
    aborted = await bench.send(f"{path}/abort", [])
    assert (aborted.status, aborted.headers["location"]) == (303, path)
    words = text_of(await bench.page(path))
    assert "aborted" in words
    assert "Timers that were changed stay changed." in words
    await step(bench)
    assert (await bench.timer("one"))["status"] == "pending"


async def test_an_operation_that_has_ended_cannot_be_aborted(bench: OperationsBench) -> None:
    id = (await start(bench, action="cancel", all=True)).json["id"]
    await step(bench)
    assert (await bench.send(f"{OPERATIONS}/{id}/abort", [])).status == 303
    assert "completed" in text_of(await bench.page(f"{OPERATIONS}/{id}"))


async def test_what_is_executing_is_waited_for_in_words(bench: OperationsBench) -> None:
    await bench.create_v1("one")
    bench.clock.advance(10)
    await claim(bench)
    id = (await start(bench, action="cancel", all=True)).json["id"]
    await step(bench)
    words = text_of(await bench.page(f"{OPERATIONS}/{id}"))
    assert "All timers were checked. 1 matching timer is executing" in words


@pytest.mark.parametrize("name", ["unknown", "%00", "x" * 300, "%ff"])
async def test_an_unknown_operation_is_not_found(bench: OperationsBench, name: str) -> None:
    for reply in (
        await bench.page(f"{OPERATIONS}/{name}"),
        await bench.send(f"{OPERATIONS}/{name}/abort", []),
    ):
        assert reply.status in (400, 404)


async def test_a_key_that_only_reads_sees_no_buttons(bench: OperationsBench) -> None:
    await bench.create_v1("a-1")
    id = (await start(bench, action="cancel", all=True)).json["id"]
    key = await bench.issue_key("read")
    assert "Choose timers" not in text_of(await bench.page(OPERATIONS, key))
    shown = await bench.page(f"{OPERATIONS}/{id}", key)
    assert shown.status == 200
    assert "Abort" not in text_of(shown)
    question = question_of(await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a"))
    assert (
        await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a", key)
    ).status == 403
    assert (await bench.send(OPERATIONS, question, key)).status == 403
    assert (await bench.send(f"{OPERATIONS}/{id}/abort", [], key)).status == 403
    assert (await bench.send(NEW, [("timer", "default/a-1")], key)).status == 403


async def test_a_key_for_some_namespaces_sees_nothing_of_others(bench: OperationsBench) -> None:
    await bench.create_v1("a-1")
    theirs = (await start(bench, action="cancel", all=True)).json["id"]
    question = question_of(await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a"))
    key = await bench.issue_key("read", "write", namespaces=["small"])
    assert theirs not in (await bench.page(OPERATIONS, key)).content.decode()
    assert (await bench.page(f"{OPERATIONS}/{theirs}", key)).status == 404
    assert (await bench.send(f"{OPERATIONS}/{theirs}/abort", [], key)).status == 404
    assert (await bench.send(OPERATIONS, question, key)).status == 404
    await bench.namespaces.refresh()
    asked = await bench.page(f"{NEW}?action=cancel&id_prefix=a", key)
    assert "Namespace small" in text_of(asked), "the only one is not asked for"
    two = await bench.issue_key("read", "write", namespaces=["small", "notifications"])
    asked = await bench.page(f"{NEW}?action=cancel&id_prefix=a", two)
    assert "<option>small</option>" in asked.content.decode()
    assert "<option>default</option>" not in asked.content.decode()
    asked = await bench.send(NEW, [("timer", "default/a-1"), ("action", "cancel")], key)
    result = await bench.send(OPERATIONS, question_of(asked), key)
    assert result.status == 200
    assert "Namespace 'default' does not exist" in text_of(result)
    assert (await bench.timer("a-1"))["status"] == "pending"
