"""HTTP on the wire: uvicorn's protocol with limits, and without protocol upgrades.

It overrides private parts of uvicorn, so pyproject.toml bounds the version of uvicorn.
"""

import asyncio
import sys
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from duetime.api.http.answers import Answer
from duetime.api.http.body import work_in
from duetime.api.http.body_budget import Bodies, BodyBudget, BodyShare, share_of
from duetime.api.http.host import host_problem
from duetime.domain.limits import MAX_HEAD_BYTES
from duetime.server.answer_bytes import last_answer_bytes
from duetime.server.lingering_close import LingeringClose
from duetime.telemetry.current_work import work_of

_VERSIONS = frozenset({"1.0", "1.1"})
_CONNECT = b"CONNECT"


class Problem(Exception):
    """The reason why a request is not passed on to the application."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


_NOT_HTTP = Problem(HTTPStatus.BAD_REQUEST, "this is not a valid HTTP/1.1 request")
_HEAD_TOO_LARGE = Problem(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    f"the head of the request must be at most {MAX_HEAD_BYTES} bytes",
)
_OTHER_VERSION = Problem(
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "only HTTP/1.1 and HTTP/1.0 are spoken here"
)
_CUT_OFF = Problem(HTTPStatus.BAD_REQUEST, "the body of the request is not complete")
BODIES_REFUSED = Problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "the bodies of other requests take all the memory that bodies may take: try again later",
)
_NO_PROXY = Problem(HTTPStatus.BAD_REQUEST, "CONNECT is not supported: this is not a proxy")


class Refusing(Protocol):
    """The part of the application that words the server's own refusals."""

    def refusal(self, target: bytes, status: int, message: str) -> Answer:
        """The answer to a request that is not passed on. `target` is that of its request line, as
        far as it is known."""
        ...

    async def overload(self, target: bytes, message: str) -> Answer:
        """The answer to a request on a connection that is one too many. Never raises."""
        ...


class BoundedHttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, bounded.

    - The head of a request has a size limit. The parser buffers a header until its end, so bytes
      are counted until they form a head or a piece of a body; too many end the connection.
    - A request that cannot be read is answered in the format of the API that it was meant for,
      after the requests before it. Then the connection ends.
    - The bodies of all connections share one budget of memory. A body that would exceed it is
      refused, and the connection ends.
    - Trailers behind a chunked body are ignored.
    - An offer to upgrade the protocol is ignored, and the request is served as HTTP/1.1.
    - While requests are queued, nothing more is read. Neither is anything from a client that does
      not read its answers.
    - A client that closes its side of the connection gets the answers to its complete requests.
    - Closing a connection leaves a client that is still sending the time to read its answer.
    - When a client disconnects, all of its queued requests are marked as disconnected.
    """

    bodies: Bodies

    url = b""
    _unread_bytes = 0
    _incoming_bytes = 0
    _largest_head_bytes = 0
    """No head that is completed by the current data is larger."""
    _problem: Problem | None = None
    _is_in_head = False
    """Whether a head began that is not complete yet."""
    _is_in_message = False
    """Whether a head was read whose body is not complete yet."""
    _head_to_replay: bytes | None = None
    _started_cycle: Any = None
    _last_words: bytes | None = None
    """The answer to a request that cannot be read, while earlier ones are not answered yet."""
    _lingering: LingeringClose | None = None
    _is_stopping = False
    _pieces = 0
    """Pieces of input so far."""
    _answered_at = 0.0
    """When the last answer was written, by the loop's clock."""
    _is_input_over = False
    """Whether the client has closed its side of the connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.body_budget = getattr(self.app, "bodies", None) or BodyBudget(sys.maxsize)
        self.bodies = self.body_budget

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _PipelineFlow(transport, self)
        self._cycle_transport: Any = _CycleTransport(self)

    @property
    def is_closing(self) -> bool:
        return self._lingering is not None or self.transport.is_closing()

    @property
    def has_requests_waiting(self) -> bool:
        return self._last_words is not None or bool(self.pipeline)

    def data_received(self, data: bytes) -> None:
        self._pieces += 1
        if self._lingering is not None:
            self._lingering.discard(data)
            return
        if self._last_words is not None or self.transport.is_closing():
            return
        self._incoming_bytes = self._unread_bytes + len(data)
        self._largest_head_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            if not self.is_closing:
                self.refuse(self._problem or _NOT_HTTP)
            return
        if not self._incoming_bytes:
            self._largest_head_bytes = len(data)
        self._unread_bytes = self._incoming_bytes
        if self._unread_bytes > MAX_HEAD_BYTES and not self.is_closing:
            self.refuse(_HEAD_TOO_LARGE)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Whether the connection stays open, for the answers that are due."""
        self._is_input_over = True
        cycle: Any = self.cycle
        if self.is_closing or cycle is None:
            return False
        if self._is_in_message:
            self.refuse(_CUT_OFF)
            return True
        # Later requests cannot come, so the answer to the latest one is the last.
        cycle.keep_alive = False
        return not cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        if self.is_closing:
            # The last answer closed the connection, so pipelined requests are not read.
            raise httptools.HttpParserError
        if self._head_is_too_large():
            self._stop_parsing(_HEAD_TOO_LARGE)
        self._incoming_bytes = 0
        version = self.parser.get_http_version()
        if version not in _VERSIONS:
            self._stop_parsing(_OTHER_VERSION)
        if self.parser.get_method() == _CONNECT:
            self._stop_parsing(_NO_PROXY)
        problem = host_problem(self.headers, version)
        if problem is not None:
            self._stop_parsing(Problem(HTTPStatus.BAD_REQUEST, problem))
        if self.parser.should_upgrade():
            self._head_to_replay = self._head_without_upgrade(version)
            return
        if version == "1.0":
            # Such a client does not know about interim answers.
            self.expect_100_continue = False
        super().on_headers_complete()
        # The parser reports trailers as headers. No key may hide there: gateways look at heads.
        self.headers = []
        cycle: Any = self.cycle
        cycle.transport = self._cycle_transport
        cycle.body_share = BodyShare(self.bodies)
        cycle.body_share.put_into(self.scope)
        self._is_in_head = False
        self._is_in_message = True

    def on_body(self, body: bytes) -> None:
        self._incoming_bytes = 0
        cycle: Any = self.cycle
        if not cycle.response_complete and not cycle.body_share.take(len(body)):
            self._stop_parsing(BODIES_REFUSED)
        super().on_body(body)

    def on_message_complete(self) -> None:
        # The parser also completes the message of a head that is about to be replayed.
        if self._is_in_message:
            self._is_in_message = False
            super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._last_words is not None and not self.pipeline and not self.is_closing:
            self._end_with(self._last_words)
        self.server_state.total_requests += 1
        if self.is_closing:
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            # Uvicorn would set a timer for every request.
            self._answered_at = self.loop.time()

    def refuse(self, problem: Problem) -> None:
        """Answer the request that is being read with the problem, and end the connection. Requests
        before it are answered first."""
        cycle: Any = self.cycle
        waits = cycle is not None and not cycle.response_complete
        is_told = True
        if self._is_in_message:
            if not waits:
                # The request was answered before its body was complete.
                is_told = False
            elif self.pipeline and self.pipeline[0][0] is cycle:
                self.pipeline.popleft()
                self._abandon(cycle)
            elif getattr(cycle, "response_started", False):
                is_told = False
            else:
                self._abandon(cycle)
                waits = False
        words = self._refusal(problem) if is_told else b""
        if waits:
            self._last_words = words
            self.flow.pause_reading()
        else:
            self._end_with(words)

    def _refusal(self, problem: Problem) -> bytes:
        app: Refusing = self.app
        answer = app.refusal(self.url, problem.status, problem.message)
        headers = tuple(self.server_state.default_headers)
        # Before its target is read, the parser may still know the method of the request before.
        method = self.parser.get_method() if self.url else b""
        return last_answer_bytes(answer, headers, self._request_id(), method)

    def _request_id(self) -> bytes:
        """The id of the request that is being read."""
        if self._is_in_message:
            cycle: Any = self.cycle
            request_id = self._request_id_of(cycle)
        else:
            request_id = work_of(self.headers or ()).request_id
        assert request_id is not None
        return request_id

    def _request_id_of(self, cycle: Any) -> bytes | None:
        return work_in(cycle.scope).request_id

    def close_after_answer(self) -> None:
        """Close the connection; the client gets the time to read the answer that was written."""
        if self.is_closing:
            return
        self._abandon_queued()
        self._last_words = None
        if self._is_input_over or (self._is_stopping and not self._is_in_message):
            self.transport.close()
            return
        self._lingering = LingeringClose(self.transport, self.loop)
        self.flow.resume_reading()

    def shutdown(self) -> None:
        self._is_stopping = True
        if self._lingering is not None:
            self._lingering.hurry()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._lingering is not None:
            self._lingering.ended()
        # Uvicorn marks only the latest request.
        started: Any = self._started_cycle
        if started is not None and not started.response_complete:
            self._abandon(started)
        self._abandon_queued()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._started_cycle = cycle
        super()._start_asgi_task(cycle, partial(_run, app))

    def _abandon(self, cycle: Any) -> None:
        """Let the application see a disconnect, and ignore its answer. Once started, it gives the
        memory of the body back when it ends."""
        cycle.disconnected = True
        cycle.message_event.set()
        if cycle is not self._started_cycle:
            cycle.body_share.close()

    def _abandon_queued(self) -> None:
        for cycle, _ in self.pipeline:
            self._abandon(cycle)
        self.pipeline.clear()

    def _end_with(self, words: bytes) -> None:
        if words:
            self.transport.write(words)
        self.close_after_answer()

    def _head_is_too_large(self) -> bool:
        # Most requests arrive in one small piece, whose headers need no counting.
        if self._largest_head_bytes <= MAX_HEAD_BYTES:
            return False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        return size > MAX_HEAD_BYTES

    def _stop_parsing(self, problem: Problem) -> None:
        self._problem = problem
        raise httptools.HttpParserError

    def _feed(self, data: bytes) -> None:
        """Parse the data. The parser stops after a head that offers an upgrade; a new parser then
        reads the same head without the offer, and continues."""
        rest: bytes | memoryview = data
        while rest:
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = memoryview(rest)[upgrade.args[0] :]
            else:
                return
            head, self._head_to_replay = self._head_to_replay, None
            assert head is not None, "only an offer that was seen stops the parser"
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(head)

    def _head_without_upgrade(self, version: str) -> bytes:
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version.encode())]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join(lines) + b"\r\n\r\n"


async def _run(app: Any, scope: Any, receive: Any, send: Any) -> None:
    try:
        await app(scope, receive, send)
    finally:
        share_of(scope).close()


class _PipelineFlow(FlowControl):
    """Reads no further while requests are queued. Uvicorn would read on as soon as the application
    asks for a body, even if that is complete."""

    def __init__(self, transport: asyncio.Transport, protocol: BoundedHttpProtocol) -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        if self.read_paused and not self._protocol.has_requests_waiting:
            super().resume_reading()


class _CycleTransport:
    """The transport that requests write their answers to."""

    __slots__ = ("_protocol",)

    def __init__(self, protocol: BoundedHttpProtocol) -> None:
        self._protocol = protocol

    def write(self, data: bytes) -> None:
        self._protocol.transport.write(data)

    def is_closing(self) -> bool:
        return self._protocol.is_closing

    def close(self) -> None:
        self._protocol.close_after_answer()
