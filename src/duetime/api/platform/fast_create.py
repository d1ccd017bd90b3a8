"""Plain creates without a coroutine per request.

The server may call this instead of the ASGI application. The answers are the same.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from duetime.api.http.answers import Answer
from duetime.api.http.auth import Authentication
from duetime.api.http.caller import Caller
from duetime.api.http.host import HOST_HEADER, is_host
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.platform.errors import error_answer
from duetime.api.platform.requests import decode_create, new_timer_of
from duetime.api.platform.routes import CREATE_TIMER
from duetime.api.platform.timers import created_answer
from duetime.ports.store import CreateResult
from duetime.service.create_requests import NewTimer
from duetime.service.security.audit_log import Sampling
from duetime.service.timer_service import TimerService
from duetime.telemetry.current_work import (
    CURRENT_WORK,
    REQUEST_ID_HEADER,
    TRACEPARENT_HEADER,
    CurrentWork,
    request_id_of,
    traceparent_of,
)
from duetime.telemetry.metrics.requests import RequestMetrics
from duetime.telemetry.request_tracer import RequestSpan, RequestTracer

Headers = Sequence[tuple[bytes, bytes]]

_METHOD = CREATE_TIMER.method.encode()
_TARGET = CREATE_TIMER.path.encode()
_NOT_PLAIN = frozenset({b"expect", b"transfer-encoding", b"upgrade"})
_LARGEST_PLAIN_BODY = 65_536

_LOGGED_AS = {"method": CREATE_TIMER.method, "path": CREATE_TIMER.path}


class FastCreate:
    """Handles `POST /timers` with the right key, no header twice, and a body of known, moderate
    length."""

    def __init__(
        self,
        service: TimerService,
        authentication: Authentication,
        lifecycle: Lifecycle,
        *,
        max_body_bytes: int,
        audited: Sampling | None = None,
        metrics: RequestMetrics,
        tracer: RequestTracer | None = None,
    ) -> None:
        """The `audited` creates take the usual path, which records them."""
        self.requests = metrics.of(CREATE_TIMER.id)
        self._metrics = metrics
        self._service = service
        self._authentication = authentication
        self._lifecycle = lifecycle
        self._largest_body = min(max_body_bytes, _LARGEST_PLAIN_BODY)
        self._audited = audited
        self._tracer = tracer
        self._tasks: set[asyncio.Task[CreateResult]] = set()

    def close(self) -> None:
        """Admit nothing more."""
        self._largest_body = 0

    def admit(self, method: bytes, target: bytes, headers: Headers) -> Caller | None:
        if method != _METHOD or target != _TARGET:
            return None
        by_name = dict(headers)
        if len(by_name) != len(headers) or not _NOT_PLAIN.isdisjoint(by_name):
            return None
        length = by_name.get(b"content-length", b"0")
        host = by_name.get(HOST_HEADER)
        if (
            len(length) < 10
            and 0 < int(length) <= self._largest_body
            and host is not None
            and is_host(host)
            and self._lifecycle.is_started
            and (self._audited is None or self._audited.passes())
        ):
            caller = self._authentication.admit_known(by_name, CREATE_TIMER)
            if caller is not None:
                caller.work = CurrentWork(
                    request_id_of(by_name.get(REQUEST_ID_HEADER)),
                    traceparent_of(by_name.get(TRACEPARENT_HEADER)),
                )
            return caller
        return None

    def handle(self, caller: Caller, body: bytes, respond: Callable[[Answer], None]) -> None:
        token = CURRENT_WORK.set(caller.work)
        if self._tracer is not None and caller.work is not None:
            span = self._tracer.begin_request(caller.work, CREATE_TIMER.method)
            if span is not None:
                respond = partial(_respond_and_end, span, caller, respond)
        try:
            caller.check_still_valid()
            # Not before: from here on the caller leaves in any case.
            caller.enter()
            namespace = caller.reach(caller.access.home)
            created = self._begin(new_timer_of(decode_create(body), namespace))
        except Exception as error:
            caller.leave()
            self._metrics.failed(error)
            respond(error_answer(error, _LOGGED_AS))
        else:
            created.add_done_callback(partial(_respond, caller, respond))
        finally:
            CURRENT_WORK.reset(token)

    def _begin(self, new: NewTimer) -> "asyncio.Future[CreateResult]":
        if new.idempotency_key is None and self._service.knows(new.namespace):
            return self._service.begin_create(new)
        task = asyncio.get_running_loop().create_task(self._service.create(new))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _respond_and_end(
    span: RequestSpan, caller: Caller, respond: Callable[[Answer], None], answer: Answer
) -> None:
    respond(answer)
    span.end(CREATE_TIMER.id, CREATE_TIMER.path, caller.namespace, answer.status)


def _respond(
    caller: Caller, respond: Callable[[Answer], None], created: "asyncio.Future[CreateResult]"
) -> None:
    # The callback runs in the context of `handle`, where the work is the current one.
    caller.leave()
    try:
        answer = created_answer(created.result())
    except asyncio.CancelledError:
        answer = error_answer(RuntimeError("the create was cancelled"), _LOGGED_AS)
    except Exception as error:
        answer = error_answer(error, _LOGGED_AS)
    if caller.work is not None:
        caller.work.is_over = True
    respond(answer)
