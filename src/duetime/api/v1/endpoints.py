"""The handler of the v1 API that lists endpoints and the state of their circuit breakers."""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer
from duetime.api.http.values import instant_or_none
from duetime.api.v1.answer_types import EndpointAnswer, EndpointListAnswer
from duetime.api.v1.answers import ok
from duetime.ports.endpoints import EndpointState, EndpointStatus

_STATES: dict[EndpointState, Literal["closed", "open", "halfOpen"]] = {
    EndpointState.CLOSED: "closed",
    EndpointState.OPEN: "open",
    EndpointState.HALF_OPEN: "halfOpen",
}


class NodeEndpoints(Struct, frozen=True):
    """The endpoints as the node of this name sees them."""

    node: str
    endpoints: Sequence[EndpointStatus]


class EndpointsV1:
    def __init__(self, look: Callable[[], NodeEndpoints]) -> None:
        self._look = look

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        seen = self._look()
        return ok(EndpointListAnswer(seen.node, [_answer_of(each) for each in seen.endpoints]))


def _answer_of(status: EndpointStatus) -> EndpointAnswer:
    return EndpointAnswer(
        endpoint=status.endpoint,
        state=_STATES[status.state],
        in_flight=status.in_flight,
        waiting=status.waiting,
        consecutive_failures=status.consecutive_failures,
        last_error=status.last_error,
        opened_at=instant_or_none(status.opened_at),
    )
