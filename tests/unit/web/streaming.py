"""Requests for answers that are made while they are sent."""

import asyncio

from starlette.types import ASGIApp, Message

from tests.unit.api.asgi_client import RawHeaders


async def streamed(
    app: ASGIApp, target: str, headers: RawHeaders, gone: asyncio.Event | None = None
) -> tuple[int, bytes]:
    """The status and the content, as far as the client got it until it was gone."""
    leaving = gone or asyncio.Event()
    path, _, query = target.partition("?")
    messages: list[Message] = []

    async def receive() -> Message:
        await leaving.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        messages.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "scheme": "http",
        "root_path": "",
        "client": None,
    }
    await app(scope, receive, send)
    start, *bodies = messages
    return start["status"], b"".join(each["body"] for each in bodies)
