"""More clients than there are places."""

import asyncio

import pytest

from duetime.server.places import UNUSED_SECONDS
from tests.integration.server.connections.clients import (
    CREATE,
    IMPORT,
    LINES,
    ask,
    is_ended,
    limits,
    received,
    serving,
    wait_for_connections,
    wait_for_place,
)


async def test_silent_connections_make_room_for_new_ones_and_others_live_on() -> None:
    async with serving(limits(places=4)) as clients:
        used = await clients.connect()
        assert await ask(used) == b"HTTP/1.1 200 OK"
        silent = [await clients.connect() for _ in range(3)]
        await wait_for_connections(clients, 4)
        for _ in range(8):
            newcomer = await clients.connect()
            assert await ask(newcomer) == b"HTTP/1.1 200 OK"
            newcomer[1].close()
            await wait_for_connections(clients, 4 - sum([await is_ended(each) for each in silent]))
        assert await ask(used) == b"HTTP/1.1 200 OK"


async def test_connections_in_use_leave_no_place_and_others_are_told_to_come_back() -> None:
    async with serving(limits(places=2)) as clients:
        used = [await clients.connect() for _ in range(2)]
        for streams in used:
            streams[1].write(IMPORT)
        await wait_for_connections(clients, 2)
        for path, code in ((b"/api/v1/timers", b"SERVICE_UNAVAILABLE"), (b"/timers", b'"code":1')):
            reader, writer = await clients.connect()
            writer.write(b"GET %b HTTP/1.1\r\nHost: test\r\n\r\n" % path)
            answer = await received(reader)
            assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            assert b"\r\nretry-after: " in answer
            assert code in answer
        for streams in used:
            assert await ask(streams, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_a_connection_unused_for_a_while_makes_room_before_one_in_use() -> None:
    async with serving(limits(places=2)) as clients:
        idle, used = await clients.connect(), await clients.connect()
        assert await ask(idle) == b"HTTP/1.1 200 OK"
        used[1].write(IMPORT)
        await wait_for_connections(clients, 2)
        await wait_for_place(clients)
        assert await received(idle[0]) == b""
        assert await ask(used, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_a_connection_answered_a_moment_ago_is_in_use() -> None:
    async with serving(limits()) as clients:
        streams, loop = await clients.connect(), asyncio.get_running_loop()
        asked_at = loop.time()
        assert await ask(streams) == b"HTTP/1.1 200 OK"
        (protocol,) = clients.server.protocols
        assert not protocol.is_unused(asked_at + UNUSED_SECONDS - 0.001)
        assert protocol.is_unused(loop.time() + UNUSED_SECONDS)


async def test_an_unfinished_head_keeps_no_place() -> None:
    async with serving(limits(places=2, look=0.2)) as clients:
        used, slow = await clients.connect(), await clients.connect()
        assert await ask(slow) == b"HTTP/1.1 200 OK"
        slow[1].write(b"GET ")
        used[1].write(IMPORT)
        await wait_for_connections(clients, 2)
        await wait_for_place(clients, lambda: used[1].write(LINES))
        assert await received(slow[0]) == b""
        assert await ask(used, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_a_surplus_client_that_is_still_sending_sees_the_answer() -> None:
    async with serving(limits(places=1)) as clients:
        used = await clients.connect()
        used[1].write(IMPORT)
        await wait_for_connections(clients, 1)
        for target in (b"/timers", b"//[", b"/\xff"):
            reader, writer = await clients.connect()
            writer.write(
                b"POST %b HTTP/1.1\r\nHost: test\r\nContent-Length: 600000\r\n\r\n" % target
            )
            for _ in range(6):
                writer.write(b"x" * 100_000)
                await writer.drain()
            answer = await received(reader)
            assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            writer.close()


async def test_surplus_connections_that_send_nothing_are_dropped() -> None:
    async with serving(limits(places=8)) as clients:
        used = [await clients.connect() for _ in range(8)]
        for streams in used:
            streams[1].write(IMPORT)
        await wait_for_connections(clients, 8)
        surplus = [await clients.connect() for _ in range(5)]
        for streams in surplus:
            assert await received(streams[0]) == b""
        assert clients.server.connections == 8


async def test_a_silent_surplus_connection_does_not_keep_others_from_their_answer() -> None:
    async with serving(limits(places=8)) as clients:
        for _ in range(8):
            (await clients.connect())[1].write(IMPORT)
        await wait_for_connections(clients, 8)
        silent = await clients.connect()
        for _ in range(3):
            reader, writer = await clients.connect()
            writer.write(b"GET /timers HTTP/1.1\r\nHost: test\r\n\r\n")
            assert (await received(reader)).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert await received(silent[0]) == b""


async def test_probes_are_answered_although_there_is_no_place() -> None:
    async with serving(limits(places=1)) as clients:
        (await clients.connect())[1].write(IMPORT)
        await wait_for_connections(clients, 1)
        answers = []
        for is_draining in (False, True):
            clients.server.api.app.lifecycle.is_draining = is_draining
            for target in (b"/livez", b"/readyz", b"/readyz?verbose"):
                reader, writer = await clients.connect()
                writer.write(b"GET %b HTTP/1.1\r\nHost: test\r\n\r\n" % target)
                head, _, body = (await received(reader)).partition(b"\r\n\r\n")
                answers.append((head[9:12], body.split(b'"')[5]))
        assert answers == [
            *[(b"200", b"alive"), (b"200", b"ready"), (b"200", b"ready")],
            *[(b"200", b"alive"), (b"503", b"stopping"), (b"503", b"stopping")],
        ]


@pytest.mark.parametrize("target", [b"/timers", b"/nope"])
@pytest.mark.parametrize("length", [99_999, 999_999], ids=["kept alive", "lingering"])
async def test_the_body_of_a_refused_request_keeps_no_place(target: bytes, length: int) -> None:
    async with serving(limits(places=3, look=0.2)) as clients:
        refused = [await clients.connect() for _ in range(3)]
        head = b"POST %b HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % (target, length)
        for streams in refused:
            assert (await ask(streams, head))[9:10] == b"4"

        def drip() -> None:
            for _, writer in refused:
                writer.write(b"x")

        await wait_for_place(clients, drip)


@pytest.mark.parametrize("request_head", [IMPORT, CREATE], ids=["import", "create"])
async def test_a_slow_body_keeps_no_place_and_others_live_on(request_head: bytes) -> None:
    async with serving(limits(places=2, look=0.2)) as clients:
        slow, used = await clients.connect(), await clients.connect()
        slow[1].write(request_head)
        used[1].write(IMPORT)
        await wait_for_connections(clients, 2)

        def drip() -> None:
            slow[1].write(b"1\r\n\n\r\n")
            used[1].write(LINES)

        await wait_for_place(clients, drip)
        assert await received(slow[0]) == b""
        assert await ask(used, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_answers_that_nobody_reads_keep_no_place() -> None:
    async with serving(limits(places=1, look=0.2)) as clients:
        _, writer = await clients.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: test\r\n\r\n" * 2_000)
        await wait_for_connections(clients, 1)
        await wait_for_place(clients)


async def test_an_idle_connection_behind_many_busy_ones_makes_room() -> None:
    async with serving(limits(places=101)) as clients:
        for _ in range(100):
            (await clients.connect())[1].write(IMPORT)
        idle = await clients.connect()
        assert await ask(idle) == b"HTTP/1.1 200 OK"
        await wait_for_connections(clients, 101)
        await wait_for_place(clients)
        assert await received(idle[0]) == b""


async def test_a_surplus_head_request_gets_no_content() -> None:
    async with serving(limits(places=1)) as clients:
        (await clients.connect())[1].write(IMPORT)
        await wait_for_connections(clients, 1)
        for target, status in ((b"/timers", b"503"), (b"/livez", b"200")):
            reader, writer = await clients.connect()
            writer.write(b"HEAD %b HTTP/1.1\r\nHost: test\r\n\r\n" % target)
            head, _, content = (await received(reader)).partition(b"\r\n\r\n")
            assert (head[9:12], content) == (status, b"")
