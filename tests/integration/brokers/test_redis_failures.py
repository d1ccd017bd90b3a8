"""Messages about Redis failures are written for people and never quote the library."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from duetime.bus.redis import connection as redis_connection
from duetime.bus.redis.bus import RedisBus
from duetime.domain.errors import BusUnavailable
from tests.brokers.valkey_fixtures import MakeValkey

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[str]:
    """The address of a server that is not a Redis server."""
    writers: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await reader.read(1)
        serve(reader, writer)

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"
        for writer in writers:
            writer.close()


async def problem_at(url: str) -> str:
    bus = RedisBus(url, "node-1")
    with pytest.raises(BusUnavailable) as caught:
        await bus.open()
    await bus.close()
    return caught.value.message


@pytest.mark.parametrize("scheme", ["redis", "rediss", "valkey"])
async def test_a_refused_connection_is_reported(scheme: str) -> None:
    assert await problem_at(f"{scheme}://127.0.0.1:1") == (
        f"{scheme}://127.0.0.1:1: connection refused"
    )


async def test_no_such_host() -> None:
    told = await problem_at("redis://no-such-host.invalid")
    assert told.startswith("redis://no-such-host.invalid:6379: ")
    assert "Error" not in told
    assert "name" in told


async def test_another_kind_of_server_is_recognized() -> None:
    async with listening(lambda _, writer: writer.write(b"HTTP/1.1 400 No\r\n\r\n")) as address:
        told = await problem_at(f"redis://{address}")
        assert told == f"redis://{address}: the server there is not a Redis server"
        told = await problem_at(f"rediss://{address}")
        assert told == f"rediss://{address}: TLS handshake failed: wrong version number"


async def test_the_connection_is_closed_at_once() -> None:
    async with listening(lambda _, writer: writer.close()) as address:
        told = await problem_at(f"redis://{address}")
        assert told.startswith(f"redis://{address}: connection ")
        assert "TLS" in await problem_at(f"rediss://{address}")


async def test_a_silent_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_connection, "ANSWER_SECONDS", 0.1)
    async with listening(lambda *_: None) as address:
        told = await problem_at(f"redis://{address}")
        assert told == f"redis://{address}: no answer within 0.1 s"
        told = await problem_at(f"valkeys://{address}")
        assert told == f"valkeys://{address}: no answer within 0.1 s (does it speak TLS?)"


async def test_a_missing_wrong_or_needless_password_is_reported(make_valkey: MakeValkey) -> None:
    closed = make_valkey("--requirepass", "s3cret").url.removeprefix("redis://")
    assert await problem_at(f"redis://{closed}") == f"redis://{closed} needs a password"
    assert await problem_at(f"redis://:no@{closed}") == (
        f"redis://{closed} does not accept the user or the password"
    )
    free = make_valkey().url.removeprefix("redis://")
    assert await problem_at(f"redis://:no@{free}") == (
        f"redis://{free} has no password, but the URL gives one"
    )


async def test_a_lost_connection_is_reported(make_valkey: MakeValkey) -> None:
    server = make_valkey()
    bus = RedisBus(server.url.replace("redis:", "valkey:"), "node-1")
    await bus.open()
    server.process.kill()
    with pytest.raises(BusUnavailable, match=r"valkey://.*: connection (closed|reset|refused)"):
        await bus.open()
    await bus.close()


async def test_a_shortage_of_this_process_is_told_from_an_absent_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    bus = RedisBus("redis://127.0.0.1:1", "node-1")
    with pytest.raises(BusUnavailable) as refused:
        await bus.open()
    monkeypatch.setattr(asyncio, "open_connection", none_left)
    with pytest.raises(BusUnavailable) as short:
        await bus.open()
    await bus.close()
    assert (refused.value.lacks, short.value.lacks) == (None, "file descriptors")
    assert short.value.message == "redis://127.0.0.1:1: could not connect: too many open files"
