"""One kept-alive connection to the API: quick enough for load, and open to raw bytes."""

import asyncio
import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY


class ConnectionEnded(Exception):
    """The server ended the connection before the answer was complete."""


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """Header names are in lower case. `body` is None when it is not JSON."""

    status: int
    headers: dict[str, str]
    body: Any


class ApiConnection:
    def __init__(self, url: str) -> None:
        self._url = httpx.URL(url)
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def request(self, method: str, path: str, content: object = None) -> ApiAnswer:
        """Raises `ConnectionEnded`; whether the request took effect is then unknown."""
        await self.send(request_bytes(method, path, content))
        return await self.read_answer()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise ConnectionEnded from error

    def send_end(self) -> None:
        """Close the sending side of the connection."""
        self._writer.write_eof()

    async def read_answer(self) -> ApiAnswer:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status_line, *lines = head.split("\r\n")[:-2]
                pairs = (line.split(": ", 1) for line in lines)
                headers = {name.lower(): value for name, value in pairs}
                data = await self._reader.readexactly(int(headers["content-length"]))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ConnectionEnded from error
        is_json = headers.get("content-type") == "application/json"
        body = json.loads(data) if is_json else None
        return ApiAnswer(int(status_line.split(" ")[1]), headers, body)

    async def read_to_end(self) -> bytes:
        """All bytes until the server closes the connection."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self._reader.read()
            except ConnectionError:
                return b""

    async def __aenter__(self) -> Self:
        assert self._url.port is not None
        self._reader, self._writer = await asyncio.open_connection(
            self._url.host, self._url.port, limit=2**20
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.transport.abort()


def request_bytes(method: str, path: str, content: object = None) -> bytes:
    """A request with the right key."""
    body = b"" if content is None else json.dumps(content).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: test\r\nX-API-Key: {API_KEY}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
