"""The router of the v1 API, made from its operations."""

from collections.abc import Sequence

from starlette.types import Receive, Scope, Send

from duetime.api.http.answers import RETRY_LATER, Answer
from duetime.api.http.auditing import Auditing
from duetime.api.http.auth import Authentication
from duetime.api.http.body import answer_request
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.http.operation import Endpoint, PathTable, asked_for, note_operation
from duetime.api.http.query import parameters
from duetime.api.v1.errors import error_answer, method_not_allowed, no_such_path, refusal
from duetime.ports.clock import Clock

PREFIX = "/api/v1"

_NO_PARAMETERS: frozenset[str] = frozenset()


class RouterV1:
    """The key is checked before anything else of a request is read. A query parameter that the
    operation does not read is refused, so that `?dryRun=true` is never silently ignored."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        authentication: Authentication,
        auditing: Auditing,
        clock: Clock,
        lifecycle: Lifecycle,
    ) -> None:
        self.operations = tuple(each.operation for each in endpoints)
        self._authentication = authentication
        self._auditing = auditing
        self._clock = clock
        self._lifecycle = lifecycle
        self._paths = PathTable(endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_request(self._answer, self._explain, scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        path, method = asked_for(scope)
        methods = self._paths.methods_of(path, scope, method)
        if not methods:
            return no_such_path(self._longer_path(path, method), self._clock.now())
        endpoint = methods.get(method)
        if endpoint is None:
            return method_not_allowed(methods, self._clock.now())
        note_operation(scope, endpoint.operation)
        handling = self._handle(endpoint, scope, receive)
        if self._auditing.covers(endpoint.operation, scope):
            return await self._auditing.recorded(endpoint.operation, scope, handling)
        return await handling

    async def _handle(self, endpoint: Endpoint, scope: Scope, receive: Receive) -> Answer:
        if endpoint.operation.needs_key:
            await self._authentication.admit(scope, endpoint.operation)
            self._lifecycle.check_started()
        if not endpoint.operation.reads_query:
            parameters(scope["query_string"], _NO_PARAMETERS)
        return await endpoint.handle(scope, receive)

    def refusal(self, status: int, message: str) -> Answer:
        """The answer to a request that never became one for the API."""
        now = self._clock.now()
        if status == 503:
            return refusal(status, "SERVICE_UNAVAILABLE", message, now, headers=RETRY_LATER)
        return refusal(status, "INVALID_INPUT", message, now)

    def _longer_path(self, path: bytes, method: str) -> str | None:
        """The path of an operation that takes one part more; often the namespace was left out."""
        endpoint = self._paths.methods_of(path.rstrip(b"/") + b"/x", {}, method).get(method)
        return None if endpoint is None else endpoint.operation.path

    def _explain(self, error: Exception, scope: Scope) -> Answer:
        return error_answer(error, scope, self._clock.now())
