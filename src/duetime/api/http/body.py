"""Reading a request's body within its size limit, and answering the request."""

from collections.abc import Awaitable, Callable

from starlette.types import Message, Receive, Scope, Send

from duetime.api.http.answers import CLOSE, AnyAnswer
from duetime.api.http.caller import caller_if_known, leave
from duetime.api.http.operation import noted_operation
from duetime.domain.errors import TooLarge
from duetime.telemetry.current_work import CURRENT_WORK, CurrentWork, work_of
from duetime.telemetry.request_tracer import RequestSpan, RequestTracer

_WORK = "duetime.work"
_TRACER = "duetime.tracer"
_UNTRACED = frozenset({"/healthz", "/livez", "/metrics", "/readyz"})
_OPEN_ENDED = frozenset({b"transfer-encoding", b"expect"})


_STATUS = "duetime.status"
_ERROR = "duetime.error"


class ClientGone(Exception):
    """The client disconnected before its request was complete, so nobody can be answered."""


class BodyWatch:
    """Passes on a request's messages and notes whether the whole body was read.

    The server reads an unread rest of a body to find the next request. For a body of 100,000
    bytes or more that may take long, so the answer closes the connection instead. It also does
    so if the client waits to be asked for the body: it may send the body or not.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._is_read = not any(
            name in _OPEN_ENDED or (name == b"content-length" and len(value) > 5)
            for name, value in scope["headers"]
        )

    async def receive(self) -> Message:
        message = await self._receive()
        if not message.get("more_body", False):
            self._is_read = True
        return message

    def ending(self, answer: AnyAnswer) -> AnyAnswer:
        """The answer, with a header that closes the connection if the body was not read."""
        if self._is_read:
            return answer
        return answer._replace(headers=(*answer.headers, CLOSE))


def work_in(scope: Scope) -> CurrentWork:
    """The work of the request, with its id."""
    work: CurrentWork | None = scope.get(_WORK)
    if work is None:
        work = scope[_WORK] = work_of(scope["headers"])
    return work


def put_tracer(scope: Scope, tracer: RequestTracer) -> None:
    """Have the request traced, unless it is a probe or a scrape."""
    if scope["path"] not in _UNTRACED:
        scope[_TRACER] = tracer


async def answer_request(
    handle: Callable[[Scope, Receive], Awaitable[AnyAnswer]],
    explain: Callable[[Exception, Scope], AnyAnswer],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Send the handler's answer, or the one that explains its error.

    A handler returns a whole answer before any byte is sent, so an error never leaves an answer
    half sent, unless it is a streamed one. No traceback leaves the process. However the request
    ends, its caller leaves.
    """
    work = work_in(scope)
    CURRENT_WORK.set(work)
    tracer: RequestTracer | None = scope.get(_TRACER)
    span = None if tracer is None else tracer.begin_request(work, scope["method"])
    watch = BodyWatch(scope, receive)
    try:
        try:
            answer = await handle(scope, watch.receive)
        except ClientGone:
            return
        except Exception as error:
            scope[_ERROR] = error
            answer = explain(error, scope)
        scope[_STATUS] = answer.status
        assert work.request_id is not None
        await watch.ending(answer).send(send, work.request_id)
    finally:
        leave(scope)
        work.is_over = True
        if span is not None:
            _end(span, scope)


def _end(span: RequestSpan, scope: Scope) -> None:
    operation, caller = noted_operation(scope), caller_if_known(scope)
    span.end(
        None if operation is None else operation.id,
        None if operation is None else operation.path,
        None if caller is None else caller.namespace,
        answered_status(scope),
    )


def answered_status(scope: Scope) -> int | None:
    """The status of the answer; None if nobody could be answered."""
    return scope.get(_STATUS)


def explained_error(scope: Scope) -> Exception | None:
    """The error that the answer explains."""
    return scope.get(_ERROR)


async def read_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes:
    """Raises `ClientGone`, and `TooLarge` as soon as the size is certain, without reading on.
    Raises `Unauthorized` if the caller's key ended while the body was on its way."""
    body = await _read(scope, receive, max_bytes)
    caller = caller_if_known(scope)
    if caller is not None:
        caller.check_still_valid()
    return body


async def _read(scope: Scope, receive: Receive, max_bytes: int) -> bytes:
    for name, value in scope["headers"]:
        # The server has checked that these are digits; 20 of them are too many in any case.
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
    # A list of chunks would take much more memory than they have bytes if they are small.
    whole = bytearray(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        whole += message.get("body", b"")
        if len(whole) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(whole)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge("body", f"must be at most {max_bytes} bytes")
