"""The form of every answer of the platform API: `{code, message, data}`."""

from enum import IntEnum

from msgspec import Struct, json

from duetime.api.http.answers import JSON_TYPE, Answer, Headers

_encode = json.Encoder().encode


class Code(IntEnum):
    """The code in the body of every answer of the platform API."""

    SUCCESS = 0
    UNEXPECTED = 1
    VALIDATION = 2
    NOT_FOUND = 3
    UNAUTHORIZED = 4


class Envelope(Struct, frozen=True, gc=False):
    """The body of every answer of the platform API."""

    code: int
    message: str
    data: object


def answer(status: int, code: int, message: str, data: object, headers: Headers = ()) -> Answer:
    return Answer(status, _encode(Envelope(code, message, data)), JSON_TYPE + headers)
