"""Everything that can be done to a timer on its page, and everything that is refused."""

from typing import Any

import pytest

from tests.unit.api.asgi_client import Reply
from tests.unit.web.page_bench import text_of
from tests.unit.web.timer.timer_bench import LONG, TimerBench, path_to

ACTIONS = ("run-now", "move", "cancel", "redrive", "delete", "change", "check")


def location(reply: Reply) -> str:
    assert reply.status == 303, text_of(reply)
    return reply.headers["location"]


async def audited(bench: TimerBench) -> list[tuple[str, str | None, str, str | None]]:
    """Action, target, result and details of the entries, the oldest first."""
    entries = await bench.entries()
    found = [(each.action, each.target, each.result, each.details) for each in reversed(entries)]
    return [each for each in found if each[0].startswith("timer.")]


async def test_a_timer_is_run_now(bench: TimerBench) -> None:
    await bench.create_v1()
    assert location(await bench.act("run-now")) == path_to("one")
    assert (await bench.timer())["nextAttemptAt"] == "2030-01-01T00:00:00Z"
    assert await audited(bench) == [("timer.update", "one", "ok", "runNow")]


@pytest.mark.parametrize(
    ("typed", "next_at"),
    [("1 h 30 min", "2030-01-01T01:30:10Z"), ("-4s", "2030-01-01T00:00:06Z")],
)
async def test_a_timer_is_moved(bench: TimerBench, typed: str, next_at: str) -> None:
    await bench.create_v1()
    assert location(await bench.act("move", move_by=typed)) == path_to("one")
    assert (await bench.timer())["nextAttemptAt"] == next_at
    assert await audited(bench) == [("timer.update", "one", "ok", f"moveBy={typed}")]


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("", "By how much is missing"),
        ("soon", "By how much must be a duration"),
        ("900000 days", "By how much is too long"),
        ("0s", "By how much must not be zero"),
    ],
)
async def test_a_wrong_move_is_told_on_the_page(
    bench: TimerBench, typed: str, problem: str
) -> None:
    await bench.create_v1()
    reply = await bench.act("move", move_by=typed)
    assert reply.status == 400
    assert f"Nothing was changed: {problem}" in text_of(reply)
    html = reply.content.decode()
    assert '<meta name="live" content="/ui/timers/default/one">' in html
    form = html.partition("popover data-opened")[2].partition("</form>")[0]
    assert f'value="{typed}"' in form
    assert 'aria-invalid="true"' in form
    assert problem.removeprefix("By how much ") in form.partition('id="move-by-error"')[2]
    ((action, target, result, _),) = await audited(bench)
    assert (action, target, result) == ("timer.update", "one", "INVALID_INPUT")


@pytest.mark.parametrize("action", ACTIONS)
async def test_the_address_of_an_action_leads_to_its_timer(bench: TimerBench, action: str) -> None:
    assert (await bench.page(f"{path_to('one')}/{action}")).status == 404
    await bench.create_v1()
    assert location(await bench.page(f"{path_to('one')}/{action}")) == path_to("one")
    await bench.create_v1(f"one/{action}")
    assert (await bench.page(f"{path_to('one')}/{action}")).status == 200


async def test_a_timer_is_canceled_and_says_so(bench: TimerBench) -> None:
    await bench.create_v1()
    assert location(await bench.act("cancel")) == path_to("one")
    text = text_of(await bench.show())
    assert "Canceled at 2030-01-01 00:00:00 UTC : it does not fire." in text
    assert "canceled due 2030-01-01 00:00:10 UTC" in text
    bench.clock.advance(10)
    assert "canceled was due 2030-01-01 00:00:10 UTC" in text_of(await bench.show())
    assert await audited(bench) == [("timer.cancel", "one", "ok", None)]


async def test_a_timer_is_deleted(bench: TimerBench) -> None:
    await bench.create_v1()
    assert location(await bench.act("delete")) == "/ui/timers"
    assert (await bench.show()).status == 404
    assert await audited(bench) == [("timer.delete", "one", "ok", None)]


async def test_a_failed_timer_is_redriven(bench: TimerBench) -> None:
    await bench.create_v1()
    await bench.fail("one")
    assert location(await bench.act("redrive")) == path_to("one")
    assert (await bench.timer())["status"] == "pending"
    assert await audited(bench) == [("timer.redrive", "one", "ok", None)]


@pytest.mark.parametrize("action", ["run-now", "move", "cancel", "delete", "change"])
async def test_a_timer_that_fired_meanwhile_is_left_alone(bench: TimerBench, action: str) -> None:
    await bench.create_v1(executeAt="2030-01-01T00:00:01Z")
    bench.clock.advance(1)
    await bench.claim_all()
    reply = await bench.act(action, move_by="1h", execute_at="in 1 h", payload="")
    assert reply.status == 409
    assert "Nothing was changed: it is being fired at this moment." in text_of(reply)
    ((_, _, result, _),) = await audited(bench)
    assert result == "TIMER_NOT_PENDING"


async def test_only_failed_timers_are_redriven(bench: TimerBench) -> None:
    await bench.create_v1()
    reply = await bench.act("redrive")
    assert reply.status == 409
    assert "Nothing was changed: it is pending." in text_of(reply)


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_form_of_another_site_does_nothing(bench: TimerBench, action: str) -> None:
    await bench.create_v1()
    reply = await bench.send(f"{path_to('one')}/{action}", [("move_by", "1h")], token="wrong")
    assert reply.status == 403
    assert (await bench.timer())["nextAttemptAt"] == "2030-01-01T00:00:10Z"


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_timer_that_does_not_exist_is_not_acted_on(bench: TimerBench, action: str) -> None:
    reply = await bench.act(action, "nobody", move_by="1h")
    assert reply.status == 404
    assert "Timer not found." in text_of(reply)


@pytest.mark.parametrize(
    ("action", "status", "fields"),
    [
        ("move", 400, {"move_by": "zzz"}),
        ("change", 400, {"payload": "{"}),
        ("change", 409, {"payload": "2", "version": "1"}),
        ("redrive", 409, {}),
        ("check", 403, {"payload": "1"}),
    ],
)
async def test_a_refusal_shows_nothing_of_the_timer_to_a_key_that_may_not_read(
    bench: TimerBench, action: str, status: int, fields: dict[str, str]
) -> None:
    await bench.create_v1(payload={"private": 1}, metadata={"private": 2})
    key = await bench.issue_key("write")
    reply = await bench.act(action, key=key, **fields)
    assert reply.status == status
    assert b"private" not in reply.content
    assert b"example.com" not in reply.content


@pytest.mark.parametrize("action", ["run-now", "move", "delete", "change"])
async def test_a_timer_that_is_canceled_is_not_shown_to_a_key_that_may_not_read(
    bench: TimerBench, action: str
) -> None:
    await bench.create_v1(payload={"private": 1})
    await bench.act("cancel")
    key = await bench.issue_key("write")
    reply = await bench.act(action, key=key, move_by="1h", payload="")
    assert reply.status == 409
    assert b"private" not in reply.content


class TestEdit:
    async def edit(self, bench: TimerBench, **fields: str) -> Reply:
        return await bench.act("change", **fields)

    async def test_the_payload_keeps_its_numbers_and_its_order(self, bench: TimerBench) -> None:
        await bench.create_long()
        typed = '{\r\n  "b": 0.10,\r\n  "a": 98765432109876543210.01234567890123456789\r\n}'
        reply = await self.edit(bench, execute_at="2030-01-01T00:00:10Z", payload=typed)
        assert location(reply) == path_to("one")
        stored = await bench.request("GET", "/api/v1/timers/default/one")
        assert b'"payload":{"b":0.10,"a":98765432109876543210.01234567890123456789}' in (
            stored.content
        )
        assert await audited(bench) == [("timer.update", "one", "ok", "payload")]

    async def test_fields_that_were_left_alone_change_nothing(self, bench: TimerBench) -> None:
        await bench.create_long()
        before = await bench.timer()
        bench.clock.advance(1)
        shown = (
            '{\r\n  "z": 12345678901234567890.12345678901234567890,\r\n  "a": [\r\n    1E+5\r\n'
            "  ]\r\n}"
        )
        reply = await self.edit(bench, execute_at="2030-01-01 01:00:10+01:00", payload=shown)
        assert location(reply) == path_to("one")
        assert await bench.timer() == before
        stored = await bench.request("GET", "/api/v1/timers/default/one")
        assert LONG.encode() in stored.content

    @pytest.mark.parametrize(
        ("typed", "execute_at", "details"),
        [
            ("in 15 min", "2030-01-01T00:15:00Z", "executeIn=900000ms"),
            (
                "2030-06-01 12:00 Europe/Berlin",
                "2030-06-01T10:00:00Z",
                "executeAt=2030-06-01T10:00:00Z",
            ),
        ],
    )
    async def test_the_instant_is_absolute_or_relative(
        self, bench: TimerBench, typed: str, execute_at: str, details: str
    ) -> None:
        await bench.create_v1(payload=1)
        assert location(await self.edit(bench, execute_at=typed)) == path_to("one")
        timer = await bench.timer()
        assert timer["executeAt"] == execute_at
        assert timer["payload"] == 1
        assert await audited(bench) == [("timer.update", "one", "ok", details)]

    async def test_an_empty_payload_is_none(self, bench: TimerBench) -> None:
        await bench.create_v1(payload={"a": 1})
        await self.edit(bench, payload=" ")
        assert (await bench.timer())["payload"] is None

    async def test_errors_are_beside_their_fields_and_keep_what_was_typed(
        self, bench: TimerBench
    ) -> None:
        await bench.create_v1(payload={"a": 1})
        reply = await self.edit(bench, execute_at="yesterday", payload='{"a": }')
        html = reply.content.decode()
        assert reply.status == 400
        assert "must be an instant, such as" in text_of(reply)
        assert "is not valid JSON: invalid character (line 1, column 7)" in text_of(reply)
        assert 'value="yesterday"' in html
        assert "{&#34;a&#34;: }</textarea>" in html
        ((_, _, result, _),) = await audited(bench)
        assert result == "INVALID_INPUT"

    async def test_a_change_by_somebody_else_is_not_overwritten_unseen(
        self, bench: TimerBench
    ) -> None:
        await bench.create_v1(payload={"a": 1})
        form = (await bench.show(query="?edit")).content.decode()
        version = form.partition('name="version" value="')[2].partition('"')[0]
        bench.clock.advance(1)
        await bench.act("move", move_by="1h")
        reply = await self.edit(bench, payload='{"mine": 1}', version=version)
        assert reply.status == 409
        assert "the timer was changed while this form was open" in text_of(reply)
        html = reply.content.decode()
        assert "{&#34;mine&#34;: 1}</textarea>" in html
        version = html.partition('name="version" value="')[2].partition('"')[0]
        assert location(await self.edit(bench, payload='{"mine": 1}', version=version))
        assert (await bench.timer())["payload"] == {"mine": 1}


class TestCheck:
    async def found(self, bench: TimerBench, **fields: str) -> Any:
        reply = await bench.check(**fields)
        assert reply.status == 200, reply.content
        return reply.json

    async def test_good_input_is_read_back(self, bench: TimerBench) -> None:
        await bench.create_v1()
        away = await self.found(bench, execute_at="2030-01-01 01:15", zone="Asia/Tokyo")
        assert away["errors"] == {"execute_at": "must be in the future"}
        away = await self.found(bench, execute_at="2030-01-01 10:30", zone="Asia/Tokyo")
        in_tokyo = "Tuesday 1 Jan 2030, 10:30:00 Asia/Tokyo (01:30:00 UTC), in 1.5 h"
        assert away["says"] == {"execute_at": in_tokyo}
        found = await self.found(bench, execute_at="in 15 min", payload=LONG)
        assert found["errors"] == {}
        assert found["says"] == {"execute_at": "Tuesday 1 Jan 2030, 00:15:00 UTC, in 15 min"}
        assert "12345678901234567890.12345678901234567890,\n" in found["formatted"]["payload"]
        assert (await bench.timer())["payload"] is None, "nothing is changed by a check"
        assert await audited(bench) == []

    async def test_the_rules_of_the_service_apply(self, bench: TimerBench) -> None:
        await bench.create_v1()
        found = await self.found(
            bench, execute_at="2029-12-31T00:00:00Z", payload='"' + "x" * 300_000 + '"'
        )
        assert found["errors"] == {
            "execute_at": "must be in the future",
            "payload": "must be at most 262144 bytes of JSON",
        }

    async def test_the_limit_of_the_namespace_applies(self, bench: TimerBench) -> None:
        await bench.create_v1(namespace="small")
        reply = await bench.send(
            f"{path_to('one', 'small')}/check",
            [("payload", f'"{"x" * 30}"')],
            accept="application/json",
        )
        assert reply.json["errors"] == {"payload": "must be at most 20 bytes of JSON"}

    async def test_a_timer_that_fires_meanwhile_is_told(self, bench: TimerBench) -> None:
        await bench.create_v1()
        await bench.fail("one")
        found = await self.found(bench, execute_at="in 15 min")
        assert (
            found["message"] == "It can no longer be changed: it has fired meanwhile, and failed."
        )
