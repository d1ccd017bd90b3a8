"""Actions on chosen rows: a question, then the outcome for each timer."""

from tests.unit.web.operations.operations_bench import (
    NEW,
    OPERATIONS,
    OperationsBench,
    question_of,
)
from tests.unit.web.page_bench import text_of


async def test_each_chosen_timer_has_its_outcome(bench: OperationsBench) -> None:
    await bench.create_v1("a/1 ü")
    await bench.create_v1("two", namespace="notifications")
    await bench.create_v1("failed")
    await bench.fail("failed")
    chosen = [
        ("timer", "default/a%2F1%20%C3%BC"),
        ("timer", "notifications/two"),
        ("timer", "default/failed"),
        ("timer", "default/gone"),
        ("timer", "default/gone"),
    ]
    asked = await bench.send(NEW, [*chosen, ("action", "cancel")])
    words = text_of(asked)
    assert "4 chosen timers" in words
    assert "default / a/1 ü" in words
    assert "Cancel 4 timers?" in words
    result = await bench.send(OPERATIONS, question_of(asked))
    assert result.status == 200
    words = text_of(result)
    assert "Cancel: 2 of 4 timers" in words
    assert "2 timers could not be canceled." in words
    assert "a/1 ü default Canceled" in words
    assert "failed default Not canceled Cannot cancel timer with status 'failed'" in words
    assert "gone default Not canceled Timer not found" in words
    assert "/ui/timers/default/a%2F1%20%C3%BC" in result.content.decode()
    assert (await bench.timer("two", "notifications"))["status"] == "canceled"


async def test_a_form_that_is_sent_twice_moves_timers_once(bench: OperationsBench) -> None:
    await bench.create_v1("one")
    asked = await bench.page(f"{NEW}?timer=default/one&action=move")
    form = [*question_of(asked), ("move_by", "1h")]
    for _ in range(2):
        result = await bench.send(OPERATIONS, form)
        assert "one default Moved 2030-01-01 01:00:10 UTC" in text_of(result)
    assert (await bench.timer("one"))["executeAt"] == "2030-01-01T01:00:10Z"
    repeat, first = [each for each in await bench.entries() if each.action == "operation.start"]
    assert first.details == "action=reschedule, timers=1, moveBy=1h, changed=1"
    assert repeat.details == "action=reschedule, timers=1, moveBy=1h, repeat, changed=1"


async def test_timers_are_run_now_and_redriven(bench: OperationsBench) -> None:
    await bench.create_v1("one")
    await bench.create_v1("two")
    await bench.fail("two")
    for action, name, words in (
        ("run-now", "one", "Due now 2030-01-01 00:00:00 UTC"),
        ("redrive", "two", "Redriven"),
    ):
        asked = await bench.page(f"{NEW}?timer=default/{name}&action={action}")
        assert words in text_of(await bench.send(OPERATIONS, question_of(asked)))
        assert (await bench.timer(name))["status"] == "pending"


async def test_more_than_a_hundred_have_to_be_confirmed_by_their_number(
    bench: OperationsBench,
) -> None:
    chosen = [("timer", f"default/t{number}") for number in range(101)]
    asked = await bench.send(NEW, [*chosen, ("action", "cancel")])
    assert "Type 101 to confirm" in text_of(asked)
    assert "and 91 more" in text_of(asked)
    refused = await bench.send(OPERATIONS, question_of(asked))
    assert refused.status == 400
    assert "Must be the number 101, to confirm." in text_of(refused)
    done = await bench.send(OPERATIONS, [*question_of(asked), ("typed", "101")])
    assert "Cancel: 0 of 101 timers" in text_of(done)


async def test_the_way_back_leads_to_the_filtered_list(bench: OperationsBench) -> None:
    await bench.create_v1("one")
    for given, back in (
        ("/ui/timers?status=failed&error=a%20b", "/ui/timers?status=failed&amp;error=a%20b"),
        ("//elsewhere.example/ui/timers", "/ui/timers"),
        ("/ui/timers@elsewhere", "/ui/timers"),
    ):
        chosen = [("timer", "default/one"), ("back", given)]
        asked = await bench.send(NEW, [*chosen, ("action", "run-now")])
        assert f'href="{back}">Keep them as they are' in asked.content.decode()
        result = await bench.send(OPERATIONS, question_of(asked))
        assert f'href="{back}">To the timers' in result.content.decode()


async def test_an_action_without_a_choice_leads_back(bench: OperationsBench) -> None:
    reply = await bench.send(NEW, [("action", "cancel")])
    assert (reply.status, reply.headers["location"]) == (303, "/ui/timers")


async def test_wrong_choices_are_refused(bench: OperationsBench) -> None:
    too_many = [("timer", f"default/t{number}") for number in range(201)]
    for chosen, words in (
        (too_many, "Timer may be chosen 200 times at most: choose everything that matches"),
        ([("timer", "default")], "Timer must be a namespace and an id, such as default/order-17"),
        ([("timer", "/one")], "Timer must be a namespace and an id"),
        ([("timer", "default/%ff")], "Timer must be UTF-8"),
    ):
        refused = await bench.send(NEW, [*chosen, ("action", "cancel")])
        assert refused.status == 400
        assert words in text_of(refused)


async def test_each_timer_is_in_the_audit_log(bench: OperationsBench) -> None:
    await bench.create_v1("one")
    chosen = [("timer", "default/one"), ("timer", "default/gone")]
    asked = await bench.send(NEW, [*chosen, ("action", "cancel")])
    await bench.send(OPERATIONS, question_of(asked))
    request, *timers = await bench.entries()
    assert (request.action, request.result) == ("operation.start", "ok")
    assert request.details == "action=cancel, timers=2, changed=1"
    assert {(each.action, each.namespace, each.target, each.result) for each in timers} == {
        ("timer.cancel", "default", "one", "ok"),
        ("timer.cancel", "default", "gone", "TIMER_NOT_FOUND"),
    }
    assert {each.actor for each in timers} == {"API_KEY"}
