"""Random pipelines of requests, each with the answer that it must get."""

from dataclasses import dataclass, field, replace

import msgspec
from hypothesis import strategies as st

from tests.unit.api.asgi_client import API_KEY, IN_TEN_SECONDS

HOST = b"Host: example.com\r\n"
KEY = b"X-API-Key: %b\r\n" % API_KEY.encode()

PLATFORM = frozenset({"code", "message", "data"})
V1_ERROR = frozenset({"error", "message", "details", "timestamp"})


@dataclass(frozen=True)
class Expected:
    """An answer: its status, and the members of its body unless there is none."""

    status: int
    members: frozenset[str] | None = None
    """None if the body is not looked at."""
    is_create: bool = False
    is_head: bool = False


@dataclass(frozen=True)
class Request:
    method: bytes
    target: bytes
    expected: Expected
    headers: tuple[bytes, ...] = (KEY,)
    body: bytes | None = field(default=None, repr=False)
    chunks: tuple[int, ...] = ()
    """Sizes of the chunks in which the body is sent; without any, its length is announced."""
    version: bytes = b"1.1"
    closes: bool = False
    """Whether the connection ends after the answer."""

    def encode(self) -> bytes:
        lines = [b"%b %b HTTP/%b\r\n" % (self.method, self.target, self.version), HOST]
        lines += self.headers
        body = self.body or b""
        if self.chunks:
            lines.append(b"Transfer-Encoding: chunked\r\n")
            body = _chunked(body, self.chunks)
        elif self.body is not None:
            lines.append(b"Content-Length: %d\r\n" % len(body))
        return b"".join(lines) + b"\r\n" + body


@dataclass(frozen=True)
class Pipeline:
    """Bytes to send, the answers to them, and the creates among those."""

    requests: tuple[Request, ...]
    ending: bytes = field(repr=False)
    """Bytes that are no request, or nothing."""
    ending_answer: Expected | None

    def encode(self) -> bytes:
        return b"".join(request.encode() for request in self.requests) + self.ending

    @property
    def expected(self) -> list[Expected]:
        answers = []
        for request in self.requests:
            answers.append(request.expected)
            if request.closes:
                return answers
        return answers if self.ending_answer is None else [*answers, self.ending_answer]


def _chunked(body: bytes, sizes: tuple[int, ...]) -> bytes:
    parts = []
    first = 0
    for size in sizes:
        piece = body[first : first + size]
        if piece:
            parts.append(b"%x\r\n%b\r\n" % (len(piece), piece))
        first += size
    if rest := body[first:]:
        parts.append(b"%X;x=y\r\n%b\r\n" % (len(rest), rest))
    return b"".join(parts) + b"0\r\n\r\n"


def _platform_body(padding: int) -> bytes:
    callback = {"type": "http", "url": "https://example.com/due"}
    body = {"execute_at": IN_TEN_SECONDS, "callback": callback}
    return msgspec.json.encode(body) + b" " * padding


def _v1_body(number: int) -> bytes:
    body = {
        "id": f"timer-{number:02}",
        "executeAt": IN_TEN_SECONDS,
        "callbackUrl": "https://example.com/due",
    }
    return msgspec.json.encode(body)


_PADDING = st.integers(0, 60) | st.sampled_from([5_000, 70_000])

_CREATES = st.builds(
    lambda padding: Request(
        b"POST", b"/timers", Expected(201, PLATFORM, is_create=True), body=_platform_body(padding)
    ),
    _PADDING,
)
_V1_CREATE = Request(b"POST", b"/api/v1/timers", Expected(200, is_create=True), body=_v1_body(0))
_REFUSED = st.sampled_from(
    [
        Request(b"POST", b"/timers", Expected(400, PLATFORM), body=b'{"callback": 1}'),
        Request(b"POST", b"/timers", Expected(401, PLATFORM), (), body=_platform_body(20)),
        Request(b"POST", b"/timers", Expected(401, PLATFORM), (KEY, KEY), body=_platform_body(20)),
        Request(b"POST", b"/api/v1/timers", Expected(400, V1_ERROR), body=b"[]"),
        Request(b"POST", b"/api/v1/timers", Expected(401, V1_ERROR), (), body=_v1_body(0)),
        Request(b"PATCH", b"/timers", Expected(405, PLATFORM), body=_platform_body(3)),
        Request(b"POST", b"/nope", Expected(404, PLATFORM), body=_platform_body(3)),
        Request(b"GET", b"/nope", Expected(404, PLATFORM)),
        Request(b"GET", b"/api/v1/nope", Expected(404, V1_ERROR)),
    ]
)
_READS = st.sampled_from(
    [
        Request(b"GET", b"/healthz", Expected(200, PLATFORM)),
        Request(b"HEAD", b"/healthz", Expected(200, is_head=True)),
        Request(b"GET", b"/timers?limit=1", Expected(200, PLATFORM)),
        Request(b"GET", b"/api/v1/timers?limit=1", Expected(200)),
        Request(b"GET", b"/healthz", Expected(200, PLATFORM), body=b"POST /timers HTTP/1.1\r\n"),
    ]
)

_OFFERS = st.sampled_from(
    [
        (b"Connection: Upgrade\r\n", b"Upgrade: h2c\r\n"),
        (
            b"connection: UPGRADE, HTTP2-Settings\r\n",
            b"upgrade: H2C\r\n",
            b"HTTP2-Settings: AAMAAABk\r\n",
        ),
        (b"Connection: keep-alive, Upgrade\r\n", b"UPGRADE: websocket\r\n"),
        (b"Upgrade: h2c, websocket\r\n", b"Connection: upgrade\r\n", b"Upgrade: foo\r\n"),
        (b"Connection: upgrade\r\n",),
        (b"Upgrade: websocket\r\n",),
    ]
)


@st.composite
def _requests(draw: st.DrawFn) -> Request:
    request = draw(_CREATES | st.just(_V1_CREATE) | _REFUSED | _READS)
    if draw(st.integers(0, 2)) == 0:
        request = replace(request, headers=(*request.headers, *draw(_OFFERS)))
    if request.body is not None:
        if draw(st.integers(0, 2)) == 0:
            request = _in_chunks(request, draw(st.lists(st.integers(1, 200), min_size=1)))
        if draw(st.integers(0, 5)) == 0:
            request = _expecting(request)
    if draw(st.integers(0, 11)) == 0:
        close = draw(st.sampled_from([b"close", b"Close", b"keep-alive, close"]))
        header = b"Connection: %b\r\n" % close
        request = replace(request, headers=(*request.headers, header), closes=True)
    if draw(st.integers(0, 23)) == 0:
        request = replace(request, version=b"1.0", closes=True)
    return request


def _in_chunks(request: Request, sizes: list[int]) -> Request:
    # A body of unknown length that the server does not read ends the connection.
    unread = request.expected.status in (401, 404, 405) or request.method == b"GET"
    return replace(request, chunks=tuple(sizes), closes=request.closes or unread)


def _expecting(request: Request) -> Request:
    # A client that was not told to continue may send the body or not, so the connection ends.
    unread = request.expected.status in (401, 404, 405) or request.method == b"GET"
    header = b"Expect: 100-Continue\r\n"
    return replace(request, headers=(*request.headers, header), closes=request.closes or unread)


_GET = b"GET /healthz HTTP/1.1\r\n"
_V1_GET = b"GET /api/v1/timers HTTP/1.1\r\n"
_CHUNKED = b"POST /timers HTTP/1.1\r\n%b%bTransfer-Encoding: chunked\r\n\r\n" % (HOST, KEY)
_V1_CHUNKED = _CHUNKED.replace(b"/timers", b"/api/v1/timers")
_V1_CHUNKED_OFFER = _V1_CHUNKED.replace(HOST, b"Connection: upgrade\r\nUpgrade: h2c\r\n" + HOST)

_ENDINGS = st.sampled_from(
    [
        (b"garbage\r\n\r\n", Expected(400, PLATFORM)),
        (b"\x16\x03\x01\x02\x00\x01\x00", Expected(400, PLATFORM)),
        (_GET + b"\r\n", Expected(400, PLATFORM)),
        (_GET + HOST + b"Host: other\r\n\r\n", Expected(400, PLATFORM)),
        (_V1_GET + HOST + HOST + b"\r\n", Expected(400, V1_ERROR)),
        (_V1_GET + b"\r\n", Expected(400, V1_ERROR)),
        (_GET + b"Host: a b\r\n\r\n", Expected(400, PLATFORM)),
        (b"GET /healthz HTTP/2.0\r\n%b\r\n" % HOST, Expected(505, PLATFORM)),
        (b"GET /api/v1/timers HTTP/2.0\r\n%b\r\n" % HOST, Expected(505, V1_ERROR)),
        (b"GET /healthz HTTP/0.9\r\n%b\r\n" % HOST, Expected(505, PLATFORM)),
        (b"CONNECT example.com:80 HTTP/1.1\r\n%b\r\n" % HOST, Expected(400, PLATFORM)),
        (_CHUNKED + b"5\r\n{\"a\":\r\nzz\r\n", Expected(400, PLATFORM)),
        (_V1_CHUNKED + b"zz\r\n", Expected(400, V1_ERROR)),
        (_V1_CHUNKED_OFFER + b"zz\r\n", Expected(400, V1_ERROR)),
        (_GET + HOST + b"X-Big: %b\r\n\r\n" % (b"x" * 70_000), Expected(431, PLATFORM)),
    ]
)  # fmt: skip
_NO_ENDING: tuple[bytes, None] = (b"", None)
_LAST = Request(
    b"GET",
    b"/healthz",
    Expected(200, PLATFORM),
    (b"Connection: close\r\n",),
    closes=True,
)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """The server closes the connection after each of them."""
    requests = draw(st.lists(_requests(), max_size=12))
    ending, answer = draw(st.just(_NO_ENDING) | _ENDINGS)
    if answer is None:
        requests.append(_LAST)
    return Pipeline(tuple(map(_with_own_id, requests, range(100))), ending, answer)


def _with_own_id(request: Request, number: int) -> Request:
    if request.body != _V1_CREATE.body:
        return request
    return replace(request, body=_v1_body(number))


@st.composite
def splits(draw: st.DrawFn, size: int) -> list[int]:
    """Where the bytes are cut into pieces."""
    cuts = draw(st.lists(st.integers(0, size), max_size=12))
    return sorted(set(cuts))
