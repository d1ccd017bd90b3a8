"""The page that starts bulk operations: it counts, asks, and starts each one once."""

from urllib.parse import urlencode

import pytest

from duetime.domain.limits import MAX_RUNNING_OPERATIONS
from duetime.web.pages import namespace_names
from tests.unit.api.v1.many_timers.operations import step
from tests.unit.api.v1.v1_bench import create_body
from tests.unit.web.operations.operations_bench import (
    NEW,
    OPERATIONS,
    OperationsBench,
    question_of,
)
from tests.unit.web.page_bench import text_of

HOSTILE = '"><script>alert(1)</script>'


async def create_many(bench: OperationsBench, count: int, prefix: str = "a-") -> None:
    for begin in range(0, count, 50):
        numbers = range(begin, min(count, begin + 50))
        timers = [create_body(f"{prefix}{number}") for number in numbers]
        assert (await bench.post("/batch", {"timers": timers})).status == 200


async def test_it_says_what_will_happen_to_how_many(bench: OperationsBench) -> None:
    await create_many(bench, 3)
    await bench.create_v1("b-1")
    asked = await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a-&sort=id")
    words = text_of(asked)
    assert "Namespace default" in words
    assert "Id begins with a-" in words
    assert "Cancel 3 pending or executing timers?" in words
    assert "They will never fire" in words
    assert "Type" not in words


@pytest.mark.parametrize(
    ("action", "fields", "ended"),
    [
        ("cancel", [], ("canceled", "2030-01-01T00:00:10Z")),
        ("move", [("move_by", " 1 h 30 min ")], ("pending", "2030-01-01T01:30:10Z")),
        ("run-now", [], ("pending", "2030-01-01T00:00:00Z")),
    ],
)
async def test_an_operation_is_started_and_watched(
    bench: OperationsBench, action: str, fields: list[tuple[str, str]], ended: tuple[str, str]
) -> None:
    await bench.create_v1("a-1")
    asked = await bench.page(f"{NEW}?action={action}&namespace=default&id_prefix=a-&status=pending")
    started = await bench.send(OPERATIONS, [*question_of(asked), *fields])
    assert started.status == 303, started.content
    path = started.headers["location"]
    words = text_of(await bench.page(path))
    assert "running" in words
    assert "Started by API_KEY" in words
    assert "Abort" in words
    await step(bench)
    words = text_of(await bench.page(path))
    assert "completed" in words
    assert "1 changed" in words
    assert "Abort" not in words
    timer = await bench.timer("a-1")
    assert (timer["status"], timer["executeAt"]) == ended
    assert "completed" in text_of(await bench.page(OPERATIONS))


async def test_failed_timers_are_redriven_by_any_condition(bench: OperationsBench) -> None:
    await bench.create_v1("one", metadata={"customer": 17})
    await bench.fail("one", error="HTTP 503")
    query = "&".join(
        (
            "action=redrive&namespace=default&status=failed&error=503&metadata=customer%3D17",
            "endpoint=https://example.com&due_from=2029-12-31T00:00:00Z",
            "due_until=2031-01-01T01:00:00%2B01:00",
        )
    )
    asked = await bench.page(f"{NEW}?{query}")
    words = text_of(asked)
    assert "Redrive 1 failed timer?" in words
    for condition in (
        "Due from 2029-12-31 00:00:00 UTC",
        "Due before 2031-01-01 00:00:00 UTC",
        "Calls https://example.com",
        "Last error contains 503",
        "Metadata customer = 17",
    ):
        assert condition in words
    started = await bench.send(OPERATIONS, question_of(asked))
    await step(bench)
    assert (await bench.timer("one"))["status"] == "pending"
    shown = await bench.page(started.headers["location"])
    assert "metadata=customer%3D17" in shown.content.decode()


async def test_with_very_many_namespaces_the_name_is_typed(
    bench: OperationsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.namespaces.refresh()
    monkeypatch.setattr(namespace_names, "LISTED_NAMESPACES", 1)
    asked = await bench.page(f"{NEW}?action=cancel&id_prefix=a")
    assert '<input id="namespace" name="namespace" required' in asked.content.decode()
    assert "<option>" not in asked.content.decode()


async def test_a_large_number_has_to_be_typed(bench: OperationsBench) -> None:
    await create_many(bench, 101)
    asked = await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a-")
    assert "Type 101 to confirm" in text_of(asked)
    question = question_of(asked)
    for typed in ([], [("typed", "100")], [("typed", "all")]):
        refused = await bench.send(OPERATIONS, [*question, *typed])
        assert refused.status == 400
        assert "the number" in text_of(refused)
    assert not await bench.store.operations(running=False, limit=9)
    recorded = [each for each in await bench.entries() if each.action == "operation.start"]
    assert [each.result for each in recorded] == ["INVALID_INPUT"] * 3
    assert (await bench.send(OPERATIONS, [*question, ("typed", " 101 ")])).status == 303


async def test_a_count_that_has_grown_is_asked_about_again(bench: OperationsBench) -> None:
    await create_many(bench, 10)
    asked = await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a-")
    question = question_of(asked)
    await bench.create_v1("a-more")
    assert (await bench.send(OPERATIONS, question)).status == 303
    question = question_of(await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a-"))
    await create_many(bench, 2, "a-x")
    refused = await bench.send(OPERATIONS, question)
    assert refused.status == 400
    assert "13 timers match by now, and the page showed 11" in text_of(refused)
    assert "Cancel 13 pending or executing timers?" in text_of(refused)


async def test_a_form_that_is_sent_twice_starts_one_operation(bench: OperationsBench) -> None:
    await bench.create_v1("a-1")
    asked = await bench.page(f"{NEW}?action=move&namespace=default&id_prefix=a-")
    form = [*question_of(asked), ("move_by", "1h")]
    first = await bench.send(OPERATIONS, form)
    second = await bench.send(OPERATIONS, form)
    assert first.headers["location"] == second.headers["location"]
    await step(bench)
    assert (await bench.timer("a-1"))["executeAt"] == "2030-01-01T01:00:10Z"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "This filter has no condition"),
        ("action=cancel&namespace=default", "This filter has no condition"),
        ("action=cancel&namespace=default&status=pending", "This filter has no condition"),
        (
            "action=cancel&namespace=default&status=failed&id_prefix=a",
            "Only pending timers can be canceled, and the filter asks for failed ones.",
        ),
        (
            "action=redrive&namespace=default&status=pending&id_prefix=a",
            "Only failed timers can be redriven, and the filter asks for pending ones.",
        ),
        ("action=cancel&namespace=default&id_prefix=a", "there is nothing to do"),
        ("action=cancel&id_prefix=a", "An operation is for the timers of one namespace."),
    ],
)
async def test_a_question_without_an_answer_says_why(
    bench: OperationsBench, query: str, words: str
) -> None:
    await bench.namespaces.refresh()
    asked = await bench.page(f"{NEW}?{query}")
    assert asked.status == 200
    assert words in text_of(asked)
    assert f'action="{OPERATIONS}"' not in asked.content.decode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id_prefix": ""}, "Filter has no condition"),
        ({"status": "failed"}, "Status does not fit the action"),
        ({"action": "delete-namespace"}, "Action must be cancel, redrive, move or run-now"),
        ({"action": "move"}, "Is needed: a duration such as “15 min” or “1 h 30 min”."),
        ({"action": "move", "move_by": "soon"}, "Must be a duration, such as"),
        ({"action": "move", "move_by": "0s"}, "Must not be zero."),
        ({"endpoint": "https://example.com/path"}, "Endpoint must be a host or an origin"),
        ({"due_from": "soon"}, "Due from must be an instant, such as"),
        ({"metadata": "customer"}, "Metadata must be a key and a value, such as customer=42"),
        ({"namespace": "no such"}, "Namespace 'no such' does not exist"),
        ({"counted": "many"}, "must be the number"),
        ({"once": "again"}, "Once must be the one of the form: load the page again"),
    ],
)
async def test_a_wrong_form_starts_nothing(
    bench: OperationsBench, changes: dict[str, str], words: str
) -> None:
    await bench.create_v1("a-1")
    asked = await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a-")
    form = dict(question_of(asked)) | changes
    refused = await bench.send(OPERATIONS, list(form.items()))
    assert refused.status in (400, 404), refused.content
    assert words.lower() in text_of(refused).lower()
    assert not await bench.store.operations(running=False, limit=9)


async def test_all_failed_timers_of_a_namespace_can_be_redriven(bench: OperationsBench) -> None:
    asked = await bench.page(f"{NEW}?action=redrive&namespace=default&status=failed")
    assert "there is nothing to do" in text_of(asked)
    assert "no condition" not in text_of(asked)


async def test_only_so_many_run_at_once(bench: OperationsBench) -> None:
    await bench.create_v1("a-1")
    for _ in range(MAX_RUNNING_OPERATIONS):
        asked = await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a-")
        assert (await bench.send(OPERATIONS, question_of(asked))).status == 303
    asked = await bench.page(f"{NEW}?action=cancel&namespace=default&id_prefix=a-")
    refused = await bench.send(OPERATIONS, question_of(asked))
    assert refused.status == 429
    assert "wait until one has ended" in text_of(refused)


async def test_hostile_text_is_shown_as_text(bench: OperationsBench) -> None:
    fields = {"id_prefix": HOSTILE, "metadata": f"{HOSTILE}=1"}
    query = urlencode({"action": "cancel", "namespace": "default", **fields})
    asked = await bench.page(f"{NEW}?{query}")
    assert HOSTILE in text_of(asked)
    assert "<script>alert" not in asked.content.decode()


async def test_a_start_is_in_the_audit_log(bench: OperationsBench) -> None:
    await bench.create_v1("a-1", metadata={"a": "b"})
    query = "action=move&namespace=default&id_prefix=a-&metadata=a%3Db&status=pending"
    asked = await bench.page(f"{NEW}?{query}")
    started = await bench.send(OPERATIONS, [*question_of(asked), ("move_by", "-15m")])
    id = started.headers["location"].rpartition("/")[2]
    assert (await bench.send(f"{OPERATIONS}/{id}/abort", [])).status == 303
    abort, start = await bench.entries()
    assert (start.action, start.target, start.namespace) == ("operation.start", id, "default")
    assert start.details == "action=reschedule, idPrefix=a-, metadata=a=b, moveBy=-15m, matched=1"
    assert (abort.action, abort.target, abort.namespace) == ("operation.abort", id, "default")
    assert abort.details == "action=reschedule, changed=0"
