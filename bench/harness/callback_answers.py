"""The ways in which the receiver answers callbacks."""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import assert_never

ACCEPTED = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
FAILURES = 2

NUMBER = b'"n":'

AnswerTo = Callable[[bytes], bytes]


class Manner(StrEnum):
    ACCEPT = "accept"
    """A bare 200, which completes a timer of the platform API."""

    CONFIRM = "confirm"
    """`{"ok": true}`, which completes a timer of the v1 API."""

    HANG = "hang"
    """Reads every callback and never answers."""

    FAIL_FIRST = "fail first"
    """500 to the first two callbacks of each timer, then as `CONFIRM`."""


def answer_in(manner: Manner) -> AnswerTo:
    match manner:
        case Manner.ACCEPT:
            return lambda request: ACCEPTED
        case Manner.CONFIRM:
            return lambda request: OK
        case Manner.HANG:
            return lambda request: b""
        case Manner.FAIL_FIRST:
            return failing_first()
        case _ as unreachable:
            assert_never(unreachable)


def failing_first() -> AnswerTo:
    """Counts arrivals per timer and ignores the attempt number in the callback."""
    seen: Counter[bytes] = Counter()

    def answer_to(request: bytes) -> bytes:
        start = request.find(NUMBER) + len(NUMBER)
        number = request[start : request.find(b",", start)]
        seen[number] += 1
        return ERROR if seen[number] <= FAILURES else OK

    return answer_to
