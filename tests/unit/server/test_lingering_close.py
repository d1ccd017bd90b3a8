"""The end of connections whose clients are silent, keep sending, or do not read."""

import asyncio

import pytest

from duetime.server.lingering_close import (
    MAX_BYTES,
    MAX_SECONDS,
    SILENCE_SECONDS,
    LingeringClose,
)
from duetime.testing import LoopClock, on_virtual_time


class Connection(asyncio.Transport):
    """A connection that its client never closes."""

    def __init__(self, unread_bytes: int = 0) -> None:
        super().__init__()
        self.events: list[str] = []
        self.ended = asyncio.Event()
        self._unread_bytes = unread_bytes

    def write_eof(self) -> None:
        self.events.append("eof")

    def get_write_buffer_size(self) -> int:
        return self._unread_bytes

    def close(self) -> None:
        self._end("close")

    def abort(self) -> None:
        self._end("abort")

    def _end(self, how: str) -> None:
        self.events.append(how)
        self.ended.set()


@on_virtual_time
async def test_a_silent_client_is_given_up_soon() -> None:
    connection = Connection()
    LingeringClose(connection, asyncio.get_running_loop())
    await connection.ended.wait()
    assert connection.events == ["eof", "close"]
    assert LoopClock().monotonic() == pytest.approx(SILENCE_SECONDS)


@on_virtual_time
async def test_a_client_that_does_not_read_is_cut_off() -> None:
    connection = Connection(unread_bytes=1)
    LingeringClose(connection, asyncio.get_running_loop())
    await connection.ended.wait()
    assert connection.events == ["eof", "abort"]
    assert LoopClock().monotonic() == pytest.approx(MAX_SECONDS)


@on_virtual_time
async def test_a_client_that_trickles_is_cut_off() -> None:
    connection, clock = Connection(), LoopClock()
    lingering = LingeringClose(connection, asyncio.get_running_loop())
    while not connection.ended.is_set():
        lingering.discard(b"x")
        await clock.sleep(SILENCE_SECONDS / 4)
    assert connection.events == ["eof", "abort"]
    assert clock.monotonic() == pytest.approx(MAX_SECONDS, abs=SILENCE_SECONDS)


@on_virtual_time
async def test_a_client_that_sends_without_end_is_cut_off() -> None:
    connection = Connection()
    lingering = LingeringClose(connection, asyncio.get_running_loop())
    piece = bytes(2**20)
    for _ in range(MAX_BYTES // len(piece)):
        lingering.discard(piece)
    assert connection.events == ["eof"]
    lingering.discard(b"x")
    assert connection.events == ["eof", "abort"]
    lingering.ended()


@on_virtual_time
async def test_a_stop_is_not_held_up() -> None:
    connection, clock = Connection(unread_bytes=1), LoopClock()
    lingering = LingeringClose(connection, asyncio.get_running_loop())
    lingering.hurry()
    await connection.ended.wait()
    assert clock.monotonic() == pytest.approx(SILENCE_SECONDS)
