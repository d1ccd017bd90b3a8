"""HTTP answers: complete ones, made before the first byte is sent, and streamed ones."""

import asyncio
from collections.abc import AsyncGenerator
from typing import NamedTuple

from starlette.types import Send

from duetime.domain.errors import DuetimeError, TooManyRequests, Unauthorized
from duetime.telemetry.current_work import REQUEST_ID_HEADER

Headers = tuple[tuple[bytes, bytes], ...]

JSON_TYPE: Headers = ((b"content-type", b"application/json"),)
CLOSE = (b"connection", b"close")

RETRY_AFTER_SECONDS = 2
"""Time after which a client may try again when the service cannot do its work. The engine and the
store look for each other more often than that."""

RETRY_LATER: Headers = ((b"retry-after", b"%d" % RETRY_AFTER_SECONDS),)

STALLED_SECONDS = 60.0
"""Time after which a client that takes nothing of a streamed answer counts as gone."""

CHALLENGE: Headers = ((b"www-authenticate", b'Bearer realm="duetime"'),)
"""The header of answers to requests without a right key."""


def error_headers(error: DuetimeError, status: int) -> Headers:
    """The headers that the answer to an error has in both APIs."""
    if isinstance(error, TooManyRequests):
        return ((b"retry-after", b"%d" % error.retry_after_seconds),)
    if isinstance(error, Unauthorized):
        return CHALLENGE
    return RETRY_LATER if status in (429, 503, 507) else ()


class Answer(NamedTuple):
    """`headers` lack only the id of the request and the length of the content."""

    status: int
    content: bytes
    headers: Headers = JSON_TYPE

    async def send(self, send: Send, request_id: bytes) -> None:
        length = (b"content-length", b"%d" % len(self.content))
        await send(
            {
                "type": "http.response.start",
                "status": self.status,
                "headers": [*self.headers, (REQUEST_ID_HEADER, request_id), length],
            }
        )
        await send({"type": "http.response.body", "body": self.content})


class StreamedAnswer(NamedTuple):
    """An answer whose length is not known before it ends. An error on the way breaks the connection
    off, so that the client notices. `chunks` are read only as fast as the client takes them; one
    that takes nothing for `STALLED_SECONDS` is broken off."""

    status: int
    chunks: AsyncGenerator[bytes, None]
    headers: Headers

    async def send(self, send: Send, request_id: bytes) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status,
                "headers": [*self.headers, (REQUEST_ID_HEADER, request_id)],
            }
        )
        async for chunk in self.chunks:
            async with asyncio.timeout(STALLED_SECONDS):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


AnyAnswer = Answer | StreamedAnswer
