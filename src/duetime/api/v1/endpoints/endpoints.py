"""The handlers of the v1 API that list, pause and resume endpoints."""

from typing import Literal

from msgspec import UNSET
from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer
from duetime.api.http.body import read_body
from duetime.api.http.caller import caller_of
from duetime.api.http.decoding import BodyDecoder
from duetime.api.http.values import instant_or_none
from duetime.api.v1.answers import NO_CONTENT, ok
from duetime.api.v1.endpoints.types import (
    EndpointAnswer,
    EndpointBody,
    EndpointListAnswer,
    FiguresAnswer,
    PauseAnswer,
    PauseBody,
    PausedAnswer,
)
from duetime.domain.instants import format_instant
from duetime.ports.endpoints import EndpointFigures, EndpointPause, EndpointState, EndpointStatus
from duetime.service.endpoints.endpoints import Endpoints

_STATES: dict[EndpointState, Literal["closed", "open", "halfOpen"]] = {
    EndpointState.CLOSED: "closed",
    EndpointState.OPEN: "open",
    EndpointState.HALF_OPEN: "halfOpen",
}

_decode_pause = BodyDecoder(PauseBody, {}).decode
_decode_endpoint = BodyDecoder(EndpointBody, {}).decode


class EndpointsV1:
    """Each method answers a request or raises."""

    def __init__(self, endpoints: Endpoints, *, max_body_bytes: int) -> None:
        self._endpoints = endpoints
        self._max_body_bytes = max_body_bytes

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        seen = await self._endpoints.look()
        return ok(EndpointListAnswer(seen.node, [_answer_of(each) for each in seen.endpoints]))

    async def pause(self, scope: Scope, receive: Receive) -> Answer:
        body = _decode_pause(await read_body(scope, receive, self._max_body_bytes))
        caller = caller_of(scope)
        caller.target = body.endpoint
        reason = None if body.reason is UNSET else body.reason
        pause = await self._endpoints.pause(body.endpoint, reason, caller.access)
        caller.target = pause.endpoint
        return ok(
            PauseAnswer(
                endpoint=pause.endpoint,
                paused_at=format_instant(pause.paused_at),
                paused_by=pause.paused_by,
                reason=pause.reason,
            )
        )

    async def resume(self, scope: Scope, receive: Receive) -> Answer:
        body = _decode_endpoint(await read_body(scope, receive, self._max_body_bytes))
        caller_of(scope).target = body.endpoint
        caller_of(scope).target = await self._endpoints.resume(body.endpoint)
        return NO_CONTENT


def _answer_of(status: EndpointStatus) -> EndpointAnswer:
    return EndpointAnswer(
        endpoint=status.endpoint,
        state=_STATES[status.state],
        in_flight=status.in_flight,
        waiting=status.waiting,
        consecutive_failures=status.consecutive_failures,
        last_error=status.last_error,
        opened_at=instant_or_none(status.opened_at),
        paused=None if status.pause is None else _paused(status.pause),
        last15_minutes=None if status.figures is None else _figures(status.figures),
    )


def _paused(pause: EndpointPause) -> PausedAnswer:
    return PausedAnswer(
        paused_at=format_instant(pause.paused_at), paused_by=pause.paused_by, reason=pause.reason
    )


def _figures(figures: EndpointFigures) -> FiguresAnswer:
    return FiguresAnswer(
        attempts=figures.attempts,
        failures=figures.failures,
        p50_ms=figures.p50_ms,
        p99_ms=figures.p99_ms,
    )
