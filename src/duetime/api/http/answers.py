"""A complete HTTP answer, made before its first byte is sent."""

from typing import NamedTuple

from starlette.types import Send

Headers = tuple[tuple[bytes, bytes], ...]

JSON_TYPE: Headers = ((b"content-type", b"application/json"),)
CLOSE = (b"connection", b"close")

RETRY_AFTER_SECONDS = 2
"""Time after which a client may try again when the service cannot do its work. The engine and the
store look for each other more often than that."""

RETRY_LATER: Headers = ((b"retry-after", b"%d" % RETRY_AFTER_SECONDS),)


class Answer(NamedTuple):
    """`headers` lack only the length of the content."""

    status: int
    content: bytes
    headers: Headers = JSON_TYPE

    async def send(self, send: Send) -> None:
        length = (b"content-length", b"%d" % len(self.content))
        await send(
            {
                "type": "http.response.start",
                "status": self.status,
                "headers": [*self.headers, length],
            }
        )
        await send({"type": "http.response.body", "body": self.content})
