"""An answer as bytes on the wire, for answers that do not pass through ASGI."""

from functools import lru_cache
from http import HTTPStatus

from duetime.api.http.answers import Answer, Headers

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def answer_bytes(
    answer: Answer, default_headers: Headers, request_id: bytes, *, keep_alive: bool
) -> bytes:
    return b"%b%b%bx-request-id: %b\r\ncontent-length: %d\r\n%b\r\n%b" % (
        _STATUS_LINES[answer.status],
        _lines(default_headers),
        _lines(answer.headers),
        request_id,
        len(answer.content),
        b"" if keep_alive else b"connection: close\r\n",
        answer.content,
    )


def last_answer_bytes(
    answer: Answer, default_headers: Headers, request_id: bytes, method: bytes
) -> bytes:
    """The answer that ends a connection. HEAD gets no content."""
    whole = answer_bytes(answer, default_headers, request_id, keep_alive=False)
    return whole[: len(whole) - len(answer.content)] if method == b"HEAD" else whole


# The same few headers recur; only the date changes, once a second.
@lru_cache(16)
def _lines(headers: Headers) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)
