"""Reading a request's body, never more of it than is allowed."""

from collections.abc import Iterable

from starlette.types import Message, Receive, Scope

from duetime.api.http.answers import CLOSE, Answer
from duetime.domain.errors import TooLarge


class ClientGone(Exception):
    """The client hung up before its request was complete. Nobody is left to answer."""


class BodyWatch:
    """Hands out a request's messages, and knows whether all of its body was read.

    What is left of a body when the answer is sent is read to its end, to find the next request.
    Where that may take long, a body of 100,000 bytes or more, it is better to end the connection.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._is_read = not any(
            name == b"transfer-encoding" or (name == b"content-length" and len(value) > 5)
            for name, value in scope["headers"]
        )

    async def receive(self) -> Message:
        message = await self._receive()
        if not message.get("more_body", False):
            self._is_read = True
        return message

    def ending(self, answer: Answer) -> Answer:
        """The answer, which ends the connection if it must."""
        if self._is_read:
            return answer
        return answer._replace(headers=(*answer.headers, CLOSE))


async def read_body(
    headers: Iterable[tuple[bytes, bytes]], receive: Receive, max_bytes: int
) -> bytes:
    """Raises `TooLarge` as soon as it is certain, without reading on, and `ClientGone`."""
    for name, value in headers:
        # Digits only, as the server has checked; a length of 20 digits is too large anyway.
        if name == b"content-length" and (len(value) > 19 or int(value) > max_bytes):
            raise _too_large(max_bytes)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if len(body) > max_bytes:
        raise _too_large(max_bytes)
    if not message.get("more_body", False):
        return body
    chunks, size = [body], len(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge("body", f"must be at most {max_bytes} bytes")
