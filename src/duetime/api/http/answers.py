"""A complete HTTP answer, made before its first byte is sent."""

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
