"""Receivers with names of their own on one machine: a proxy that answers callbacks itself."""

import asyncio
import re
from types import TracebackType
from typing import Self

from duetime.clock import SystemClock
from tests.real_server.callback_receiver import Answer

_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)


class TunnelReceiver:
    """A server that is started with `CALLBACK_PROXY` = `proxy_url` sends its callbacks here, for
    whatever host. `script` answers a path of any host, `script_host` all paths of one."""

    url = "http://hooks.shop.example"

    def __init__(self) -> None:
        self.proxy_url = ""
        self._answers: dict[str, Answer] = {}
        self._server: asyncio.Server

    def script(self, target: str, reaction: Answer) -> None:
        self._answers[target] = reaction

    def script_host(self, host: str, reaction: Answer) -> None:
        self._answers[host] = reaction

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            host = (await _head(reader)).split()[1].decode().partition(":")[0]
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            while True:
                head = await _head(reader)
                length = _LENGTH.search(head)
                await reader.readexactly(int(length[1]) if length else 0)
                path = head.split()[1].decode()
                answer = self._answers.get(path) or self._answers.get(host) or _DONE
                await SystemClock().sleep(answer.delay_seconds)
                writer.write(
                    f"HTTP/1.1 {answer.status} Scripted\r\n"
                    f"Content-Length: {len(answer.body)}\r\n\r\n".encode()
                    + answer.body
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.proxy_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()


_DONE = Answer(body=b'{"ok": true}')


async def _head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")
