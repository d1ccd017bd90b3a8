"""Reading a request's body, never more of it than is allowed."""

from collections.abc import Iterable

from starlette.types import Receive

from duetime.domain.errors import TooLarge


class ClientGone(Exception):
    """The client hung up before its request was complete. Nobody is left to answer."""


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
