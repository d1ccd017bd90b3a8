"""Commands on a real terminal."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import termios
from pathlib import Path

import httpx
import pytest

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY, DUETIME, ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms, wait_for_status

pytestmark = pytest.mark.e2e

URL = "http://127.0.0.1:9/customers/4711/orders/{}/payment-reminders?token=abcdefgh"

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


async def on_terminal(width: int, server: ServerProcess, directory: Path, *arguments: str) -> str:
    """The output of a command on a terminal with that many columns, without its styles."""
    terminal, command_side = pty.openpty()
    try:
        fcntl.ioctl(command_side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        process = await asyncio.create_subprocess_exec(
            DUETIME,
            *arguments,
            cwd=directory,
            env={"DUETIME_URL": server.url, "DUETIME_API_KEY": API_KEY, "TERM": "xterm"},
            stdout=command_side,
        )
        os.close(command_side)
        reading = asyncio.create_task(asyncio.to_thread(_read_all, terminal))
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.wait() == 0
            return _STYLE.sub("", (await reading).decode().replace("\r\n", "\n"))
    finally:
        os.close(terminal)


def _read_all(terminal: int) -> bytes:
    output = b""
    while True:
        try:
            data = os.read(terminal, 65_536)
        except OSError:
            # Linux reports the end of a terminal as an error.
            return output
        if not data:
            return output
        output += data


async def test_a_list_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        ids = [await _failed_timer(api, number) for number in range(3)]
        lines = (await on_terminal(80, server, tmp_path, "list")).splitlines()
        heading, *rows, note = (line.rstrip() for line in lines)
        assert heading.split() == ["id", "status", "due", "callback", "last_error"]
        assert max(map(len, rows)) <= 80
        assert len({row.split()[0] for row in rows}) == 3
        assert all("failed" in row and "connection refu" in row for row in rows)
        assert note == "3 timers of namespace 'default'; shortened to fit, --wide shows all"
        whole = await on_terminal(80, server, tmp_path, "list", "--wide")
        assert all(id in whole for id in ids)
        assert URL.format(2) in whole


async def _failed_timer(api: httpx.AsyncClient, number: int) -> str:
    id = await create_timer(api, URL.format(number), in_ms(100))
    await wait_for_status(api, id, "failed")
    return id
