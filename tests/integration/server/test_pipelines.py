"""Pipelined requests: each is handled once, and the answers come in order."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import pytest
import uvloop
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from duetime.ports.store import CreateRequest, CreateResult
from duetime.stores.memory import MemoryStore
from tests.effort import scaled
from tests.integration.server.loopback_server import exchange, loopback_server
from tests.integration.server.pipelines import HOST, KEY, Expected, Pipeline, pipelines, splits
from tests.polling import PATIENCE_SECONDS, poll
from tests.seed import given_seed
from tests.unit.api.asgi_client import ApiBench, create_body

UNREAD_BYTES = 32 * 2**20
"""More than the system buffers between client and server."""

TestT = TypeVar("TestT", bound=Callable[..., Any])


def seeded(test: TestT) -> TestT:
    number = given_seed()
    return test if number is None else seed(number)(test)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield runner


def in_loop(runner: asyncio.Runner, data: bytes, cuts: list[int], turns: list[int]) -> Any:
    async def run() -> tuple[bytes, int]:
        async with loopback_server(ApiBench()) as server, asyncio.timeout(PATIENCE_SECONDS):
            sent = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
            answers = await exchange(server, sent, turns)
            await poll(server.open_connections, until=lambda count: count == 0)
            assert server.api.app.bodies.used_bytes == 0
            return answers, await server.timers_stored()

    return runner.run(run())


def create_request(*headers: bytes) -> bytes:
    body = msgspec.json.encode(create_body())
    lines = b"".join(headers)
    head = b"POST /timers HTTP/1.1\r\n%b%b%bContent-Length: %d\r\n\r\n"
    return head % (HOST, KEY, lines, len(body)) + body


def answers_in(stream: bytes, expected: list[Expected]) -> list[tuple[int, Any]]:
    """Status and body of each final answer. Only `expected` tells answers to HEAD apart."""
    answers: list[tuple[int, Any]] = []
    while stream:
        head, end, stream = stream.partition(b"\r\n\r\n")
        assert end, f"a head without an end: {head!r}"
        status = int(head.split(b" ")[1])
        if status == 100:
            continue
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length: "):
                length = int(line.removeprefix(b"content-length: "))
        if len(answers) < len(expected) and expected[len(answers)].is_head:
            length = 0
        assert len(stream) >= length, f"a body that is cut off after {head!r}"
        content, stream = stream[:length], stream[length:]
        answers.append((status, msgspec.json.decode(content) if content else None))
    return answers


def check(pipeline: Pipeline, stream: bytes, stored: int) -> None:
    expected = pipeline.expected
    answers = answers_in(stream, expected)
    assert [status for status, _ in answers] == [each.status for each in expected]
    for (_, body), each in zip(answers, expected, strict=True):
        if each.members is not None:
            assert body.keys() == each.members
    assert stored == sum(each.is_create for each in expected)


@seeded
@settings(max_examples=scaled(200), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_pipeline_in_any_split(runner: asyncio.Runner, data: st.DataObject) -> None:
    pipeline = data.draw(pipelines())
    stream = pipeline.encode()
    cuts = data.draw(splits(len(stream)))
    turns = [data.draw(st.sampled_from([0, 1, 3, 8])) for _ in range(len(cuts) + 1)]
    answers, stored = in_loop(runner, stream, cuts, turns)
    check(pipeline, answers, stored)


def test_an_offer_behind_a_create_does_not_repeat_the_create(runner: asyncio.Runner) -> None:
    offer = b"GET /healthz HTTP/1.1\r\n%bConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" % HOST
    last = b"GET /nope HTTP/1.1\r\n%bConnection: close\r\n\r\n" % HOST
    stream, stored = in_loop(runner, create_request() + offer + last, [], [0])
    assert [status for status, _ in answers_in(stream, [])] == [201, 200, 404]
    assert stored == 1


def test_bytes_that_are_not_http_behind_a_head_request_get_a_whole_answer(
    runner: asyncio.Runner,
) -> None:
    head = b"HEAD /healthz HTTP/1.1\r\n%b\r\n" % HOST
    stream, _ = in_loop(runner, head + b"garbage\r\n\r\n", [], [0])
    expected = [Expected(200, is_head=True), Expected(400)]
    assert [status for status, _ in answers_in(stream, expected)] == [200, 400]


def test_a_thousand_offers_in_a_row(runner: asyncio.Runner) -> None:
    offer = create_request(b"Connection: Upgrade\r\n", b"Upgrade: h2c\r\n")
    last = b"GET /nope HTTP/1.1\r\n%bConnection: close\r\n\r\n" % HOST
    stream, stored = in_loop(runner, offer * 1_000 + last, [], [0])
    assert [status for status, _ in answers_in(stream, [])] == [201] * 1_000 + [404]
    assert stored == 1_000


class HeldStore(MemoryStore):
    """Creates nothing until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        await self.released.wait()
        return await super().create(requests)


async def test_nothing_more_is_read_while_requests_are_queued() -> None:
    """A client could fill the memory otherwise: every answer would let it send many requests."""
    store = HeldStore()
    api = ApiBench(store=store)
    async with loopback_server(api) as server, asyncio.timeout(PATIENCE_SECONDS):
        _, writer = await server.connect()
        usual = create_request().replace(b"/timers", b"http://test/timers", 1)
        quick = b"GET /livez HTTP/1.1\r\n%bX-Padding: %b\r\n\r\n" % (HOST, b"x" * 4_096)
        writer.write(quick * 1_000 + usual + quick * (UNREAD_BYTES // len(quick)))
        reader, other = await server.connect()

        async def unread_bytes() -> tuple[int, int]:
            """Before and after a time in which the server could have read everything."""
            before = writer.transport.get_write_buffer_size()
            for _ in range(100):
                other.write(b"GET /livez HTTP/1.1\r\n%b\r\n" % HOST)
                await reader.readuntil(b"}")
            return before, writer.transport.get_write_buffer_size()

        before, after = await poll(unread_bytes, lambda found: found[0] == found[1])
        assert before == after > UNREAD_BYTES / 2
        store.released.set()
        writer.transport.abort()
        other.close()


async def test_a_refused_head_request_gets_no_content() -> None:
    async with loopback_server(ApiBench()) as server, asyncio.timeout(PATIENCE_SECONDS):
        stream = await exchange(server, [b"HEAD /timers HTTP/1.1\r\n\r\n"], [0])
    head, _, content = stream.partition(b"\r\n\r\n")
    assert (head[9:12], content) == (b"400", b"")
    assert b"content-length: 0" not in head


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET /livez HTTP/0.9", 505),
        (b"GET /livez HTTP/2.0", 505),
        (b"GET /livez HTTP/1.2", 400),
        (b"GET /livez HTTP/3", 400),
        (b"GET /livez", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM", 400),
    ],
)
async def test_other_versions_of_http_are_refused(line: bytes, status: int) -> None:
    async with loopback_server(ApiBench()) as server, asyncio.timeout(PATIENCE_SECONDS):
        stream = await exchange(server, [line + b"\r\n%b\r\n" % HOST], [0])
    assert [found for found, _ in answers_in(stream, [])] == [status]
