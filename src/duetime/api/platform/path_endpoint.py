"""The operations of one path outside v1, as an ASGI application."""

from starlette.types import Receive, Scope, Send

from duetime.api.http.answers import Answer
from duetime.api.http.auditing import Auditing
from duetime.api.http.auth import Authentication
from duetime.api.http.body import answer_request
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.http.operation import Endpoint, note_operation
from duetime.api.http.query import parameters
from duetime.api.platform.errors import error_answer, method_not_allowed


class PathEndpoint:
    """The operations of one path, by method. Starlette takes an object for an ASGI application."""

    def __init__(
        self, authentication: Authentication, auditing: Auditing, lifecycle: Lifecycle
    ) -> None:
        self._authentication = authentication
        self._auditing = auditing
        self._lifecycle = lifecycle
        self._endpoints: dict[str, Endpoint] = {}

    def add(self, endpoint: Endpoint) -> None:
        self._endpoints[endpoint.operation.method] = endpoint
        if endpoint.operation.method == "GET":
            self._endpoints["HEAD"] = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_request(self._answer, error_answer, scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            return method_not_allowed(self._endpoints)
        note_operation(scope, endpoint.operation)
        handling = self._handle(endpoint, scope, receive)
        if self._auditing.covers(endpoint.operation, scope):
            return await self._auditing.recorded(endpoint.operation, scope, handling)
        return await handling

    async def _handle(self, endpoint: Endpoint, scope: Scope, receive: Receive) -> Answer:
        operation, handle = endpoint
        if operation.needs_key:
            # Before anything of the body is read.
            await self._authentication.admit(scope, operation)
            if operation.needs_store:
                self._lifecycle.check_started()
            if scope["query_string"] and not operation.reads_query:
                parameters(scope["query_string"], frozenset())
        return await handle(scope, receive)
