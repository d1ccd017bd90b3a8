"""The fast path for creates, which bypasses ASGI.

ASGI costs a task, an event, a scope and three messages per request: half of the time a create
takes. A plain create needs none of them; every other request takes uvicorn's usual path.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from duetime.api.http.answers import Answer
from duetime.api.http.caller import Caller
from duetime.server.answer_bytes import answer_bytes
from duetime.server.http_protocol import BODIES_REFUSED, BoundedHttpProtocol
from duetime.telemetry.metrics.requests import OperationRequests

Headers = Sequence[tuple[bytes, bytes]]


class FastCreate(Protocol):
    """The fast path as an application offers it in its `fast_create` attribute. The server counts
    its answers in `requests`."""

    @property
    def requests(self) -> OperationRequests: ...

    def admit(self, method: bytes, target: bytes, headers: Headers) -> Caller | None:
        """The caller of a request that may take the fast path, with its work. One that is not
        admitted takes the usual path and is answered there."""
        ...

    def handle(self, caller: Caller, body: bytes, respond: Callable[[Answer], None]) -> None:
        """Answer the request by calling `respond` once, now or later. Never raises."""
        ...


class _NoWaiter:
    """Replaces the event by which uvicorn wakes an application that waits for more body."""

    def set(self) -> None:
        pass


_NO_WAITER = _NoWaiter()


class FastCreateCycle:
    """A request on the fast path, with the attributes that uvicorn reads. While it is open, the
    connection's next request waits, and a shutdown waits for its answer."""

    __slots__ = ("began", "body", "caller", "disconnected", "keep_alive", "response_complete")

    message_event = _NO_WAITER
    more_body = False

    def __init__(self, caller: Caller, keep_alive: bool, began: float) -> None:
        self.began = began
        self.caller = caller
        self.body = b""
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_complete = False

    @property
    def request_id(self) -> bytes:
        work = self.caller.work
        assert work is not None
        assert work.request_id is not None
        return work.request_id


class FastCreateProtocol(BoundedHttpProtocol):
    """Uvicorn's protocol with the fast path added."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fast_create: FastCreate | None = getattr(self.app, "fast_create", None)

    def on_headers_complete(self) -> None:
        before: Any = self.cycle
        if (
            self._fast_create is not None
            and (before is None or before.response_complete)
            and not self.flow.write_paused
            and self._lingering is None
            and not self.transport.is_closing()
            and self.parser.get_http_version() == "1.1"
            and not self._head_is_too_large()
            and (
                caller := self._fast_create.admit(self.parser.get_method(), self.url, self.headers)
            )
            is not None
        ):
            self._incoming_bytes = 0
            began = self._fast_create.requests.now()
            cycle: Any = FastCreateCycle(caller, self.parser.should_keep_alive(), began)
            self.cycle = cycle
            self._is_in_head = False
            self._is_in_message = True
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        cycle: Any = self.cycle
        if type(cycle) is FastCreateCycle:
            self._incoming_bytes = 0
            if not self.bodies.take(len(body)):
                self._stop_parsing(BODIES_REFUSED)
            cycle.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        cycle: Any = self.cycle
        if type(cycle) is FastCreateCycle and self._is_in_message:
            assert self._fast_create is not None
            self._is_in_message = False
            self._fast_create.handle(cycle.caller, cycle.body, partial(self._respond, cycle))
        else:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        cycle: Any = self.cycle
        if type(cycle) is FastCreateCycle and self._is_in_message:
            self._forget_body(cycle)
        super().connection_lost(exc)

    def _abandon(self, cycle: Any) -> None:
        if type(cycle) is FastCreateCycle:
            cycle.disconnected = True
            self._forget_body(cycle)
        else:
            super()._abandon(cycle)

    def _request_id_of(self, cycle: Any) -> bytes | None:
        if type(cycle) is FastCreateCycle:
            return cycle.request_id
        return super()._request_id_of(cycle)

    def _forget_body(self, cycle: FastCreateCycle) -> None:
        self.bodies.give_back(len(cycle.body))
        cycle.body = b""

    def _respond(self, cycle: FastCreateCycle, answer: Answer) -> None:
        assert self._fast_create is not None
        cycle.response_complete = True
        self._fast_create.requests.answered(answer.status, cycle.began)
        self._forget_body(cycle)
        if cycle.disconnected or self.is_closing:
            return
        headers = tuple(self.server_state.default_headers)
        answered = answer_bytes(answer, headers, cycle.request_id, keep_alive=cycle.keep_alive)
        self.transport.write(answered)
        if not cycle.keep_alive:
            self.close_after_answer()
        self.on_response_complete()
