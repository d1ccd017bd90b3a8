"""The bare limit of creates and scrapes: an application that returns the request's body, or as many
bytes as the path of a GET says.

Duetime's own code serves it, with the same uvicorn and the same options.
"""

import asyncio
import sys
from typing import Self

import msgspec
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.harness.child import Child, answer_parent
from duetime.listener import bind
from duetime.server.server import serve_until
from duetime.settings.values import LogFormat
from duetime.telemetry.logs import configure_logs


class Listening(msgspec.Struct, frozen=True):
    port: int


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    body: bytes = message["body"]
    while message["more_body"]:
        message = await receive()
        body += message["body"]
    if scope["method"] == "GET":
        body = bytes(int(scope["path"][1:]))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class EchoService:
    """Replaces the timer service."""

    app: ASGIApp = staticmethod(echo)

    async def open(self) -> None:
        """Nothing to open."""

    async def start(self) -> None:
        """Nothing to start."""

    def drain(self) -> None:
        """Nothing to announce."""

    async def stop(self) -> None:
        """Nothing to stop."""


async def serve() -> None:
    # Standard output carries the answers to the parent.
    configure_logs("warn", LogFormat.JSON)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    stopped = asyncio.Event()

    async def stop_with_parent() -> None:
        await orders.read()
        stopped.set()

    stopping = asyncio.create_task(stop_with_parent())
    listener = bind("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    await serve_until(
        stopped,
        EchoService(),
        listener,
        grace_seconds=1,
        on_started=lambda: answer_parent(Listening(port)),
    )
    await stopping


class Echo:
    """The parent's handle of the echo server."""

    def __init__(self) -> None:
        self._child = Child("bench.limits.echo")
        self.port = self._child.read(Listening, 15).port

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()


def main() -> None:
    uvloop.run(serve())


if __name__ == "__main__":
    main()
