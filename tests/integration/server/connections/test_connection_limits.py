"""Clients that keep the server waiting."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from duetime.ports.store import CreateRequest, CreateResult
from tests.integration.server.connections.clients import (
    BAD_CREATE,
    CREATE,
    HEALTH,
    IMPORT,
    WHOLE_CREATE,
    ask,
    limits,
    received,
    serving,
    wait_for_connections,
)
from tests.polling import poll


async def test_a_connection_that_sends_nothing_is_closed_without_a_word() -> None:
    async with serving(limits(head=0.1)) as clients:
        reader, _ = await clients.connect()
        assert await received(reader) == b""


@pytest.mark.parametrize("before", [b"", HEALTH], ids=["first", "second"])
async def test_a_slow_head_is_answered_with_408_however_its_bytes_come(before: bytes) -> None:
    async with serving(limits(head=0.2)) as clients:
        reader, writer = await clients.connect()
        if before:
            assert await ask((reader, writer), before) == b"HTTP/1.1 200 OK"
        writer.write(b"GET /api/v1/timers HTTP/1.1\r\n")
        answer = asyncio.create_task(received(reader))

        async def drip() -> bool:
            writer.write(b"x: y\r\n")
            return answer.done()

        await poll(drip, bool)
        head, _, body = answer.result().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"connection: close" in head
        assert b"the head of the request did not arrive within 0.2 s" in body
        assert b"INVALID_INPUT" in body


@pytest.mark.parametrize("request_head", [IMPORT, CREATE], ids=["import", "create"])
async def test_a_body_that_stops_is_answered_with_408(request_head: bytes) -> None:
    async with serving(limits(body=0.2)) as clients:
        reader, writer = await clients.connect()
        writer.write(request_head)
        answer = await received(reader)
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"no part of the request's body arrived for 0.2 s" in answer
        await wait_for_connections(clients, 0)


async def test_the_rest_of_an_answered_request_has_its_time_however_its_bytes_come() -> None:
    async with serving(limits(rest=0.4)) as clients:
        reader, writer = await clients.connect()
        head = b"POST /timers HTTP/1.1\r\nHost: test\r\nContent-Length: 99999\r\n\r\n"
        assert await ask((reader, writer), head) == b"HTTP/1.1 401 Unauthorized"
        rest = asyncio.create_task(received(reader))

        async def drip() -> bool:
            writer.write(b"x")
            return rest.done()

        await poll(drip, bool)
        assert rest.result() == b""
        await wait_for_connections(clients, 0)


async def test_the_rest_of_an_answered_request_is_skipped() -> None:
    async with serving(limits(rest=0.4)) as clients:
        streams = await clients.connect()
        head = b"POST /timers HTTP/1.1\r\nHost: test\r\nContent-Length: 9999\r\n\r\n"
        assert await ask(streams, head) == b"HTTP/1.1 401 Unauthorized"
        assert await ask(streams, b"x" * 9_999 + HEALTH) == b"HTTP/1.1 200 OK"


async def test_a_body_that_goes_on_may_take_longer_than_any_limit() -> None:
    async with serving(limits(head=0.4, body=0.4)) as clients:
        reader, writer = await clients.connect()
        writer.write(IMPORT)
        loop = asyncio.get_running_loop()
        until = loop.time() + 1.5

        async def drip() -> float:
            writer.write(b"1\r\n\n\r\n")
            return loop.time()

        await poll(drip, lambda now: now >= until)
        assert await ask((reader, writer), b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_an_idle_connection_is_not_limited_by_the_time_for_a_head() -> None:
    async with serving(limits(head=0.1)) as clients:
        streams, silent = await clients.connect(), await clients.connect()
        assert await ask(streams) == b"HTTP/1.1 200 OK"
        assert await received(silent[0]) == b""
        assert await ask(streams) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("request_", [HEALTH, WHOLE_CREATE], ids=["health", "create"])
async def test_an_idle_connection_is_closed_after_its_time(request_: bytes) -> None:
    async with serving(limits(idle=0.2)) as clients:
        streams = await clients.connect()
        assert (await ask(streams, request_)).startswith(b"HTTP/1.1 20")
        assert await received(streams[0]) == b""


async def test_a_create_under_way_is_not_idle_whatever_came_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(limits(idle=0.2)) as clients:
        store = clients.server.api.store
        create, is_open = store.create, asyncio.Event()

        async def create_late(requests: Sequence[CreateRequest]) -> list[CreateResult]:
            await is_open.wait()
            return await create(requests)

        monkeypatch.setattr(store, "create", create_late)
        busy, idle = await clients.connect(), await clients.connect()
        assert await ask(busy, BAD_CREATE + WHOLE_CREATE) == b"HTTP/1.1 400 Bad Request"
        assert await ask(idle) == b"HTTP/1.1 200 OK"
        assert await received(idle[0]) == b""
        is_open.set()
        assert await ask(busy, b"") == b"HTTP/1.1 201 Created"


@pytest.mark.parametrize("rest", [b"x" * 9, b"x" * 9 + b"\r\n"], ids=["body", "blank-line"])
async def test_neither_the_rest_of_a_body_nor_a_blank_line_begins_a_head(rest: bytes) -> None:
    async with serving(limits(head=0.2)) as clients:
        streams = await clients.connect()
        head = b"POST /timers HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\n"
        assert await ask(streams, head) == b"HTTP/1.1 401 Unauthorized"
        streams[1].write(rest)
        for _ in range(2):
            silent, _ = await clients.connect()
            assert await received(silent) == b""
        assert await ask(streams) == b"HTTP/1.1 200 OK"


async def test_a_head_that_begins_behind_another_request_has_the_time_of_a_head() -> None:
    async with serving(limits(head=0.2)) as clients:
        streams = await clients.connect()
        assert await ask(streams, HEALTH + b"GET /") == b"HTTP/1.1 200 OK"
        assert (await received(streams[0])).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


async def test_a_client_that_does_not_read_its_answers_is_dropped() -> None:
    async with serving(limits(answer=0.2)) as clients:
        _, writer = await clients.connect()
        transport: Any = writer.transport
        transport.pause_reading()
        document = b"GET /openapi.json HTTP/1.1\r\nHost: test\r\n\r\n"
        writer.write(document * 2_000)
        await wait_for_connections(clients, 1)
        await wait_for_connections(clients, 0)
