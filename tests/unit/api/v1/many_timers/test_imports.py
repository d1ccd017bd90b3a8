"""Imports: streams of timers, one per line."""

import asyncio
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Iterable, Sequence

from msgspec import json

from duetime.api.http.caller import Caller
from duetime.api.v1.batch_entries import BatchEntry
from duetime.api.v1.batches import BatchCreation, Outcome
from duetime.api.v1.full.restoration import FullRestoration
from duetime.api.v1.imports import BLOCK_BYTES, Import
from duetime.api.v1.request_types import CreateBody
from duetime.domain.security.access import EVERYTHING, Access
from duetime.domain.timer import TimerStatus
from tests.unit.api.asgi_client import API_KEY, Reply, call, make_api_rules
from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body, error_of
from tests.unit.service.service_bench import timer_rules


async def send(bench: V1Bench, chunks: Iterable[bytes], query: str = "") -> Reply:
    headers = [(b"x-api-key", API_KEY.encode())]
    return await call(bench.app, "POST", f"{BASE}/import{query}", chunks, headers)


def importing(bench: V1Bench, batches: BatchCreation) -> Import:
    full = FullRestoration(bench.restoring, bench.namespaces, EVERYTHING)
    return Import(batches, full, Caller(EVERYTHING), None, max_line_bytes=1_000)


def lines(*bodies: object) -> bytes:
    return b"".join(json.encode(body) + b"\n" for body in bodies)


async def test_every_line_is_a_timer(bench: V1Bench) -> None:
    content = lines(*(create_body(f"timer {number}") for number in range(2_500)))
    reply = await send(bench, [content])
    assert reply.status == 200
    assert reply.json == {
        "lines": 2_500,
        "created": 2_500,
        "existing": 0,
        "conflicts": 0,
        "invalid": 0,
        "errors": [],
    }
    assert (await bench.timers_stored())[TimerStatus.PENDING] == 2_500


async def test_chunks_may_end_anywhere(bench: V1Bench) -> None:
    content = lines(*(create_body(f"\N{SNOWMAN} {number}") for number in range(50)))
    chunks = [content[start : start + 7] for start in range(0, len(content), 7)]
    assert (await send(bench, chunks)).json["created"] == 50


async def test_a_byte_order_mark_before_the_first_line_is_skipped(bench: V1Bench) -> None:
    """Windows begins text files with one. Anywhere else it is a fault."""
    first, second = BOM_UTF8 + lines(create_body("a")), BOM_UTF8 + lines(create_body("b"))
    answer = (await send(bench, [first[:1], first[1:], second])).json
    assert (answer["lines"], answer["created"], answer["invalid"]) == (2, 1, 1)
    assert [error["line"] for error in answer["errors"]] == [2]


async def test_blocks_are_cut_at_ends_of_lines(bench: V1Bench) -> None:
    content = lines(*(create_body(f"timer {number}", payload="x" * 1_000) for number in range(900)))
    chunks = [content[start : start + 100_001] for start in range(0, len(content), 100_001)]
    assert (await send(bench, chunks)).json["created"] == 900


async def test_the_last_line_needs_no_line_break_and_blank_lines_are_skipped(
    bench: V1Bench,
) -> None:
    content = b"\n" + lines(create_body("a")) + b"  \r\n" + lines(create_body("b")).rstrip()
    answer = (await send(bench, [content])).json
    assert (answer["lines"], answer["created"], answer["invalid"]) == (4, 2, 0)


async def test_errors_have_the_numbers_of_bad_lines(bench: V1Bench) -> None:
    await bench.create_v1("there", payload=1)
    content = (
        lines(create_body("a"))
        + b"not json\n"
        + b"\n"
        + lines(create_body("there"), create_body("b", namespace="nowhere"))
        + b'{"id":"\xff"}\n'
        + lines(create_body("c"), ["d"])
    )
    answer = (await send(bench, [content])).json
    assert (answer["created"], answer["conflicts"], answer["invalid"]) == (2, 1, 4)
    assert [(error["line"], error["error"]) for error in answer["errors"]] == [
        (2, "INVALID_INPUT"),
        (4, "TIMER_CONFLICT"),
        (5, "NAMESPACE_NOT_FOUND"),
        (6, "INVALID_INPUT"),
        (8, "INVALID_INPUT"),
    ]
    messages = [error["message"] for error in answer["errors"]]
    assert messages[0].startswith("line is not valid JSON")
    assert messages[3:] == ["line is not valid UTF-8 (byte 7)", "line must be an object"]
    assert [error["details"] for error in answer["errors"]] == [
        {"field": "line"},
        {"fields": ["payload"]},
        {"field": "namespace"},
        {"field": "line"},
        {"field": "line"},
    ]


async def test_errors_have_the_readable_parts_of_the_keys_of_bad_lines(bench: V1Bench) -> None:
    await bench.create_v1("there", namespace="notifications")
    content = (
        lines(create_body("there", payload=1), create_body("late", executeAt="soon"))
        + lines(create_body("typo", extra=1), create_body("else", namespace="default", extra=1))
        + b'{"id":"latin","payload":"\xff"}\n{"id":"\xff"}\n{"id":"cut off\n{"id":"\\ud800"}\n'
    )
    answer = (await send(bench, [content], "?namespace=notifications")).json
    assert (answer["conflicts"], answer["invalid"]) == (1, 7)
    assert [(error.get("namespace"), error.get("id")) for error in answer["errors"]] == [
        ("notifications", "there"),
        ("notifications", "late"),
        ("notifications", "typo"),
        ("default", "else"),
        ("notifications", "latin"),
        (None, None),
        (None, None),
        (None, None),
    ]


async def test_an_error_names_the_bad_member_of_a_line(bench: V1Bench) -> None:
    content = lines(create_body("a", executeAt="soon"), create_body("b", retryPolicy={"max": 1}))
    errors = (await send(bench, [content])).json["errors"]
    assert [error["details"] for error in errors] == [
        {"field": "executeAt"},
        {"field": "retryPolicy.max"},
    ]
    assert list(errors[0]) == ["line", "namespace", "id", "error", "message", "details"]


async def test_a_line_nested_too_deep_does_not_affect_the_others(bench: V1Bench) -> None:
    deep: object = 1
    for _ in range(64):
        deep = [deep]
    content = lines(create_body("a"), create_body("b", metadata=deep), create_body("c"))
    answer = (await send(bench, [content])).json
    assert (answer["created"], answer["invalid"]) == (2, 1)
    assert answer["errors"] == [
        {
            "line": 2,
            "namespace": "default",
            "id": "b",
            "error": "INVALID_INPUT",
            "message": "line is nested deeper than 64 levels",
            "details": {"field": "line"},
        }
    ]


async def test_only_the_first_errors_are_listed(bench: V1Bench) -> None:
    answer = (await send(bench, [b"x\n" * 1_000])).json
    assert answer["invalid"] == 1_000
    assert [error["line"] for error in answer["errors"]] == list(range(1, 101))


async def test_the_first_errors_are_listed_when_a_later_block_is_written_first(
    bench: V1Bench,
) -> None:
    later_is_written = asyncio.Event()

    class FirstBlockLast(BatchCreation):
        async def create(self, entries: Sequence[BatchEntry], access: Access) -> list[Outcome]:
            outcomes = await super().create(entries, access)
            if outcomes and isinstance(entries[0], CreateBody) and entries[0].id == "first":
                await asyncio.wait_for(later_is_written.wait(), 10)
            else:
                later_is_written.set()
            return outcomes

    async def in_two_blocks() -> AsyncIterator[bytes]:
        yield lines(create_body("first")) + b"x\n" * 150
        yield (b"x" * 900 + b"\n") * (BLOCK_BYTES // 900)

    batches = FirstBlockLast(bench.service_with(timer_rules(min_delay_ms=0)), bench.namespaces)
    answer = await importing(bench, batches).run(in_two_blocks())
    assert [error.line for error in answer.errors] == list(range(2, 102))


async def test_an_instant_in_the_past_is_due_at_once(bench: V1Bench) -> None:
    content = lines(create_body("late", executeAt="2020-01-01T00:00:00Z"))
    assert (await send(bench, [content])).json["created"] == 1
    assert (await bench.timer("late"))["executeAt"] == "2020-01-01T00:00:00Z"


async def test_an_import_may_be_repeated(bench: V1Bench) -> None:
    content = lines(*(create_body(f"timer {number}") for number in range(10)))
    await send(bench, [content[: len(content) // 2]])
    answer = (await send(bench, [content])).json
    assert answer["created"] + answer["existing"] == 10
    assert answer["existing"] >= 4


async def test_lines_without_a_namespace_go_to_the_one_in_the_query(bench: V1Bench) -> None:
    content = lines(create_body("a"), create_body("b", namespace="default"))
    assert (await send(bench, [content], "?namespace=notifications")).json["created"] == 2
    assert (await bench.timer("a", "notifications"))["id"] == "a"
    assert (await bench.timer("b"))["id"] == "b"
    reply = await send(bench, [content], "?namespace=nowhere")
    assert error_of(reply)[:2] == (400, "NAMESPACE_NOT_FOUND")


async def test_a_line_that_is_too_long_does_not_affect_the_others() -> None:
    bench = await V1Bench(api_rules=make_api_rules(max_body_bytes=1_024)).open()
    long = lines(create_body("long", payload="x" * 600_000))
    content = lines(create_body("a")) + long + lines(create_body("b"))
    chunks = [content[start : start + 65_536] for start in range(0, len(content), 65_536)]
    answer = (await send(bench, chunks)).json
    assert (answer["created"], answer["invalid"]) == (2, 1)
    assert answer["errors"] == [
        {
            "line": 2,
            "error": "PAYLOAD_TOO_LARGE",
            "message": "line must be at most 1024 bytes",
            "details": {"field": "line"},
        }
    ]


async def test_a_slow_stream_is_written_as_it_comes(bench: V1Bench) -> None:
    written = asyncio.Event()

    class Watched(BatchCreation):
        async def create(self, entries: Sequence[BatchEntry], access: Access) -> list[Outcome]:
            outcomes = await super().create(entries, access)
            written.set()
            return outcomes

    async def slowly() -> AsyncIterator[bytes]:
        yield lines(create_body("first"))[:20]
        yield lines(create_body("first"))[20:]
        await asyncio.wait_for(written.wait(), 10)
        yield lines(create_body("second"))

    batches = Watched(bench.service_with(timer_rules(min_delay_ms=0)), bench.namespaces)
    answer = await importing(bench, batches).run(slowly())
    assert (answer.lines, answer.created) == (2, 2)


async def test_an_empty_stream_creates_nothing(bench: V1Bench) -> None:
    assert (await send(bench, [b""])).json["lines"] == 0
